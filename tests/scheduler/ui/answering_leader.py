"""A leader that gives the answers of a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Leader:
    """Gives one answer, or fails in one way."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.leader = "berth-0"
        self.asked: list[tuple[str, Mapping[str, str] | None]] = []

    async def ask(
        self, name: str, query: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> bytes:
        self.asked.append((name, query))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()

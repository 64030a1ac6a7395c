"""Whoever is never asked for anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class Nobody:
    """Has every method there is; to call one is a mistake."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        def ask(*what: object, **more: object) -> NoReturn:
            raise AssertionError(f"nobody is asked for {name} here")

        return ask

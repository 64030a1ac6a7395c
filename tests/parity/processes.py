"""The two who are asked: kube-scheduler's plugins and berth, each a process fed by lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.binaries import find_or_build

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from tests.parity.vocabulary import Json

ROOT = Path(__file__).resolve().parents[2]


class LineProcess:
    """A program that answers each line with a line."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )

    def send(self, line: bytes) -> None:
        """Ask; the answer is read by :meth:`receive`."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def receive(self) -> Json:
        """Return the answer to the oldest question."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        answer: Json = json.loads(line)
        return answer

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Pair:
    """Oracle and berth, asked the same at the same time."""

    def __enter__(self) -> Self:
        oracle = find_or_build(["oracle"])["oracle"]
        self._oracle = LineProcess("the oracle", [str(oracle)])
        self._berth = LineProcess(
            "berth", [sys.executable, "-m", "scheduler", "explain", "--batch"]
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._oracle.close()
        self._berth.close()

    def ask(self, question: Json) -> tuple[Json, Json]:
        """Return the oracle's answer and berth's."""
        line = json.dumps(question).encode() + b"\n"
        self._oracle.send(line)
        self._berth.send(line)
        return self._oracle.receive(), self._berth.receive()

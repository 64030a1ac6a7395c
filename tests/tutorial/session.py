"""A shell that runs the commands of a page, one after the other, as a reader does."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self


class Session:
    """One bash: variables, functions and background jobs stay from command to command.

    Parameters
    ----------
    folder
        Where it starts.
    environment
        Variables on top of ours.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._mark = f"end-of-command-{os.getpid()}"
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        self._shell.stdin.close()
        self._shell.stdout.read()
        self._shell.wait()
        self._shell.stdout.close()

    def run(self, line: str) -> tuple[str, ...]:
        """Return what a command prints, on either stream."""
        shell = self._shell
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{line}\necho; echo {self._mark}\n")
        shell.stdin.flush()
        printed: list[str] = []
        for each in shell.stdout:
            if each == f"{self._mark}\n":
                break
            printed.append(each.rstrip("\n"))
        # The empty line ends a last line without an end.
        if printed and not printed[-1]:
            printed.pop()
        return tuple(printed)

"""What a page tells its reader to do: files to write, and commands to run with their output.

A fenced block with ``title="NAME"`` is a file. In a block of ``console``, a line that starts with
``$ `` is a command, lines that end with a backslash go on, and the lines up to the next command are
its output; ``...`` stands for any text in a line, and alone for any lines. A comment ``<!-- for:
WORD -->`` above a block limits it to runs with that word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = re.compile(
    r"^(?:<!-- for: (?P<word>\w+) -->\n)?```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str
    word: str = ""


@dataclass(frozen=True)
class Command:
    """A command that the reader runs.

    Parameters
    ----------
    line
        What is typed, on one or several lines.
    output
        The lines that the page shows.
    word
        Of the runs in which it is run; empty for all.
    """

    line: str
    output: tuple[str, ...]
    word: str = ""


Step: TypeAlias = "File | Command"


def steps(text: str) -> Iterator[Step]:
    """Yield the steps of a page in their order."""
    for block in _BLOCK.finditer(text):
        word = block["word"] or ""
        if block["title"]:
            yield File(block["title"], block["text"], word)
        elif block["kind"] == "console":
            for line, output in _commands(block["text"]):
                yield Command(line, output, word)


def _commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = entry.splitlines()
        end = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
        yield "\n".join(lines[:end]), tuple(lines[end:])


def matches(shown: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Return whether what a command printed is what the page shows."""
    pattern = "".join(
        "(?:.*\n)*" if line == "..." else f"{re.escape(line).replace(_DOTS, '.*')}\n"
        for line in shown
    )
    text = "".join(f"{line.rstrip()}\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


_DOTS: Final = re.escape("...")


def with_output(text: str, command: Command, printed: tuple[str, ...]) -> str:
    """Return a page with another output of a command."""
    old, new = (_shown(command.line, lines) for lines in (command.output, printed))
    assert text.count(old) == 1, f"not once in the page: {command.line}"
    return text.replace(old, new)


def _shown(line: str, output: tuple[str, ...]) -> str:
    return "\n".join([f"$ {line}", *(each.rstrip() for each in output), ""])

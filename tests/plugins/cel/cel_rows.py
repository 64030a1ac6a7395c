"""The rows of true.txt, errors.txt and bad.txt: a line each, with its library or its error."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def _lines(name: str) -> list[str]:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("# ")]


def _by_library(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    library: list[str] = []
    for line in lines:
        if line.startswith("[") and line.endswith("]") and line[1:-1].isalpha():
            library = found.setdefault(line[1:-1], [])
        else:
            library.append(line)
    return found


TRUE = _by_library(_lines("true.txt"))
ERRORS = [tuple(line.split(" => ", 1)) for line in _lines("errors.txt")]
BAD = ["", *_lines("bad.txt")]

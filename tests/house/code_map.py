"""``make code-map``: the map of the code, made from the docstrings of rooms and modules.

``docs/code-map.md`` has a section for each room, the upper floors first, with what its ``__init__``
says, and a line for each module with the first sentence of its docstring. A test compares the page
with the code.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.house.source import read_modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.house.source import Module

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "code-map.md"

_HEAD: Final = """\
# Code map

This page lists every folder and module of the source. `make code-map` generates it from the
docstrings. [architecture.md](architecture.md) describes how the parts work together,
[glossary.md](glossary.md) the terms.
"""

_ROLE: Final = re.compile(r":\w+:`(?:[^`<]*<)?[~!]?([^`>]+)>?`")


def code_map(modules: Mapping[str, Module]) -> str:
    """Return the page."""
    rooms: defaultdict[str, list[Module]] = defaultdict(list)
    for module in modules.values():
        if not module.is_package:
            rooms[module.folder].append(module)
    parts = [_HEAD]
    for name in sorted(rooms, key=_place):
        parts += _section(name, modules.get(name), rooms[name])
    return "\n".join(parts)


def _place(room: str) -> tuple[int, str]:
    return ("cache", "plugins", "scheduler").index(room.split(".", maxsplit=1)[0]), room


def _section(name: str, room: Module | None, modules: Iterable[Module]) -> Iterator[str]:
    folder = name.replace(".", "/")
    yield f"## {folder}\n"
    text = "" if room is None else ast.get_docstring(room.tree) or ""
    if text:
        yield f"{_plain(text)}\n"
    yield "| module | what it is |\n|---|---|"
    for module in sorted(modules, key=lambda each: each.name):
        yield f"| `{folder}/{module.name.rpartition('.')[2]}.py` | {_first_sentence(module)} |"
    yield ""


def _first_sentence(module: Module) -> str:
    paragraph = " ".join((ast.get_docstring(module.tree) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:]) (?=[A-Z`:])", paragraph)[0]
    return _plain(sentence.rstrip(".:")).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a docstring as Markdown."""
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    del arguments
    PAGE.write_text(code_map(read_modules(ROOT)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

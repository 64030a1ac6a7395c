from __future__ import annotations

import ast

import pytest

from tests.house.code_map import PAGE, ROOT, code_map
from tests.house.source import Module, read_modules

MODULES = read_modules(ROOT)
ROOMS = sorted({each.folder for each in MODULES.values()})


def test_the_map_is_the_one_of_this_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == code_map(MODULES), "make code-map"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_lives_there(room: str) -> None:
    assert f"\n## {room.replace('.', '/')}\n\n" in code_map(MODULES)
    assert ast.get_docstring(MODULES[room].tree)


def test_each_module_has_a_line_with_its_first_sentence() -> None:
    modules = {
        "cache": Module("cache", '"""What is known.\n\nAnd no more: :mod:`plugins`."""', True),
        "cache.node": Module("cache.node", '"""A :class:`~cache.api.Node`, read\nonce. Twice."""'),
    }
    assert code_map(modules).split("## cache\n")[1] == (
        "\nWhat is known.\n\nAnd no more: `plugins`.\n\n"
        "| module | what it is |\n|---|---|\n| `cache/node.py` | A `cache.api.Node`, read once |\n"
    )

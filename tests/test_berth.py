"""What users import, and that it is in all that is given to them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import berth
from plugins import authoring
from plugins.framework.args import ArgsError

ROOT = Path(__file__).resolve().parents[1]
PARTS = {"berth", "cache", "plugins", "scheduler"}


@pytest.mark.parametrize("name", berth.__all__)
def test_it_has_the_names_of_the_program(name: str) -> None:
    whose = ArgsError if name == "ArgsError" else getattr(authoring, name)
    assert getattr(berth, name) is whose


def test_wheel_and_archive_have_all_parts() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert set(build["targets"]["wheel"]["packages"]) == PARTS
    assert set(build["targets"]["sdist"]["include"]) >= PARTS


def test_the_image_is_built_from_all_parts() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()}
    assert let_through >= PARTS

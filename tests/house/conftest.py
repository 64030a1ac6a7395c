"""Small made-up checkouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.house.source import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Build: TypeAlias = "Callable[[dict[str, str]], Path]"


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return what writes files, by their paths, into a checkout that has the three packages."""

    def written(files: dict[str, str]) -> Path:
        packages = {f"{package}/__init__.py": "" for package in PACKAGES}
        for name, text in (packages | files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return written

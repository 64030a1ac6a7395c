from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from tests.release.images import why_not
from tests.release.krew import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

OTHER = next(name for name, machine in ARCHITECTURES.items() if machine != platform.machine())


def test_an_image_for_this_machine_can_be_built(tmp_path: Path) -> None:
    here = {machine: name for name, machine in ARCHITECTURES.items()}[platform.machine()]
    assert why_not(here, tmp_path) is None


def test_an_image_for_another_machine_needs_an_interpreter(tmp_path: Path) -> None:
    assert f"no interpreter such as qemu-{ARCHITECTURES[OTHER]}" in str(why_not(OTHER, tmp_path))


@pytest.mark.parametrize(("state", "can"), [("enabled", True), ("disabled", False)])
def test_an_interpreter_that_is_registered_is_used(tmp_path: Path, state: str, can: bool) -> None:
    (tmp_path / f"qemu-{ARCHITECTURES[OTHER]}").write_text(f"{state}\ninterpreter /usr/bin/qemu\n")
    assert (why_not(OTHER, tmp_path) is None) == can

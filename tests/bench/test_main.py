from __future__ import annotations

from importlib import import_module

import pytest

from tests.bench.__main__ import COMMANDS, main


@pytest.mark.parametrize("module", COMMANDS.values())
def test_every_command_can_be_run(module: str) -> None:
    assert callable(import_module(module).main)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = [line.split()[0] for line in capsys.readouterr().err.splitlines() if line]
    assert command in told


@pytest.mark.parametrize("arguments", [[], ["rnu"]], ids=repr)
def test_others_are_refused(arguments: list[str]) -> None:
    assert main(arguments) == 2

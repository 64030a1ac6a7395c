from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from scheduler.cli import main
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import write_dump

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return write_dump(tmp_path / "dump.json", node("n1").capacity(cpu="4"), pod("web"))


def test_the_address_is_printed_and_answers_until_it_is_stopped(dump: str) -> None:
    command = [sys.executable, "-m", "scheduler", "ui", "--from", dump]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as response:
            assert "default/" in response.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--from", "/no/such"], "/no/such cannot be read", id="no file"),
        pytest.param(["--from", "DUMP", "--kubeconfig", "k"], "contradict each other", id="two"),
        pytest.param(["--from", "DUMP", "--config", "/no/such"], "/no/such", id="no config"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    dump: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", *(dump if each == "DUMP" else each for each in arguments)]) == 1
    assert sentence in capsys.readouterr().err


def test_nothing_to_show_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", "--from", write_dump(tmp_path / "empty.json")]) == 1
    assert "neither a node nor a pod" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--port=70000", "--port=x", "--refresh=0", "--refresh=nan"])
def test_a_number_out_of_range_is_wrong_usage(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["ui", flag])
    assert "is not a" in capsys.readouterr().err

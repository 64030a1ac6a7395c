"""The demo as its users start it: a process of its own, from its first line to its last."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("controlplane_binaries")]

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120.0


class Start(Protocol):
    """Starts a small demo with these arguments."""

    def __call__(self, *arguments: str) -> subprocess.Popen[str]: ...


@pytest.fixture
def start_demo(tmp_path: Path) -> Iterator[Start]:
    """Starts demos whose folders are made in `tmp_path`, and ends those that go on too long."""
    with contextlib.ExitStack() as started:

        def start(*arguments: str) -> subprocess.Popen[str]:
            demo = started.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.demo", "--nodes=20", "--pods=60", *arguments],
                    cwd=ROOT,
                    env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    encoding="utf-8",
                )
            )
            started.callback(demo.kill)
            return demo

        yield start


def end_of(demo: subprocess.Popen[str]) -> str:
    """Return what else it prints until it ends."""
    output, _ = demo.communicate(timeout=DEADLINE_S)
    return output


def read_until(demo: subprocess.Popen[str], words: str) -> None:
    """Read its output up to the line with `words`."""
    assert demo.stdout is not None
    read = ""
    for line in demo.stdout:
        if words in line:
            return
        read += line
    pytest.fail(f"the demo ended before it said {words!r}:\n{read}")


def processes_with(words: str) -> list[str]:
    """Return the command lines of this machine's processes that hold `words`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if words in command:
            found.append(command.replace("\0", " "))
    return found


def test_it_ends_by_itself_with_everything_in_its_place(start_demo: Start) -> None:
    demo = start_demo()
    output = end_of(demo)
    assert demo.returncode == 0, output
    assert "all that should be bound is bound, nothing else is" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interrupted_demo_leaves_nothing_behind(
    start_demo: Start, tmp_path: Path, number: signal.Signals
) -> None:
    demo = start_demo()
    read_until(demo, "nodes created")
    demo.send_signal(number)
    output = end_of(demo)
    assert demo.returncode == 130, output
    assert list(tmp_path.iterdir()) == []
    assert_no_process_is_left(tmp_path)


def test_a_kept_demo_stays_until_it_is_interrupted(start_demo: Start, tmp_path: Path) -> None:
    demo = start_demo("--keep")
    read_until(demo, "curl http://127.0.0.1:")
    read_until(demo, "Ctrl-C ends it")
    assert processes_with(str(tmp_path)) != []
    demo.send_signal(signal.SIGINT)
    output = end_of(demo)
    assert demo.returncode == 0, output
    assert_no_process_is_left(tmp_path)


def assert_no_process_is_left(tmp_path: Path) -> None:
    # All servers carry a path of the control plane's folder in their command lines.
    deadline_s = time.monotonic() + 30
    while left := processes_with(str(tmp_path)):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.02)

"""A call that never comes back ends the process, whatever it holds."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from scheduler.user_plugins.containment import Containment, ContainmentOptions, PluginCode
from scheduler.user_plugins.containment.crash_note import Note
from scheduler.user_plugins.containment.watchdog import Watchdog

PROCESS = """
    import ctypes, pathlib, sys, time
    from scheduler.user_plugins.containment import Containment, ContainmentOptions, PluginCode

    def sleeps():
        time.sleep(3600)

    def loops():
        while True:
            pass

    def holds_the_lock():
        ctypes.PyDLL(None).sleep(3600)

    options = ContainmentOptions(timeout_s=0.5, state_dir=pathlib.Path(sys.argv[1]))
    guard = Containment(options).guard(PluginCode("Cheap", "digest"))
    guard.call("Cheap", "filter", lambda: 1)
    guard.call("Cheap", "filter", globals()[sys.argv[2]])
"""


@pytest.mark.parametrize("how", ["sleeps", "loops", "holds_the_lock"])
def test_the_process_ends_and_the_next_one_knows_why(tmp_path, how):
    script = textwrap.dedent(PROCESS)
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), how],
        timeout=300,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1, ended.stderr
    containment = Containment(ContainmentOptions(timeout_s=0.5, state_dir=tmp_path))
    guard = containment.guard(PluginCode("Cheap", "digest"))
    assert containment.troubles() == {
        "Cheap": "is left out, and it is skipped: filter did not come back within 0.5 s"
    }
    assert guard.report().left_out
    containment.stop()
    tracebacks = ended.stderr + "".join(
        path.read_text() for path in tmp_path.glob("plugin-traceback*")
    )
    assert f"in {how}" in tracebacks


def test_a_process_without_calls_is_left_alone(tmp_path):
    """The clock in C stops once nobody calls: no other thread has to run in time."""
    script = """
        import pathlib, sys, threading, faulthandler, time
        from scheduler.user_plugins.containment import Containment, ContainmentOptions, PluginCode
        containment = Containment(ContainmentOptions(timeout_s=0.2))
        guard = containment.guard(PluginCode("Cheap", "digest"))
        guard.call("Cheap", "filter", lambda: 1)
        watchdog = containment._watchdog
        while watchdog.armed:
            time.sleep(0.01)
        print("at rest", flush=True)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        timeout=300,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (0, "at rest\n"), ended.stderr


def test_the_clock_stands_still_until_the_first_call():
    armed: list[bool] = []
    enough = threading.Event()

    def look() -> None:
        armed.append(watchdog.armed)
        if len(armed) == 3:
            enough.set()

    watchdog = Watchdog(Note(None), 3600.0, duties=(look,), tick_s=0.001)
    watchdog.start()
    assert enough.wait(60)
    watchdog.stop()
    assert not any(armed)

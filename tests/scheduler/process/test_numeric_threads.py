from __future__ import annotations

import os
import subprocess
import sys

from scheduler.process.numeric_threads import start_no_numeric_threads

RUN = """
import os, sys
from scheduler import cli
assert "numpy" not in sys.modules
try:
    cli.main(["run", "--help"])
finally:
    assert "numpy" in sys.modules
    print(f"threads={len(os.listdir('/proc/self/task'))}", os.environ["OPENBLAS_NUM_THREADS"])
"""


def run(**environment):
    """Run a command in a process of its own; return its threads, and what OpenBLAS was told."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    answer = subprocess.run(
        [sys.executable, "-c", RUN],
        env=kept | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    threads, told = answer.stdout.splitlines()[-1].split()
    return int(threads.removeprefix("threads=")), told


def test_importing_numpy_starts_no_threads():
    assert run() == (1, "1")


def test_an_environment_that_says_otherwise_is_left_alone():
    threads, told = run(OPENBLAS_NUM_THREADS="2")
    assert told == "2"
    assert threads == min(2, len(os.sched_getaffinity(0)))


def test_both_variables_are_set(monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    start_no_numeric_threads()
    assert os.environ == {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

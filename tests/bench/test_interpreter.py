"""The Python that measurements use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.bench.interpreter import candidates, fastest, seconds

if TYPE_CHECKING:
    from pathlib import Path


def test_each_python_on_the_path_is_a_candidate_once(tmp_path: Path) -> None:
    for name in ("python3", "python3.12", "python2"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = candidates(str(tmp_path))
    assert [each for each in found if each.startswith(str(tmp_path))] == [
        str(tmp_path / "python3"),
        str(tmp_path / "python3.12"),
    ]


def test_what_cannot_run_the_loop_is_left_out(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert list(seconds([str(broken), sys.executable])) == [sys.executable]


def test_the_one_with_the_shortest_time_is_taken() -> None:
    assert fastest({"a": 0.2, "b": 0.1}, "c") == "b"
    assert fastest({}, "c") == "c"

"""``python -m tests.bench.interpreter``: the fastest Python of this machine, for measurements.

The image's Python is compiled with profile-guided and link-time optimisation, as Debian's is. One
that was compiled on the machine usually is not, and takes half as long again for the same code. No
name and no build variable says so in all of them, so each runs a loop of what schedulers do.

It needs no package, because the environment of the benchmarks is made with what it prints.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OLDEST = (3, 11)
"""The oldest minor version that berth runs on."""

_NEWEST_MINOR = 14
_ROUNDS = 5

_PROBE = f"""
import sys, time
class Row:
    __slots__ = ("name", "free")
    def __init__(self, name, free):
        self.name, self.free = name, free
    def left(self, wanted):
        return self.free - wanted
def loop():
    began, found = time.perf_counter(), {{}}
    for index in range(20_000):
        row = Row(f"node-{{index}}", (index, index + 1))
        found[index % 500] = row.name, [amount - 1 for amount in row.free], isinstance(row, Row)
    return time.perf_counter() - began
if sys.version_info >= {OLDEST}:
    print(min(loop() for _ in range({_ROUNDS})))
"""


def candidates(path: str) -> list[str]:
    """Return the Pythons on a search path, and in the system's folder, each once, without links."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], _NEWEST_MINOR + 1))]
    places = [shutil.which(name, path=each) for name in names for each in (path, "/usr/bin")]
    return list(dict.fromkeys(os.path.realpath(place) for place in places if place is not None))


def seconds(pythons: Iterable[str]) -> dict[str, float]:
    """Return how long each takes for the loop; those that are too old or fail are not there."""
    found = {}
    for python in pythons:
        ran = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, check=False
        )
        if ran.returncode == 0 and ran.stdout:
            found[python] = float(ran.stdout)
    return found


def fastest(seconds_of: Mapping[str, float], default: str) -> str:
    """Return the one that took the shortest time."""
    return min(seconds_of, key=lambda python: seconds_of[python], default=default)


if __name__ == "__main__":
    # Not that of a virtual environment, which may be the one that is about to be made.
    found = candidates(os.environ.get("PATH", os.defpath))
    outside = [each for each in found if not (Path(each).parent.parent / "pyvenv.cfg").exists()]
    print(fastest(seconds(outside), sys.executable))

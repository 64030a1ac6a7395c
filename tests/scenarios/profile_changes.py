"""How long it takes until a change of a SchedulingProfile is in force, while kopf is in trouble.

    python -m tests.scenarios.profile_changes --rounds 5

Berth runs in this process, on a real API server. Time is taken from the change, or from when what
was closed is opened again, until the changed profile decides. `killed`: all of kopf's tasks are
cancelled at the moment of the change. `cut-off`: kopf alone reaches no API server for ten seconds,
and the change is made meanwhile. `all-cut-off`: nor does anything else of berth. `silent`: kopf's
connections pass nothing on any more, and are not closed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scheduler.profiles.operator import OperatorOptions
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.scenarios.profile_world import (
    Gate,
    World,
    kill_kopf,
    known,
    make_world,
    wait_watched,
    watch_of,
)
from tests.scenarios.replicas import wait_until
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOSED_S: Final = 10.0


# Each has a change made; returns when the clock starts, and the generation to wait for.


def healthy(berth: RunningBerth, gate: Gate, change: Callable[[], int]) -> tuple[float, int]:
    return time.monotonic(), change()


def killed(berth: RunningBerth, gate: Gate, change: Callable[[], int]) -> tuple[float, int]:
    kill_kopf(watch_of(berth))
    return time.monotonic(), change()


def cut_off(berth: RunningBerth, gate: Gate, change: Callable[[], int]) -> tuple[float, int]:
    gate.close()
    generation = change()
    # The length of the outage, not a wait for something to happen.
    time.sleep(_CLOSED_S)
    gate.open()
    return time.monotonic(), generation


def silent(berth: RunningBerth, gate: Gate, change: Callable[[], int]) -> tuple[float, int]:
    gate.freeze()
    return time.monotonic(), change()


SCENES: Final = {
    "healthy": healthy,
    "killed": killed,
    "cut-off": cut_off,
    "all-cut-off": cut_off,
    "silent": silent,
}


def measure(world: World, scene: str, name: str, folder: Path) -> float:
    """Change a SchedulingProfile under a fresh berth; return how long it took, in seconds."""
    with Gate(world) as gate:
        way = gate.kubeconfig(folder)
        through = None if scene == "all-cut-off" else str(way)
        options = OperatorOptions(enabled=True, kopf_kubeconfig=through)
        kubeconfig = way if through is None else world.kubeconfig
        with RunningBerth(kubeconfig, operator=options) as berth:
            wait_watched(berth)
            world.profiles.create(name, {"schedulerName": name})
            wait_until(lambda: known(berth).get(name) == 1, "it is taken over")

            def change() -> int:
                changed = world.profiles.patch(name, {"percentageOfNodesToScore": 10})
                return int(changed["metadata"]["generation"])

            began_s, generation = SCENES[scene](berth, gate, change)
            wait_until(lambda: known(berth).get(name) == generation, "it decides")
            return time.monotonic() - began_s


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.profile_changes")
    parser.add_argument("scenes", metavar="SCENE", nargs="*", help=", ".join(SCENES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    with (
        ControlPlane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        tempfile.TemporaryDirectory() as folder,
    ):
        world = make_world(plane, api)
        world.profiles.install()
        for name in options.scenes or SCENES:
            times = [
                measure(world, name, f"{name}-{number}", Path(folder))
                for number in range(options.rounds)
            ]
            print(
                f"{name:12} median {statistics.median(times):6.2f} s, "
                f"from {min(times):.2f} to {max(times):.2f} s"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The README's plugin, typed in while berth runs: what happens, and how soon.

    python -m tests.scenarios.readme_plugin

Berth runs with the flags that the README gives it, and an empty folder for plugins. Pods come one
after another. Then the README's file is written into the folder, changed, broken, and taken away
again; each time the placements tell when it took effect.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable

README: Final = Path(__file__).parents[2] / "README.md"
COST: Final = "example.com/cost-per-hour"
NODES: Final = 9
CHEAP: Final = "node-4"
SPOT: Final = "node-5"
"""Costs less than any other, but pods that matter stay away from it."""

PLUGINS: Final = "policies"
STATE: Final = "berth-state"
"""Folders by the names that the README gives them."""

_TAKE_A_FOLDER: Final = frozenset({"--plugin-dir", "--state-dir"})

IN_A_ROW: Final = 5
"""So many pods on one of nine equal nodes are no accident."""

STAY: Final = 40
"""Pods that stay; older ones go, so that no node fills up while berth has not read the file yet."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When each change of the file took effect, in seconds after it was written."""

    before: tuple[str, ...]
    """Where pods went without a plugin."""
    written_s: float
    changed_s: float
    after_breaking: tuple[str, ...]
    """Where pods went while the file could not be read as Python."""
    removed_s: float
    restarts: int
    noted: tuple[str, ...]
    """What berth has written into the folder for its notes."""


def readme_plugin() -> str:
    """Return the Python in the README's section about plugins."""
    (text,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    return str(text)


def readme_flags(folder: Path) -> list[str]:
    """Return what the README's section about plugins types in after ``berth``.

    The folders that it names lie in ``folder``, and those that it makes are made.
    """
    ((made, flags),) = re.findall(r"```console\nmkdir (\S+)\nberth (.*?)\n```", README.read_text())
    (folder / made).mkdir()
    words = shlex.split(flags)
    return [
        str(folder / word) if before in _TAKE_A_FOLDER else word
        for before, word in zip(["", *words], words, strict=False)
    ]


class _Scene:
    def __init__(self, api: BlockingApi, folder: Path) -> None:
        self._api = api
        self._numbers = count()
        self._there: deque[str] = deque()
        self.file = folder / "cheap_nodes_first.py"

    def place(self) -> str:
        """Make a pod, and return the node it goes to."""
        name = f"pod-{next(self._numbers):04}"
        self._api.create_many(
            [
                make_pod(
                    name, cpu="100m", memory="400Mi", priorityClassName="system-cluster-critical"
                )
            ]
        )
        path = f"/api/v1/namespaces/default/pods/{name}"
        placed: list[str] = []

        def is_bound() -> bool:
            node = self._api.get(path)["spec"].get("nodeName")
            if node:
                placed.append(node)
            return bool(node)

        self._api.wait_until(is_bound, f"{name} is bound")
        self._there.append(path)
        if len(self._there) > STAY:
            self._api.delete(self._there.popleft())
        return placed[0]

    def until(self, holds: Callable[[list[str]], bool], what: str) -> float:
        """Place pods until the last few look as they should; return when the first of them came."""
        began, last = time.monotonic(), list[tuple[float, str]]()
        while True:
            asked_at = time.monotonic() - began
            last = [*last, (asked_at, self.place())][-IN_A_ROW:]
            if len(last) == IN_A_ROW and holds([node for _, node in last]):
                return last[0][0]
            if asked_at > 120:
                raise TimeoutError(f"never: {what}; the last went to {last}")


def run() -> Outcome:
    """Play it on a control plane of its own."""
    with (
        ControlPlane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        tempfile.TemporaryDirectory() as folder,
    ):
        cost = {CHEAP: "0.2", SPOT: "0.1"}
        api.create_many(
            make_node(
                name,
                cpu="16",
                memory="64Gi",
                labels={COST: cost.get(name, "1.0"), "lifecycle": "spot" if name == SPOT else "on"},
            )
            for name in (f"node-{at}" for at in range(NODES))
        )
        command = [sys.executable, "-m", "scheduler", *readme_flags(Path(folder))]
        command += ["--kubeconfig", str(plane.berth_kubeconfig())]
        command += ["--secure-port", "0", "--insecure-bind-address", "127.0.0.1:0"]
        berth = ServerProcess(command, plane.folder / "berth.log")
        try:
            scene = _Scene(api, Path(folder) / PLUGINS)
            return _play(scene, berth, Path(folder) / STATE)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{berth.log_tail()}") from error
        finally:
            berth.kill()


def _play(scene: _Scene, berth: ServerProcess, state: Path) -> Outcome:
    before = tuple(scene.place() for _ in range(2 * NODES))
    text = readme_plugin()
    scene.file.write_text(text)
    written_s = scene.until(lambda nodes: set(nodes) == {CHEAP}, "pods go to the cheap node")
    dear = text.replace("higher_is_better = False", "higher_is_better = True")
    scene.file.write_text(dear)
    changed_s = scene.until(lambda nodes: CHEAP not in nodes, "pods go to dear nodes")
    scene.file.write_text(text)
    scene.until(lambda nodes: set(nodes) == {CHEAP}, "pods go to the cheap node again")
    scene.file.write_text(text + "\nthis is no Python\n")
    berth_saw = "plugin code is not used"
    deadline = time.monotonic() + 60
    while berth_saw not in berth.log_file.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise TimeoutError("berth did not notice that the file is broken")
        time.sleep(0.05)
    after_breaking = tuple(scene.place() for _ in range(IN_A_ROW))
    scene.file.unlink()
    removed_s = scene.until(lambda nodes: CHEAP not in nodes, "pods go everywhere again")
    restarts = 0 if berth.exit_status is None else 1
    noted = tuple(sorted(each.name for each in state.iterdir()))
    return Outcome(before, written_s, changed_s, after_breaking, removed_s, restarts, noted)


def main() -> int:
    """Run from the command line; 0 when everything took effect within 5 seconds."""
    outcome = run()
    print(f"without a plugin {len(outcome.before)} pods went to {len(set(outcome.before))} nodes")
    print(f"the plugin is written:  it decides after {outcome.written_s:.1f} s")
    print(f"it is changed:          it decides after {outcome.changed_s:.1f} s")
    print(f"it is broken:           pods go to {set(outcome.after_breaking)} as before")
    print(f"it is taken away:       it decides no more after {outcome.removed_s:.1f} s")
    return 0 if max(outcome.written_s, outcome.changed_s, outcome.removed_s) <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())

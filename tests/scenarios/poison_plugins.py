"""Plugins that are good with most pods and bad with some, under load: what becomes of both.

    python -m tests.scenarios.poison_plugins [--pods 500]

A plugin that is bad with every pod does not get through its trial. These wait for a pod of one
kind, as a plugin would that nobody has tried with it: then one raises, one sleeps, one answers with
too few nodes, one asks for more memory than there is, and one writes into what it was shown. They
sit in one profile. Each is switched off in the end: those that fail because their pod comes again
and again, the one that sleeps because several such pods come, and its calls take more than the
budget on average. Then one does not return at all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NODES: Final = 6
PATIENCE_S: Final = 240.0
"""The machine may be busy with much else."""

TIMEOUT_S: Final = 10.0
"""Of a call that does not return; on a busy machine others take seconds, too."""

_PLUGIN: Final = """
import time

import numpy as np


class {name}:
    def filter(self, pod, nodes):
        good = np.ones(len(nodes), dtype=np.bool_)
        if pod.labels.get("poison") == "{name}":
            {poison}
        return good
"""

POISONS: Final[Mapping[str, str]] = {
    "Raises": 'return {}["a rack that nobody has"]',
    "Sleeps": "time.sleep(0.4)",
    "WrongShape": "return good[1:]",
    "Allocates": "return np.zeros(1 << 50)",
    "Mutates": 'nodes.free("cpu")[0] = 0',
}
NEVER_RETURNS: Final = "NeverReturns"

BAD_PODS: Final[Mapping[str, int]] = {**dict.fromkeys(POISONS, 1), "Sleeps": 6}
"""How many pods there are that a plugin is bad with. A pod that a plugin raises over is tried again
until that is switched off; one that it sleeps over is placed at once, so it takes several."""


@dataclass
class Outcome:
    """What a person would see."""

    pods: int = 0
    placed: int = 0
    """Of the ordinary pods, while plugins misbehaved."""
    seconds: float = 0.0
    """From the first pod to the last ordinary one."""
    poisoned_placed: set[str] = field(default_factory=set)
    """The plugins whose bad pods were placed in the end."""
    events: dict[str, list[str]] = field(default_factory=dict)
    """By plugin, what the Events of its bad pod say."""
    failures: dict[tuple[str, str], float] = field(default_factory=dict)
    """By plugin and kind."""
    switched_off: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By plugin, the kind of failure for which it was switched off first, and why in words."""
    passed_over: dict[str, float] = field(default_factory=dict)
    """By plugin, how many calls were not made."""
    harmed: list[str] = field(default_factory=list)
    """Lines of the log that tell of connections that broke, before any call hung."""
    ended_by_hanging: bool = False
    """Whether the process ended when a call did not return."""
    told_after_restart: str = ""
    """What the log of the next process says of that."""
    placed_after_restart: set[str] = field(default_factory=set)


class Scene:
    """A berth with a folder of plugins, which is started again when it has ended."""

    def __init__(self, plane: ControlPlane, api: BlockingApi, folder: Path) -> None:
        self.api = api
        self._plane = plane
        self.plugins = folder / "plugins"
        self._state = folder / "state"
        self.plugins.mkdir()
        self._kubeconfig = plane.berth_kubeconfig()
        self.berth: ServerProcess | None = None
        self._starts = 0

    def write(self, name: str, poison: str) -> None:
        (self.plugins / f"{name.lower()}.py").write_text(_PLUGIN.format(name=name, poison=poison))

    def start(self) -> ServerProcess:
        self.stop()
        self._starts += 1
        command = [sys.executable, "-m", "scheduler", "run", "--plugin-dir", str(self.plugins)]
        command += ["--state-dir", str(self._state), "--plugin-timeout", str(TIMEOUT_S)]
        command += ["--kubeconfig", str(self._kubeconfig), "--leader-elect", "false"]
        command += ["--secure-port", "0", "--insecure-bind-address", "127.0.0.1:0"]
        self.berth = ServerProcess(command, self._plane.folder / f"berth-{self._starts}.log")
        return self.berth

    def stop(self) -> None:
        if self.berth is not None:
            self.berth.kill()

    def log(self) -> str:
        assert self.berth is not None
        return self.berth.log_file.read_text(errors="replace")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        berth = self.berth
        assert berth is not None
        self.api.wait_until(
            lambda: berth.exit_status is not None or holds(), what, timeout_s=PATIENCE_S
        )
        assert holds(), f"berth ended before {what}:\n{self.log()[-4000:]}"

    def bound(self, prefix: str) -> set[str]:
        return {
            pod["metadata"]["name"]
            for pod in self.api.pods()
            if pod["metadata"]["name"].startswith(prefix) and pod["spec"].get("nodeName")
        }

    def events_of(self, pod: str) -> list[str]:
        events = self.api.list_all("/apis/events.k8s.io/v1/namespaces/default/events")
        return [each.get("note", "") for each in events if each["regarding"].get("name") == pod]

    def failures(self) -> dict[tuple[str, str], float]:
        """Scrape what is counted of failures."""
        lines = self._scraped(r'berth_plugin_failures_total{plugin="(\w+)",kind="(\w+)"} (\S+)')
        return {(plugin, kind): float(count) for plugin, kind, count in lines}

    def passed_over(self) -> dict[str, float]:
        """Scrape how many calls were not made."""
        lines = self._scraped(r'berth_plugin_passed_over_total{plugin="(\w+)"} (\S+)')
        return {plugin: float(count) for plugin, count in lines}

    def switched_off(self) -> dict[str, tuple[str, str]]:
        """Read in the log which plugins were switched off: for what kind of failure, and why."""
        found: dict[str, tuple[str, str]] = {}
        for line in self.log().splitlines():
            if line.startswith("{") and '"plugin switched off"' in line:
                told = json.loads(line)
                found.setdefault(told["plugin"], (told["kind"], told["why"]))
        return found

    def _scraped(self, pattern: str) -> list[Any]:
        found = re.search(r'"address":"?(?:http://)?([\d.]+:\d+)', self.log())
        assert found is not None, self.log()
        with urllib.request.urlopen(f"http://{found[1]}/metrics") as answer:
            text = answer.read().decode()
        return re.findall(f"^{pattern}", text, re.MULTILINE)


def bad_pods(plugin: str) -> list[dict[str, Any]]:
    """Return the pods that a plugin is bad with."""
    return [bad_pod(plugin, f"bad-{plugin.lower()}-{at}") for at in range(BAD_PODS[plugin])]


def bad_pod(plugin: str, name: str) -> dict[str, Any]:
    """Return a pod that a plugin is bad with."""
    return make_pod(name, cpu="10m", memory="16Mi", labels={"poison": plugin})


def play(scene: Scene, pods: int) -> Outcome:
    """Play both parts."""
    outcome = Outcome(pods=pods)
    scene.api.create_many([make_node(f"node-{at}", cpu="64", pods="1000") for at in range(NODES)])
    for name, poison in POISONS.items():
        scene.write(name, poison)
    scene.start()
    scene.wait_until(lambda: '"scheduling"' in scene.log(), "berth schedules")
    began = time.monotonic()
    half = [make_pod(f"good-{at:04}", cpu="10m", memory="16Mi") for at in range(pods)]
    scene.api.create_many(half[: pods // 2])
    bad = {pod["metadata"]["name"]: pod for name in POISONS for pod in bad_pods(name)}
    scene.api.create_many(bad.values())
    scene.api.create_many(half[pods // 2 :])
    scene.wait_until(lambda: len(scene.bound("good-")) == pods, "the good pods are placed")
    outcome.seconds = time.monotonic() - began
    outcome.placed = len(scene.bound("good-"))
    scene.wait_until(lambda: scene.bound("bad-") == set(bad), "the bad pods are placed too")
    outcome.poisoned_placed = {_poison_of(bad[name]) for name in scene.bound("bad-")}
    scene.wait_until(
        lambda: all(scene.events_of(pod) for pod in bad), "there are Events of the bad pods"
    )
    for name, pod in bad.items():
        outcome.events.setdefault(_poison_of(pod), []).extend(scene.events_of(name))
    outcome.switched_off = scene.switched_off()
    outcome.passed_over = scene.passed_over()
    outcome.failures = scene.failures()
    outcome.harmed = [line for line in scene.log().splitlines() if "Fatal error" in line]
    _hang(scene, outcome)
    return outcome


def _poison_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["poison"])


def _hang(scene: Scene, outcome: Outcome) -> None:
    """Have a plugin not return; start berth again when it has ended, as a kubelet does."""
    scene.write(NEVER_RETURNS, "while True: time.sleep(1)")
    scene.wait_until(lambda: f'"{NEVER_RETURNS}"' in scene.log(), "the plugin is taken over")
    berth = scene.berth
    assert berth is not None
    scene.wait_until(lambda: "policy" in scene.log(), "profiles are swapped")
    names = iter(f"bad-again-{number}" for number in range(1000))
    deadline = time.monotonic() + PATIENCE_S
    while berth.exit_status is None and time.monotonic() < deadline:
        # The profile may not have been swapped yet: then the pod is placed, and another comes.
        scene.api.create_many([bad_pod(NEVER_RETURNS, next(names))])
        until = time.monotonic() + TIMEOUT_S
        while berth.exit_status is None and time.monotonic() < until:
            time.sleep(0.05)
    outcome.ended_by_hanging = berth.exit_status is not None
    scene.start()
    scene.wait_until(lambda: '"scheduling"' in scene.log(), "berth schedules again")
    scene.api.create_many([make_pod("later-good", cpu="10m", memory="16Mi")])
    waiting = {pod["metadata"]["name"] for pod in scene.api.pods()}
    scene.wait_until(lambda: waiting <= scene.bound(""), "all pods are placed")
    outcome.placed_after_restart = {name for name in waiting if not name.startswith("good-")}
    lines = [line for line in scene.log().splitlines() if "previous process ended" in line]
    outcome.told_after_restart = "\n".join(lines)


def run(pods: int = 60) -> Outcome:
    """Play it on a control plane of its own."""
    with (
        ControlPlane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        tempfile.TemporaryDirectory() as folder,
    ):
        scene = Scene(plane, api, Path(folder))
        try:
            return play(scene, pods)
        finally:
            scene.stop()


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.poison_plugins")
    parser.add_argument("--pods", type=int, default=500)
    outcome = run(parser.parse_args().pods)
    print(f"{outcome.placed} of {outcome.pods} good pods placed in {outcome.seconds:.1f} s")
    for name, told in outcome.events.items():
        print(f"{name}:")
        for text in dict.fromkeys(told):
            print(f"    {text}")
        for (plugin, failure), count in outcome.failures.items():
            if plugin == name:
                print(f"    {count:.0f} failures of kind {failure}")
        kind, why = outcome.switched_off.get(name, ("", "never"))
        print(f"    switched off ({kind}: {why}), {outcome.passed_over[name]:.0f} calls not made")
    print(f"{NEVER_RETURNS}: the process ended: {outcome.ended_by_hanging}; the next one says:")
    print(f"    {outcome.told_after_restart}")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())

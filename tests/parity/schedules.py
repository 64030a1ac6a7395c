"""Whole schedules: berth and kube-scheduler itself place the same pods, one after another.

The two break ties by chance, so their traces part soon. Each step of a trace is therefore judged
in the state in which it was taken, by the other side: a step of berth's must lie in the oracle's
set of best nodes, a step of kube-scheduler's in berth's set. States are made of the API server's
own objects.

``python -m tests.parity.schedules --clusters N``
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.bench.contenders import Berth, KubeScheduler
from tests.controlplane.api import ApiError
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.parity.nodes import nodes
from tests.parity.pod_terms import workloads
from tests.parity.pods import plain_pods
from tests.parity.processes import Pair
from tests.parity.vocabulary import NAMESPACES, NODE_NAMES, Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.contenders import Contender

DEFAULT_CLUSTERS = 200
_PODS = 12


class ScheduleError(AssertionError):
    """A step that the other side would not have taken; the message holds its state."""


@dataclass(frozen=True)
class Step:
    """A pod that was placed, or that was refused, and the state that it met."""

    state: tuple[Json, ...]
    pod: Json
    node_name: str | None


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """Nodes and services, and the pods that come one after another."""
    names = NODE_NAMES[: draw(st.integers(2, len(NODE_NAMES)))]
    objects = [draw(nodes(name, sound=draw(_SOUND))) for name in names]
    objects += [each for each in draw(workloads()) if each["kind"] == "Service"]
    for each in objects:
        if each["kind"] == "Service":
            each["spec"]["ports"] = [{"port": 80}]
    pods = [draw(plain_pods(f"pod-{index}")) for index in range(_PODS)]
    return objects, pods


_SOUND = st.sampled_from([True, True, False])


class Stage:
    """A control plane on which one cluster after another is played."""

    def __init__(self, control_plane: ControlPlane, api: BlockingApi, pair: Pair) -> None:
        self._control_plane = control_plane
        self._api = api
        self._pair = pair
        self.placed = 0
        """Steps that found a node."""
        self.refused = 0
        """Steps that found none."""

    def play(self, objects: Sequence[Json], pods: Sequence[Json]) -> None:
        """Let both place the pods, and judge every step.

        Raises
        ------
        ScheduleError
            When a step is not one of the best.
        """
        for contender, judge in ((Berth(), "oracle"), (KubeScheduler(all_nodes=True), "berth")):
            for step in self._trace(contender, objects, pods):
                self._judge(contender.name, judge, step)

    def _trace(
        self, contender: Contender, objects: Sequence[Json], pods: Sequence[Json]
    ) -> list[Step]:
        for each in objects:
            self._create(each)
        process = contender.start(self._control_plane)
        try:
            steps = []
            for pod in pods:
                named = {**pod["spec"], "schedulerName": contender.scheduler_name}
                step = self._place({**pod, "spec": named})
                if step is not None:
                    steps.append(step)
            return steps
        finally:
            process.terminate()
            self._clear()

    def _place(self, pod: Json) -> Step | None:
        """Create a pod and wait for its fate; None when the API server refuses the pod."""
        state = self._state()
        created = self._create(pod)
        if created is None:
            return None
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        seen: Json = {}

        def decided() -> bool:
            seen.update(self._api.get(path))
            return bool(seen["spec"].get("nodeName") or seen["status"].get("conditions"))

        self._api.wait_until(decided, f"{pod['metadata']['name']} to be placed or refused")
        node_name = seen["spec"].get("nodeName")
        if node_name is None:
            # A pod that waits could be placed at any later time, when nobody looks.
            self._api.delete(path)
        return Step(state, {"apiVersion": "v1", "kind": "Pod", **created}, node_name)

    def _create(self, value: Json) -> Json | None:
        try:
            (created,) = self._api.create_many([value])
        except ApiError as error:
            if value["kind"] == "Pod" and error.status == 422:
                return None
            raise
        return created

    def _state(self) -> tuple[Json, ...]:
        found: list[Json] = []
        for kind, path in _KINDS.items():
            listed = self._api.list_all(path)
            found += [{"apiVersion": "v1", "kind": kind, **each} for each in listed]
        return tuple(found)

    def _clear(self) -> None:
        for kind in ("Pod", "Service", "Node"):
            for each in self._api.list_all(_KINDS[kind]):
                metadata = each["metadata"]
                plural = f"{kind.lower()}s/{metadata['name']}"
                home = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
                if metadata["name"] != "kubernetes":
                    self._api.delete(f"/api/v1{home}/{plural}")

    def _judge(self, who: str, judge: str, step: Step) -> None:
        question = {"objects": list(step.state), "pod": step.pod}
        oracle, berth = self._pair.ask(question)
        answer = oracle if judge == "oracle" else berth
        if "error" in answer:
            raise ScheduleError(f"{judge} cannot answer: {answer['error']}")
        best = best_nodes(answer)
        if step.node_name is None:
            self.refused += 1
            agreed = not best
        else:
            self.placed += 1
            agreed = step.node_name in best
        if not agreed:
            raise ScheduleError(
                f"{who} chose {step.node_name} where {judge} has {sorted(best)} as best\n{question}"
            )


_KINDS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Service": "/api/v1/services",
    "Pod": "/api/v1/pods",
}


def best_nodes(answer: Json) -> set[str]:
    """Return the nodes with the highest total; none when no node can have the pod."""
    totals = {name: each["total"] for name, each in answer["nodes"].items() if "total" in each}
    highest = max(totals.values(), default=None)
    return {name for name, total in totals.items() if total == highest}


def play_schedules(clusters: int, first_seed: int) -> tuple[int, int]:
    """Play so many random clusters; return how many pods were placed and how many refused.

    Raises
    ------
    ScheduleError
        When the two disagree.
    """
    with (
        ControlPlane() as control_plane,
        BlockingApi(control_plane.admin_kubeconfig) as api,
        Pair() as pair,
    ):
        for name in NAMESPACES[1:]:
            labels = {"team": name[-1]}
            metadata = {"name": name, "labels": labels}
            api.create_many([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
        stage = Stage(control_plane, api, pair)

        @seed(first_seed)
        @settings(
            max_examples=clusters,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(scenes())
        def same_choices(scene: tuple[list[Json], list[Json]]) -> None:
            stage.play(*scene)

        same_choices()
        return stage.placed, stage.refused


def main() -> int:
    """Play, report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.schedules")
    parser.add_argument("--clusters", type=int, default=DEFAULT_CLUSTERS, metavar="N")
    parser.add_argument("--seed", type=int, help="of an earlier run, to see the same clusters")
    options = parser.parse_args()
    first_seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"playing {options.clusters} clusters, seed {first_seed}", flush=True)
    started = time.monotonic()
    try:
        placed, refused = play_schedules(options.clusters, first_seed)
    except ScheduleError as error:
        print(f"DIFFERENT\n{error}")
        return 1
    print(f"{placed} pods placed, {refused} refused, each as the other side would have")
    print(f"{time.monotonic() - started:.0f} s, seed {first_seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""scheduler_perf's kinds of pods that have to do with each other, on a real API server.

Nodes, pods and their proportions are those of kube-scheduler 1.36,
test/integration/scheduler_perf, affinity and topology_spreading; each of these workloads waits
until kube-scheduler has placed every pod.

``python -m tests.scenarios.perf_kinds --contenders berth,kube-scheduler``
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tests.bench.contenders import Berth, KubeScheduler
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL, make_namespace, make_node
from tests.scenarios.placement_checker import Placement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.bench.contenders import Contender
    from tests.controlplane.server_process import ServerProcess

Json = dict[str, Any]

NODES = 500

BEFORE, MEASURED = "sched-0", "sched-1"
"""The namespaces of the pods that are there before, and of those that are watched."""

_ROOM = {"cpu": "100m", "memory": "500Mi"}
_BOTH = [MEASURED, BEFORE]
_DEVOPS = {"team": "devops"}


@dataclass(frozen=True)
class Kind:
    """A workload: nodes, then pods, then the pods that count.

    Parameters
    ----------
    name
        scheduler_perf's name.
    pod
        Labels and spec of the pods that count.
    before
        The same of the pods that are placed first.
    shares
        How many pods are placed first and how many then, for each node.
    zones
        Node labels, in turn.
    tainted
        The share of nodes that no pod tolerates.
    namespaces
        The namespaces of the pods that are placed first.
    measured
        The namespace of the pods that count.
    objects
        What else there is.
    fills_nodes
        Whether the shares are such that every pod has a node of its own: they do not scale.
    """

    name: str
    pod: Json
    before: Json
    shares: tuple[float, float]
    zones: tuple[str, ...] = ()
    tainted: float = 0.0
    namespaces: tuple[str, ...] = (BEFORE,)
    measured: str = MEASURED
    objects: tuple[Json, ...] = ()
    fills_nodes: bool = False

    def nodes(self, count: int) -> list[Json]:
        taint = {"key": "foo", "effect": "NoSchedule"}
        tainted = round(count * self.tainted)
        return [
            make_node(
                f"node-{index:05}",
                zone=self.zones[index % len(self.zones)] if self.zones else None,
                taints=[taint] if index < tainted else [],
            )
            for index in range(count)
        ]

    def counts(self, nodes: int, scale: float) -> tuple[int, int]:
        """Return how many pods are placed first, and how many then."""
        factor = nodes if self.fills_nodes else nodes * scale
        before, measured = (round(share * factor) for share in self.shares)
        return before, measured


def _template(labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    return {"labels": dict(labels or {}), "spec": spec}


def _term(color: str, topology_key: str, **where: Any) -> Json:
    selector = {"matchLabels": {"color": color}}
    where = where or {"namespaces": _BOTH}
    return {"labelSelector": selector, "topologyKey": topology_key, **where}


def _required(kind: str, color: str, topology_key: str, **where: Any) -> Json:
    term = _term(color, topology_key, **where)
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return _template({"color": color}, affinity={kind: rules})


def _preferred(kind: str, color: str) -> Json:
    weighted = {"weight": 1, "podAffinityTerm": _term(color, HOSTNAME_LABEL)}
    rules = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return _template({"color": color}, affinity={kind: rules})


def _spread(labels: Mapping[str, str], topology_key: str, max_skew: int, **more: str) -> Json:
    constraint = {
        "maxSkew": max_skew,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
        **more,
    }
    return _template(labels, topologySpreadConstraints=[constraint])


_PLAIN = _template()
_GREEN = _required("podAntiAffinity", "green", HOSTNAME_LABEL)
_BLUE = _required("podAffinity", "blue", ZONE_LABEL)
_RED = _preferred("podAffinity", "red")
_YELLOW = _preferred("podAntiAffinity", "yellow")
_FOREIGN_GREEN = _required(
    "podAntiAffinity", "green", HOSTNAME_LABEL, namespaceSelector={"matchLabels": _DEVOPS}
)
_BLUE_SPREAD = _spread({"color": "blue"}, ZONE_LABEL, 5)
_BLUE_PREFERRED = _spread({"color": "blue"}, ZONE_LABEL, 5, whenUnsatisfiable="ScheduleAnyway")
_ONE_EACH = _spread(
    {"foo": "bar"}, HOSTNAME_LABEL, 1, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Honor"
)
_SERVED = {"app": "scheduler-perf"}
_SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "scheduler-perf", "namespace": MEASURED},
    "spec": {"selector": _SERVED, "ports": [{"port": 80}]},
}
_THREE_ZONES = ("moon-1", "moon-2", "moon-3")
_DEVOPS_SPACES = tuple(f"devops-{index}" for index in range(10))
_DEVOPS_MEASURED = "devops-measured"
_NAMESPACES = (
    *(make_namespace(name) for name in (BEFORE, MEASURED)),
    *(make_namespace(name, _DEVOPS) for name in (*_DEVOPS_SPACES, _DEVOPS_MEASURED)),
)

KINDS = (
    Kind("SchedulingPodAntiAffinity", _GREEN, _GREEN, (0.2, 0.4)),
    Kind("SchedulingPodMatchingAntiAffinity", _template({"color": "green"}), _GREEN, (0.2, 1)),
    Kind("SchedulingPreferredPodAffinity", _RED, _RED, (1, 1)),
    Kind("SchedulingPreferredPodAntiAffinity", _YELLOW, _YELLOW, (1, 1)),
    Kind(
        "RequiredPodAntiAffinityWithNSSelector",
        _FOREIGN_GREEN,
        _FOREIGN_GREEN,
        (2 / 3, 1 / 3),
        namespaces=_DEVOPS_SPACES,
        measured=_DEVOPS_MEASURED,
        fills_nodes=True,
    ),
    Kind("SchedulingPodAffinity", _BLUE, _BLUE, (1, 1), zones=("zone1",)),
    Kind("TopologySpreading", _BLUE_SPREAD, _PLAIN, (1, 1), zones=_THREE_ZONES),
    Kind("PreferredTopologySpreading", _BLUE_PREFERRED, _PLAIN, (1, 1), zones=_THREE_ZONES),
    Kind(
        "DefaultTopologySpreading",
        _template(_SERVED),
        _PLAIN,
        (1, 1),
        zones=_THREE_ZONES,
        objects=(_SERVICE,),
    ),
    Kind(
        "SchedulingWithNodeInclusionPolicy",
        _ONE_EACH,
        _PLAIN,
        (0, 0.8),
        tainted=0.2,
        fills_nodes=True,
    ),
)
"""Kinds with the same nodes stand together: nodes and scheduler go on from one to the next."""


@dataclass(frozen=True)
class Outcome:
    """What became of one kind with one scheduler."""

    expected: int
    """Pods that had to be placed, those that came first included."""
    placed: int
    pods_per_s: float
    """Of the pods that count, from the first one's creation to the last one's binding."""
    placement: Placement


class Stage:
    """A control plane on which one kind after another is played.

    Use it with ``with``: the scheduler that is playing ends with it.
    """

    def __init__(self, control_plane: ControlPlane, api: BlockingApi) -> None:
        self._control_plane = control_plane
        self._api = api
        self._process: ServerProcess | None = None
        self._ground: tuple[object, ...] = ()

    def __enter__(self) -> Self:
        self._api.create_many(_NAMESPACES)
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss()

    def play(
        self,
        kind: Kind,
        contender: Contender,
        *,
        nodes: int = NODES,
        scale: float = 1.0,
        timeout_s: float = 120.0,
    ) -> Outcome:
        """Let a scheduler place the pods of one kind in an otherwise empty cluster."""
        self._set_up(kind, contender, nodes)
        before, measured = kind.counts(nodes, scale)
        places = kind.namespaces
        first = [
            _pod(f"first-{index:05}", places[index % len(places)], kind.before, contender)
            for index in range(before)
        ]
        self._create_and_wait(first, before, None, timeout_s)
        then = [
            _pod(f"then-{index:05}", kind.measured, kind.pod, contender)
            for index in range(measured)
        ]
        pods_per_s = self._create_and_wait(then, measured, kind.measured, timeout_s)
        pods = self._api.pods()
        return Outcome(
            before + measured,
            sum("nodeName" in pod["spec"] for pod in pods),
            pods_per_s,
            Placement(
                self._api.list_all("/api/v1/nodes"), self._api.list_all("/api/v1/namespaces"), pods
            ),
        )

    def _set_up(self, kind: Kind, contender: Contender, nodes: int) -> None:
        for namespace in _NAMESPACES:
            self._delete_all(f"/api/v1/namespaces/{namespace['metadata']['name']}/pods")
        self._delete_all(f"/api/v1/namespaces/{MEASURED}/services")
        ground = (contender.name, nodes, kind.zones, kind.tainted)
        if ground != self._ground:
            # A scheduler that lives through this could place a pod on a node that it has not
            # yet heard is gone.
            self._dismiss()
            self._delete_all("/api/v1/nodes")
            self._api.create_many(kind.nodes(nodes))
            self._process = contender.start(self._control_plane)
            self._ground = ground
        self._api.create_many(kind.objects)

    def _dismiss(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _create_and_wait(
        self, pods: list[Json], count: int, namespace: str | None, timeout_s: float
    ) -> float:
        started = time.monotonic()
        self._api.create_many(pods)
        try:
            progress = self._api.wait_bound(count, namespace=namespace, timeout_s=timeout_s)
        except TimeoutError:
            return 0.0
        return count / (progress.last_s - started) if count else 0.0

    def _delete_all(self, path: str) -> None:
        self._api.run(self._api.client.request("DELETE", path, {"gracePeriodSeconds": 0}))


def _pod(name: str, namespace: str, template: Json, contender: Contender) -> Json:
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": _ROOM, "limits": _ROOM},
    }
    spec = {"schedulerName": contender.scheduler_name, "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": template["labels"]},
        "spec": {**spec, **template["spec"]},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print a line for each kind and scheduler; return 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.perf_kinds")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer pods for each node")
    parser.add_argument("--contenders", default="berth")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    options = parser.parse_args(arguments)
    known: dict[str, Callable[[], Contender]] = {
        "berth": Berth,
        "kube-scheduler": KubeScheduler,
        "kube-scheduler-all": lambda: KubeScheduler(all_nodes=True),
    }
    wrong = False
    with (
        ControlPlane(load=True, audit=False) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        Stage(plane, api) as stage,
    ):
        for name, kind in itertools.product(options.contenders.split(","), KINDS):
            if options.only in kind.name:
                outcome = stage.play(
                    kind, known[name](), nodes=options.nodes, scale=options.scale, timeout_s=600
                )
                mistakes = outcome.placement.mistakes()
                wrong |= bool(mistakes) or outcome.placed < outcome.expected
                print(
                    f"{kind.name:<40}{name:<20}{outcome.placed:6} of {outcome.expected:6} placed  "
                    f"{outcome.pods_per_s:6.0f} pods/s  {len(mistakes)} mistakes",
                    flush=True,
                )
                print("".join(f"  {each}\n" for each in mistakes[:10]), end="")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())

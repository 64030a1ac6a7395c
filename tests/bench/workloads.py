"""The workloads, one row each.

Nodes, pods and their proportions are those of kube-scheduler 1.36,
test/integration/scheduler_perf, at its 5 000 nodes; ``Varied``, ``Varied1000`` and
``Mixed`` are not from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.bench import device_templates
from tests.bench import pod_templates as templates
from tests.bench.device_templates import (
    ALLOCATED,
    GPU,
    NODE_LABEL,
    SLICES,
    ClaimTemplate,
    device_classes,
)
from tests.bench.pod_templates import BEFORE, MEASURED, SINGLE_NODE, PodTemplate
from tests.controlplane.objects import make_namespace, make_node
from tests.controlplane.pod_groups import by_field, make_pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json = dict[str, Any]

LARGEST = 5000
"""Beyond so many nodes there are not more pods, unless they fill the nodes."""

ENOUGH = 5000
"""So many pods are placed on fewer nodes, if as many fit: a rate needs some seconds."""

NAMESPACES = tuple(make_namespace(name) for name in (BEFORE, MEASURED, templates.ASIDE))


@dataclass(frozen=True)
class Ground:
    """The nodes.

    Parameters
    ----------
    zones
        Node labels, in turn.
    tainted
        The share of nodes that no pod tolerates.
    single
        ``"besides"``: there is one more node, with room for 90 000 pods; ``"alone"``: no other.
    csi
        Whether the nodes attach volumes of a CSI driver.
    devices
        What devices there are, by their name in :data:`tests.bench.device_templates.SLICES`.
    """

    zones: tuple[str, ...] = ()
    tainted: float = 0.0
    single: str = ""
    csi: bool = False
    devices: str = ""

    def objects(self, count: int) -> Iterator[Json]:
        """Yield the nodes and what belongs to them."""
        if self.single:
            yield make_node(SINGLE_NODE, pods="90000")
        if self.single == "alone":
            return
        taint = {"key": "foo", "effect": "NoSchedule"}
        key = f"attachable-volumes-csi-{templates.CSI_DRIVER}"
        for index in range(count):
            yield make_node(
                node_name(index),
                zone=self.zones[index % len(self.zones)] if self.zones else None,
                taints=[taint] if index < round(count * self.tainted) else [],
                extra={key: str(templates.CSI_VOLUMES_PER_NODE)} if self.csi else None,
                labels={NODE_LABEL: "true"} if self.devices else None,
            )
            if self.csi:
                yield templates.csi_node(node_name(index))
        if self.devices:
            yield from device_classes()
            yield from SLICES[self.devices]([node_name(index) for index in range(count)])


@dataclass(frozen=True)
class Churn:
    """What comes and goes while the pods are placed, from the first binding on.

    Parameters
    ----------
    every_s
        Between two times.
    pod
        Comes each time.
    node, service
        Whether one comes each time, too.
    recreates
        Whether what came the last time goes then.
    deletes
        Whether one of the pods that were there before goes each time.
    """

    every_s: float
    pod: PodTemplate | None = None
    node: bool = False
    service: bool = False
    recreates: bool = False
    deletes: bool = False

    def objects(self, number: int) -> list[Json]:
        """Return what comes the ``number``-th time."""
        made = []
        name = f"churn-{number:05}"
        if self.node:
            made.append(make_node(name))
        if self.pod is not None:
            made.append(self.pod.pod(name, templates.ASIDE))
        if self.service:
            made.append(templates.service(name, templates.ASIDE, {"app": "foo"}))
        return made


@dataclass(frozen=True)
class Workload:
    """A cluster, pods that run in it, and pods to be placed.

    Parameters
    ----------
    name
        For the command line and the table.
    pods
        Templates of the pods that count, in turn.
    before
        Templates of pods that run already, in turn.
    shares
        How many pods run already and how many count, for each node.
    fits
        How many of the pods that count fit on a node, of all nodes: on few nodes more of them
        count than their share, up to :data:`ENOUGH`. 0 leaves it at the share.
    ground
        The nodes.
    packed
        How many of the pods before are on a node before the next has any; 0 deals them out in
        turn.
    fills_nodes
        Whether the number of pods before follows the nodes however many there are.
    gated
        How many pods wait at a gate, for each node.
    claims
        Whether each pod has a volume.
    device_claim
        What each of the pods that count asks for besides.
    allocated
        What devices are in use already, by their name in
        :data:`tests.bench.device_templates.ALLOCATED`.
    gang
        How many of the pods that count form a group of which all are needed; 0 for none.
    at_a_time
        So many of the pods that count exist at a time: when all of them are bound, they are
        deleted, and the next ones are created. With 0 all of them exist from the beginning.
    plugin_config
        What the schedulers' profile sets.
    objects
        What else there is.
    churn
        What happens meanwhile.
    goals
        By number of nodes: the ratio to kube-scheduler that is aimed at, 1 for other numbers.
        Without any, no ratio is aimed at.
    """

    name: str
    pods: tuple[PodTemplate, ...]
    shares: tuple[float, float]
    before: tuple[PodTemplate, ...] = (templates.PLAIN,)
    ground: Ground = field(default_factory=Ground)
    packed: int = 0
    fits: float = 0.0
    fills_nodes: bool = False
    gated: float = 0.0
    claims: bool = False
    device_claim: ClaimTemplate | None = None
    allocated: str = ""
    gang: int = 0
    at_a_time: int = 0
    plugin_config: tuple[Json, ...] = ()
    objects: tuple[Json, ...] = ()
    churn: Churn | None = None
    goals: Mapping[int, float] = field(default_factory=lambda: _AT_LEAST)

    def counts(self, nodes: int) -> tuple[int, int]:
        """Return how many pods run already, and how many count."""
        at_most = min(nodes, LARGEST)
        before = self.shares[0] * (nodes if self.fills_nodes else at_most)
        count = self.shares[1] * at_most
        if self.fits and nodes < LARGEST:
            count = min(max(count, ENOUGH), self.fits * nodes)
        return round(before), max(round(count), 1)

    def goal(self, nodes: int) -> float | None:
        """Return the ratio to kube-scheduler that is aimed at; None where there is none."""
        return self.goals.get(nodes, 1.0) if self.goals else None

    def pods_before(self, nodes: int) -> Iterator[Json]:
        """Yield the pods that run already and those that wait at a gate, and claims in use."""
        if self.allocated:
            names = [node_name(index) for index in range(nodes)]
            yield from ALLOCATED[self.allocated](names, BEFORE)
        alone = self.ground.single == "alone"
        for index in range(self.counts(nodes)[0]):
            # One further in each round: pods of one kind do not come back to the same nodes.
            at = index // self.packed if self.packed else index + index // nodes
            host = SINGLE_NODE if alone else node_name(at % nodes)
            yield from self._pod(self.before, "before", index, BEFORE, host)
        for index in range(round(self.gated * min(nodes, LARGEST))):
            yield templates.GATED.pod(f"gated-{index:06}", templates.ASIDE)

    def pods_to_place(self, count: int) -> Iterator[Json]:
        """Yield the pods that count, each after what it needs."""
        for index in range(count):
            if self.gang and index % self.gang == 0:
                size = min(self.gang, count - index)
                yield make_pod_group(_gang_name(index // self.gang), size, namespace=MEASURED)
            for made in self._pod(self.pods, "pod", index, MEASURED):
                if self.gang and made["kind"] == "Pod":
                    by_field(made, _gang_name(index // self.gang))
                if self.device_claim is not None and made["kind"] == "Pod":
                    yield from self.device_claim.claims_of(made, "claim", index)
                yield made

    def _pod(
        self,
        kinds: tuple[PodTemplate, ...],
        prefix: str,
        index: int,
        namespace: str,
        host: str = "",
    ) -> Iterator[Json]:
        name = f"{prefix}-{index:06}"
        if self.claims:
            yield from templates.bound_claim(name, namespace)
        yield kinds[index % len(kinds)].pod(name, namespace, host, name if self.claims else "")


def node_name(index: int) -> str:
    """Return the name of a node."""
    return f"node-{index:05}"


def _gang_name(index: int) -> str:
    return f"gang-{index:06}"


_ONE_ZONE = Ground(zones=("zone1",))
_THREE_ZONES = Ground(zones=("moon-1", "moon-2", "moon-3"))
_AT_LEAST = {500: 2.0, 1000: 2.0, 5000: 3.0, 15000: 3.0}
_BY_OTHER_PODS = {**_AT_LEAST, 5000: 6.0}
"""Affinity and spreading, which kube-scheduler counts anew for each pod."""

_TEN_DEVICES = Ground(devices="ten for each node")
_DEVICES = {500: 3.0, 5000: 3.0}
_DEVICES_OF_ALL = {100: 3.0, **_DEVICES}
"""Where all nodes reach all devices, kube-scheduler is measured at 100 nodes only."""
_SCORES_GPUS = (
    {
        "name": "NodeResourcesFit",
        "args": {
            "scoringStrategy": {
                "type": "LeastAllocated",
                "resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU)],
            }
        },
    },
)

WORKLOADS = (
    Workload("Basic", (templates.PLAIN,), (0.2, 2), fits=38),
    Workload("Varied", templates.VARIED, (0.2, 2), fits=30),
    Workload("Varied1000", templates.VARIED_1000, (0.2, 2), fits=30),
    Workload("NodeAffinity", (templates.IN_ZONES,), (1, 2), fits=38, ground=_ONE_ZONE),
    Workload(
        "PodAffinity",
        (templates.TOGETHER,),
        (1, 1),
        fits=38,
        before=(templates.TOGETHER,),
        ground=_ONE_ZONE,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "PreferredPodAffinity",
        (templates.RATHER_TOGETHER,),
        (1, 1),
        fits=38,
        before=(templates.RATHER_TOGETHER,),
        packed=40,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "PodAntiAffinity",
        (templates.APART,),
        (0.2, 0.4),
        fits=0.8,
        before=(templates.APART,),
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "PreferredPodAntiAffinity",
        (templates.RATHER_APART,),
        (1, 1),
        fits=38,
        before=(templates.RATHER_APART,),
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "TopologySpreading",
        (templates.SPREAD,),
        (1, 1),
        fits=38,
        ground=_THREE_ZONES,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "PreferredTopologySpreading",
        (templates.RATHER_SPREAD,),
        (1, 1),
        fits=38,
        ground=_THREE_ZONES,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "DefaultTopologySpreading",
        (templates.SERVED,),
        (1, 1),
        fits=38,
        ground=_THREE_ZONES,
        objects=(templates.service("scheduler-perf", MEASURED, templates.SERVED.labels),),
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "Mixed",
        (
            templates.PLAIN,
            templates.TOGETHER,
            templates.RATHER_TOGETHER,
            templates.APART,
            templates.SPREAD,
            templates.RATHER_SPREAD,
        ),
        (0.2, 1),
        fits=5.5,
        ground=_ONE_ZONE,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "MixedBasePod",
        (templates.PLAIN,),
        (2, 1),
        fits=37,
        before=(
            templates.PLAIN,
            templates.TOGETHER,
            templates.APART,
            templates.RATHER_TOGETHER,
            templates.RATHER_APART,
        ),
        ground=_ONE_ZONE,
        goals=_BY_OTHER_PODS,
    ),
    Workload(
        "NodeInclusionPolicy",
        (templates.ONE_ON_EACH,),
        (0, 0.8),
        fits=0.8,
        ground=Ground(tainted=0.2),
    ),
    Workload(
        "Daemonset", (templates.ON_SINGLE_NODE,), (0, 2), fits=500, ground=Ground(single="besides")
    ),
    Workload(
        "Unschedulable",
        (templates.PLAIN,),
        (0.02, 2),
        fits=38,
        objects=(templates.priority_class(),),
        churn=Churn(0.2, templates.TOO_LARGE),
    ),
    Workload(
        "WhileGated",
        (templates.LIGHT,),
        (4, 2),
        fits=500,
        before=(templates.LIGHT,),
        ground=Ground(single="alone"),
        gated=2,
        churn=Churn(0.02, deletes=True),
    ),
    Workload(
        "PreemptionAsync",
        (templates.PLAIN,),
        (4, 1),
        fits=3,
        before=(templates.LOW,),
        fills_nodes=True,
        objects=(templates.priority_class(),),
        churn=Churn(0.2, templates.HIGH),
    ),
    Workload("CSIPVs", (templates.PLAIN,), (1, 1), fits=37, ground=Ground(csi=True), claims=True),
    Workload(
        "MixedChurn",
        (templates.PLAIN,),
        (0, 2),
        fits=38,
        objects=(templates.priority_class(),),
        churn=Churn(1.0, templates.TOO_LARGE, node=True, service=True, recreates=True),
    ),
    *(
        Workload(
            name, (templates.PLAIN,), (0, share), ground=ground, device_claim=claim, goals=_DEVICES
        )
        for name, share, ground, claim in (
            ("ResourceClaim", 10, _TEN_DEVICES, device_templates.ONE_DEVICE),
            ("SharedResourceClaim", 10, _TEN_DEVICES, device_templates.SHARED_BY_FIVE),
            ("FirstAvailable", 10, _TEN_DEVICES, device_templates.SECOND_CHOICE),
            (
                "DeviceTaintToleration",
                10,
                Ground(devices="ten for each node, tainted"),
                device_templates.TOLERATING,
            ),
            (
                "PartitionableBacktracking",
                1,
                Ground(devices="backtracking"),
                device_templates.SEVEN_DEVICES,
            ),
        )
    ),
    Workload(
        "ConsumableCapacity",
        (templates.PLAIN,),
        (0, 20),
        ground=Ground(devices="shared"),
        device_claim=device_templates.TWO_SHARES,
        goals=_DEVICES_OF_ALL,
    ),
    Workload(
        "Partitionable",
        (templates.PLAIN,),
        (0, 20),
        ground=Ground(devices="partitioned"),
        device_claim=device_templates.TWO_OF_ONE_POOL,
        allocated="one partition of each pool",
        goals=_DEVICES_OF_ALL,
    ),
    *(
        Workload(
            f"SteadyState{name}",
            (templates.PLAIN,),
            (0, 1),
            ground=_TEN_DEVICES,
            device_claim=device_templates.ONE_DEVICE,
            allocated=allocated,
            at_a_time=10,
            goals={},
        )
        for name, allocated in (("Empty", ""), ("Half", "half"), ("Full", "all but ten"))
    ),
    *(
        Workload(name, pods, (0, share), ground=ground, plugin_config=plugin_config, goals=_DEVICES)
        for name, share, pods, ground, plugin_config in (
            ("ExtendedResource", 10, templates.OF_25_CLASSES, _TEN_DEVICES, ()),
            ("ExtendedResource50", 10, templates.OF_50_CLASSES, _TEN_DEVICES, ()),
            ("ImplicitExtendedResource", 10, templates.OF_IMPLICIT_RESOURCES, _TEN_DEVICES, ()),
            (
                "ExtendedResourceScoring",
                10,
                (templates.OF_ONE_RESOURCE,),
                Ground(devices="twenty for each node"),
                _SCORES_GPUS,
            ),
        )
    ),
    *(
        Workload(f"Gangs{count}", (templates.PLAIN,), (0, share), gang=3, goals={})
        for count, share in ((1000, 0.6), (2000, 1.2), (3000, 1.8))
    ),
    Workload("Startup", (templates.PLAIN,), (4, 0.2), goals={}),
)
"""``Startup`` is about the time to the first binding and about memory, not about the rate."""

BY_NAME = {workload.name: workload for workload in WORKLOADS}

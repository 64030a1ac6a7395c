"""The rules that are easy to get wrong, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from cache.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    OwnerReference,
    Toleration,
    TopologySpreadConstraint,
)
from cache.pod_info import PodInfo
from cache.resources import MalformedObjectError
from cache.snapshot import Snapshot
from cache.workload_objects import (
    ReplicaSet,
    ReplicationController,
    Service,
    ServiceSpec,
    SetSpec,
    StatefulSet,
    WorkloadMeta,
)
from cache.workloads import Workloads
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs, default_selectors
from plugins.pod_topology_spread.default_selectors import DefaultSelectors
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

NO_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")

Placed = tuple[NodeBuilder, int]
"""A node, and how many pods with ``app: a`` are on it."""

APP_A = LabelSelector(match_labels={"app": "a"})


def constraint(**changes: object) -> TopologySpreadConstraint:
    return replace(
        TopologySpreadConstraint(topology_key=ZONE, label_selector=APP_A),
        **changes,  # type: ignore[arg-type]
    )


def spreading(*constraints: TopologySpreadConstraint, **spec: object) -> PodInfo:
    built = pod("asked").label("app", "a").build()
    changed = replace(
        built.spec,
        topology_spread_constraints=constraints,
        **spec,  # type: ignore[arg-type]
    )
    return PodInfo(replace(built, spec=changed))


def snapshot_of(*placed: Placed, like: PodBuilder | None = None) -> Snapshot:
    like = pod("q").label("app", "a") if like is None else like
    return Snapshot.of(
        each.info(*(like.uid(f"{index}-{number}") for number in range(count)))
        for index, (each, count) in enumerate(placed)
    )


def statuses(asked: PodInfo, snapshot: Snapshot) -> list[Status] | Status:
    plugin, state = PodTopologySpread(None, RecordingHandle()), CycleState()
    status = plugin.pre_filter(state, asked, snapshot.all_nodes()).status
    if not status.is_success:
        return status
    return [plugin.filter_one(state, asked, each) for each in snapshot.columns.node_infos]


A1, A2, B1 = node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")
BARE = node("bare")
TAINTED = node("c1").zone("c").taint("gpu")


@pytest.mark.parametrize(
    ("asked", "placed", "expected"),
    [
        pytest.param(spreading(), [(A1, 0)], SKIP, id="no constraints"),
        pytest.param(
            spreading(constraint(when_unsatisfiable="ScheduleAnyway")),
            [(A1, 0)],
            SKIP,
            id="soft constraints reject nothing",
        ),
        pytest.param(
            spreading(constraint()),
            [(A1, 1), (A2, 0), (B1, 0)],
            [SKEWED, SKEWED, SUCCESS],
            id="a fuller domain",
        ),
        pytest.param(
            spreading(constraint()), [(A1, 0), (BARE, 0)], [SUCCESS, NO_LABEL], id="no label"
        ),
        pytest.param(
            spreading(constraint(max_skew=2)),
            [(A1, 1), (B1, 0)],
            [SUCCESS, SUCCESS],
            id="within the skew",
        ),
        pytest.param(
            spreading(constraint(min_domains=3)),
            [(A1, 1), (B1, 1)],
            [SKEWED, SKEWED],
            id="too few domains: the emptiest counts as empty",
        ),
        pytest.param(
            spreading(constraint(min_domains=2)),
            [(A1, 1), (B1, 1)],
            [SUCCESS, SUCCESS],
            id="enough domains",
        ),
        pytest.param(
            spreading(constraint(), constraint(topology_key="rack")),
            [(A1, 0), (B1.label("rack", "r"), 1)],
            [NO_LABEL, SUCCESS],
            id="a node without one of the labels does not count for the others",
        ),
        pytest.param(
            spreading(constraint(label_selector=LabelSelector())),
            [(A1, 3), (B1, 0)],
            [SUCCESS, SUCCESS],
            id="the empty selector counts no pods",
        ),
        pytest.param(
            spreading(constraint(label_selector=None)),
            [(A1, 3), (B1, 0)],
            [SUCCESS, SUCCESS],
            id="no selector selects no pods",
        ),
        pytest.param(
            spreading(constraint()),
            [(A1, 1), (B1, 1), (TAINTED, 0)],
            [SKEWED, SKEWED, SUCCESS],
            id="taints do not matter unless asked for",
        ),
        pytest.param(
            spreading(constraint(node_taints_policy="Honor")),
            [(A1, 1), (B1, 1), (TAINTED, 0)],
            [SUCCESS, SUCCESS, SUCCESS],
            id="nodes with untolerated taints do not count",
        ),
        pytest.param(
            spreading(
                constraint(node_taints_policy="Honor"),
                tolerations=(Toleration(key="gpu", operator="Exists"),),
            ),
            [(A1, 1), (B1, 1), (TAINTED, 0)],
            [SKEWED, SKEWED, SUCCESS],
            id="nodes with tolerated taints count",
        ),
        pytest.param(
            spreading(constraint(), node_selector={"kind": "x"}),
            [(A1.label("kind", "x"), 1), (B1, 0)],
            [SUCCESS, SUCCESS],
            id="nodes that the pod does not select do not count",
        ),
        pytest.param(
            spreading(constraint(node_affinity_policy="Ignore"), node_selector={"kind": "x"}),
            [(A1.label("kind", "x"), 1), (B1, 0)],
            [SKEWED, SUCCESS],
            id="nodes that the pod does not select count if asked for",
        ),
    ],
)
def test_hard_constraints(
    asked: PodInfo, placed: list[Placed], expected: list[Status] | Status
) -> None:
    assert statuses(asked, snapshot_of(*placed)) == expected


@pytest.mark.parametrize(
    "like",
    [
        pytest.param(pod("q").label("app", "a").terminating(), id="being deleted"),
        pytest.param(pod("q", namespace="other").label("app", "a"), id="of another namespace"),
        pytest.param(pod("q").label("app", "b"), id="not selected"),
    ],
)
def test_a_pod_does_not_count(like: PodBuilder) -> None:
    snapshot = snapshot_of((A1, 3), (B1, 0), like=like)
    assert statuses(spreading(constraint()), snapshot) == [SUCCESS, SUCCESS]


def test_match_label_keys_narrow_the_selector_to_pods_like_the_asking_one() -> None:
    like = pod("q").label("app", "a").label("hash", "old")
    snapshot = snapshot_of((A1, 3), (B1, 0), like=like)
    wanted = constraint(match_label_keys=("hash", "absent"))
    built = pod("p").label("app", "a").label("hash", "new").build()
    spec = replace(built.spec, topology_spread_constraints=(wanted,))
    assert statuses(PodInfo(replace(built, spec=spec)), snapshot) == [SUCCESS, SUCCESS]
    assert statuses(spreading(wanted), snapshot) == [SKEWED, SUCCESS]


def test_a_malformed_selector_is_an_error() -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "Around"),))
    with pytest.raises(MalformedObjectError, match="operator"):
        statuses(spreading(constraint(label_selector=bad)), snapshot_of((A1, 0)))


# --- scores -----------------------------------------------------------------------------------


def soft(**changes: object) -> TopologySpreadConstraint:
    return constraint(when_unsatisfiable="ScheduleAnyway", **changes)


def scores(
    asked: PodInfo, snapshot: Snapshot, workloads: Workloads | None = None
) -> tuple[list[int], list[int]] | Status:
    """Raw and final scores, or the status of PreScore when it is no success."""
    plugin = PodTopologySpread(PodTopologySpreadArgs(), RecordingHandle((), workloads))
    state, view = CycleState(), snapshot.all_nodes()
    status = plugin.pre_score(state, asked, view)
    if not status.is_success:
        return status
    raw = plugin.score(state, asked, view)
    return raw.tolist(), plugin.normalize(state, asked, raw).tolist()


@pytest.mark.parametrize(
    ("asked", "placed", "expected"),
    [
        pytest.param(spreading(), [(A1, 0)], SKIP, id="nothing to spread"),
        pytest.param(spreading(constraint()), [(A1, 0)], SKIP, id="hard constraints only"),
        pytest.param(
            spreading(soft()), [(A1, 0), (B1, 0)], ([0, 0], [100, 100]), id="empty domains"
        ),
        pytest.param(
            spreading(soft()),
            [(A1, 3), (A2, 0), (B1, 1)],
            ([4, 4, 1], [25, 25, 100]),
            id="crowded domains: three pods weigh 3 ln 4",
        ),
        pytest.param(
            spreading(soft()),
            [(A1, 1), (BARE, 0), (B1, 0)],
            ([1, 0, 0], [0, 0, 100]),
            id="a node without the label gets nothing",
        ),
        pytest.param(spreading(soft()), [(BARE, 0)], ([0], [0]), id="no node has the label"),
        pytest.param(
            spreading(soft(max_skew=4)),
            [(A1, 1), (B1, 0)],
            ([4, 3], [75, 100]),
            id="a larger skew waters differences down",
        ),
        pytest.param(
            spreading(soft(topology_key=HOSTNAME)),
            [(A1.label(HOSTNAME, "a1"), 2), (B1.label(HOSTNAME, "b1"), 0)],
            ([3, 0], [0, 100]),
            id="hosts are counted each for itself",
        ),
    ],
)
def test_soft_constraints(
    asked: PodInfo, placed: list[Placed], expected: tuple[list[int], list[int]] | Status
) -> None:
    assert scores(asked, snapshot_of(*placed)) == expected


def test_built_in_defaults_spread_the_pods_of_a_service_over_hosts_without_zones() -> None:
    workloads = Workloads()
    meta = WorkloadMeta("svc", "default", "s")
    workloads.service_changed(None, Service(meta, ServiceSpec({"app": "a"})))
    one, two = node("one").label(HOSTNAME, "one"), node("two").label(HOSTNAME, "two")
    assert scores(spreading(), snapshot_of((one, 2), (two, 0)), workloads) == (
        [5, 2],
        [40, 100],
    )


# --- default selectors ------------------------------------------------------------------------


@dataclass
class Owned:
    """A pod with a controller, and workloads that select."""

    kind: str = "ReplicaSet"
    version: str = "apps/v1"
    controller: bool = True
    services: list[dict[str, str]] = field(default_factory=list)

    def selector(self) -> str:
        workloads = Workloads()
        for index, labels in enumerate(self.services):
            meta = WorkloadMeta(f"svc-{index}", "default", f"s{index}")
            workloads.service_changed(None, Service(meta, ServiceSpec(labels)))
        meta = WorkloadMeta("web", "default", "w")
        in_set = SetSpec(LabelSelector(match_labels={"set": "s"}))
        workloads.controller_changed(None, ReplicaSet(meta, in_set))
        workloads.controller_changed(None, StatefulSet(meta, in_set))
        workloads.controller_changed(None, ReplicationController(meta, ServiceSpec({"rc": "c"})))
        built = pod("p").label("app", "a").label("tier", "b").build()
        owner = OwnerReference(self.version, self.kind, "web", "w", controller=self.controller)
        metadata = replace(built.metadata, owner_references=(owner,))
        return str(DefaultSelectors().of(replace(built, metadata=metadata), workloads))


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        pytest.param(Owned(), "set=s", id="ReplicaSet"),
        pytest.param(Owned(kind="StatefulSet"), "set=s", id="StatefulSet"),
        pytest.param(Owned("ReplicationController", "v1"), "rc=c", id="ReplicationController"),
        pytest.param(Owned("Job", "batch/v1"), "", id="a controller of another kind"),
        pytest.param(Owned(version="apps/v1beta2"), "", id="a version of old"),
        pytest.param(Owned(controller=False), "", id="an owner that does not manage it"),
        pytest.param(
            Owned(services=[{"app": "a"}, {"tier": "b"}, {"app": "x"}, {}]),
            "app=a,set=s,tier=b",
            id="Services that select the pod",
        ),
    ],
)
def test_what_a_pod_spreads_with_by_default(owned: Owned, expected: str) -> None:
    assert owned.selector() == expected


def test_a_default_selector_follows_a_changed_service() -> None:
    workloads, selectors = Workloads(), DefaultSelectors()
    built = pod("p").label("app", "a").label("tier", "b").build()
    old = Service(WorkloadMeta("svc", "default", "s"), ServiceSpec({"app": "a"}))
    workloads.service_changed(None, old)
    assert str(selectors.of(built, workloads)) == "app=a"
    workloads.service_changed(old, Service(old.metadata, ServiceSpec({"tier": "b"})))
    assert str(selectors.of(built, workloads)) == "tier=b"
    assert str(selectors.of(built, Workloads())) == ""


def test_default_selectors_of_pods_with_large_labels_are_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(default_selectors, "MAX_REMEMBERED_BYTES", 50_000)
    workloads, selectors = Workloads(), DefaultSelectors()
    for serial in range(50):
        built = pod("p").label("app", "a").label("job-name", f"j{serial}").build()
        selectors.of(built, workloads)
        large = {f"key-{serial}-{i}": "v" for i in range(200)}
        selectors.of(replace(built, metadata=replace(built.metadata, labels=large)), workloads)
    assert 0 < selectors._known.bytes <= 50_000
    assert len(selectors._known) > 10

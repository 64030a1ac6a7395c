from __future__ import annotations

import copy
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.objects import ZONE_LABEL, make_node, make_pod
from tests.demo.outcome import Outcome, amount, work_out
from tests.demo.scene import KIND_LABEL, NAMESPACE, Kind, Scene

if TYPE_CHECKING:
    from collections.abc import Callable

Objects = list[dict[str, Any]]


def scene_of(*placeable: dict[str, Any]) -> Scene:
    pods = (*placeable, pod("stuck", "hopeless", cpu="9"), pod("alien", "foreign"))
    return Scene(
        nodes=(
            make_node("full", cpu="2", memory="4Gi", pods="10", zone="zone-a"),
            make_node("empty", cpu="4", memory="4Gi", pods="10", zone="zone-b"),
            make_node("cordoned", zone="zone-b", unschedulable=True),
        ),
        pods=pods,
        kinds=(Kind("web", "cpu", len(placeable)),),
        pending={"stuck": "too much"},
        gated=frozenset(),
        foreign=frozenset({"alien"}),
    )


def pod(name: str, kind: str = "web", **wishes: Any) -> dict[str, Any]:
    return make_pod(name, namespace=NAMESPACE, labels={KIND_LABEL: kind}, **wishes)


def played(scene: Scene, **nodes: str) -> Objects:
    """Return the scene's pods as the API would hold them, those in `nodes` bound."""
    pods = copy.deepcopy(list(scene.pods))
    for each in pods:
        each["status"] = {"phase": "Pending"}
        if node := nodes.get(each["metadata"]["name"]):
            each["spec"]["nodeName"] = node
    return pods


def event(name: str, note: str, *, reason: str = "FailedScheduling", at: int = 0) -> dict[str, Any]:
    return {
        "reason": reason,
        "note": note,
        "regarding": {"name": name},
        "eventTime": f"2026-01-01T00:00:{at:02}.000000Z",
    }


def outcome_of(scene: Scene, pods: Objects, events: Objects | None = None) -> Outcome:
    return work_out(scene, scene.nodes, pods, events or [], seconds=0.5)


WEB = (pod("a", cpu="500m", memory="1Gi"), pod("b", cpu="1", memory="1Gi"))


def test_all_is_well() -> None:
    scene = scene_of(*WEB)
    assert outcome_of(scene, played(scene, a="full", b="full")).problems == ()


def test_the_rate_counts_from_the_first_bind() -> None:
    scene = scene_of(*WEB)
    assert outcome_of(scene, played(scene, a="full", b="full")).pods_per_s == 2.0


# --- what should not be


def bound(**nodes: str) -> Callable[[Scene], tuple[Objects, Objects]]:
    return lambda scene: (played(scene, **nodes), [])


def foreign_with_event(scene: Scene) -> tuple[Objects, Objects]:
    return played(scene, a="full", b="full"), [event("alien", "0/3 nodes are available")]


def foreign_with_condition(scene: Scene) -> tuple[Objects, Objects]:
    pods = played(scene, a="full", b="full")
    pods[-1]["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    return pods, []


def deleted(scene: Scene) -> tuple[Objects, Objects]:
    return played(scene, a="full", b="full")[1:], []


@pytest.mark.parametrize(
    ("play", "problem"),
    [
        pytest.param(bound(a="full"), "b should be bound and is not", id="unbound"),
        pytest.param(
            bound(a="full", b="full", stuck="cordoned"),
            "stuck should wait and is bound",
            id="bound",
        ),
        pytest.param(
            bound(a="full", b="full", stuck="cordoned"), "cordoned is cordoned", id="cordoned"
        ),
        pytest.param(deleted, "a has gone", id="deleted"),
        pytest.param(
            bound(a="full", b="full", alien="full"), "alien is not berth's", id="foreign-bound"
        ),
        pytest.param(foreign_with_event, "alien is not berth's", id="foreign-with-event"),
        pytest.param(foreign_with_condition, "alien is not berth's", id="foreign-with-condition"),
        pytest.param(
            bound(a="full", b="full", stuck="full"),
            "full is overcommitted: 10.5 of 2 cpu",
            id="overcommitted",
        ),
        pytest.param(
            bound(a="nowhere", b="full"),
            "a is bound to nowhere, which does not exist",
            id="no-node",
        ),
    ],
)
def test_a_problem_is_found(play: Callable[[Scene], tuple[Objects, Objects]], problem: str) -> None:
    scene = scene_of(*WEB)
    pods, events = play(scene)
    assert any(found.startswith(problem) for found in outcome_of(scene, pods, events).problems)


def test_two_pods_with_one_host_port_are_too_many() -> None:
    container = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}
    scene = scene_of(*(pod(name, containers=[container]) for name in "ab"))
    problems = outcome_of(scene, played(scene, a="full", b="full")).problems
    assert problems == ("full is overcommitted: 2 pods have host port 80",)


def test_a_node_may_be_filled_to_the_brim() -> None:
    scene = scene_of(pod("a", cpu="2", memory="4Gi"))
    assert outcome_of(scene, played(scene, a="full")).problems == ()


# --- what is told


def test_the_requests_of_a_node_are_added_up() -> None:
    scene = scene_of(*WEB)
    fullest = outcome_of(scene, played(scene, a="full", b="full")).fullest
    assert (fullest.name, fullest.requested) == (
        "full",
        {"cpu": Fraction(3, 2), "memory": 2 << 30, "pods": 2},
    )


def test_the_emptiest_node_is_one_that_takes_pods() -> None:
    scene = scene_of(*WEB)
    assert outcome_of(scene, played(scene, a="full", b="full")).emptiest.name == "empty"


def test_the_pods_of_a_zone_are_counted() -> None:
    scene = scene_of(*WEB)
    zones = outcome_of(scene, played(scene, a="full", b="empty")).zones
    assert [(zone.name, zone.nodes, zone.pods) for zone in zones] == [
        ("zone-a", 1, 1),
        ("zone-b", 2, 1),
        ("zone-c", 0, 0),
    ]


def test_a_node_without_a_zone_is_in_none() -> None:
    scene = scene_of(*WEB)
    del scene.nodes[0]["metadata"]["labels"][ZONE_LABEL]
    assert outcome_of(scene, played(scene)).zones[0].nodes == 0


def test_a_kind_tells_over_how_many_nodes_it_is_spread() -> None:
    scene = scene_of(*WEB)
    (placed,) = outcome_of(scene, played(scene, a="full", b="full")).placed
    assert (placed.bound, placed.nodes) == (2, 1)


def test_a_waiting_pod_tells_its_condition_and_its_latest_event() -> None:
    scene = scene_of(*WEB)
    pods = played(scene, a="full", b="full")
    pods[-2]["status"]["conditions"] = [
        {"type": "PodScheduled", "reason": "Unschedulable", "message": "0/3 nodes"}
    ]
    events = [
        event("stuck", "new", at=2),
        event("stuck", "old", at=1),
        event("stuck", "another", reason="Preempted", at=3),
    ]
    (waiting,) = outcome_of(scene, pods, events).waiting
    assert (waiting.name, waiting.wants, waiting.reason, waiting.message, waiting.event_note) == (
        "stuck",
        "too much",
        "Unschedulable",
        "0/3 nodes",
        "new",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("4", Fraction(4), id="plain"),
        pytest.param("250m", Fraction(1, 4), id="milli"),
        pytest.param("1.5Gi", Fraction(3 << 29), id="fraction"),
        pytest.param("512Mi", Fraction(1 << 29), id="mebi"),
    ],
)
def test_a_quantity_is_read(text: str, value: Fraction) -> None:
    assert amount(text) == value


@pytest.mark.parametrize("text", ["", "much", "4 Gi", "-1", "1Zi"])
def test_no_quantity_is_guessed(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        amount(text)

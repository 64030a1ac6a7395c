from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.access import USER
from tests.devices.histories import PodVersion
from tests.gangs.faulty_life import Life, Size
from tests.gangs.gangs import Gang, make_nodes
from tests.gangs.promises import judge

if TYPE_CHECKING:
    from collections.abc import Callable

GANGS = [Gang("gang000", 2, 16_000), Gang("high000", 1, 16_000)]
REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}


def on(name: str, node: str = "", cpu: str = "16", **status: Any) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": node, "containers": [{"resources": requests}]},
        "status": status,
    }


def deleted(name: str) -> dict[str, Any]:
    return {
        "verb": "delete",
        "user": {"username": USER},
        "objectRef": {"resource": "pods", "namespace": "default", "name": name},
        "responseStatus": {"code": 200},
        "requestURI": "",
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
    }


def leads() -> dict[str, Any]:
    target = {"resource": "leases", "namespace": "berth-system", "name": "berth"}
    return {
        "verb": "update",
        "user": {"username": USER},
        "objectRef": {"apiGroup": "coordination.k8s.io", **target},
        "requestObject": {"spec": {"holderIdentity": "one"}},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
    }


@pytest.fixture
def life() -> Life:
    """Two full nodes: a whole gang, one of high priority and a single pod."""
    pods = [
        on("gang000-0", "node-0000"),
        on("gang000-1", "node-0001"),
        on("high000-2", "node-0001"),
        on("single-3", "node-0000"),
    ]
    return Life(
        size=Size(),
        gangs=GANGS,
        preemptors=GANGS[1:],
        nodes=list(make_nodes(2)),
        pods=pods,
        groups=[],
        versions=[
            PodVersion(1, x["metadata"]["uid"], x["metadata"]["name"], "", x["spec"]["nodeName"])
            for x in pods
        ],
        cache={
            "cache": {"assumed": {}, "nodes": []},
            "queue": {"in_flight": {"count": 0}},
            "comparison": {"count": 0},
        },
        metrics="",
        log=[leads(), deleted("single-9")],
        requests={},
        failed={},
        acts=[],
        is_at_rest=True,
    )


def test_a_life_in_which_all_went_well_breaks_no_promise(life):
    assert {each.text: each.broken for each in judge(life) if each.broken} == {}


def without(name: str, *more: dict[str, Any]) -> Callable[[Life], Life]:
    def changed(life: Life) -> Life:
        left = [pod for pod in life.pods if pod["metadata"]["name"] != name]
        return replace(life, pods=[*left, *more])

    return changed


def with_log(*events: dict[str, Any]) -> Callable[[Life], Life]:
    return lambda life: replace(life, log=[*life.log, *events])


def with_cache(**parts: Any) -> Callable[[Life], Life]:
    return lambda life: replace(life, cache={**life.cache, **parts})


FULL = on("single-8", "node-0001")


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        pytest.param(
            without("gang000-1", FULL),
            "gang000 has 1 of 2, and none waits",
            id="the rest of a gang is gone",
        ),
        pytest.param(
            without("gang000-1", FULL, on("gang000-7")),
            "gang000 has 1 of 2, gang000-7 says nothing",
            id="no reason on the member that waits",
        ),
        pytest.param(
            without("gang000-1", on("gang000-7", conditions=[REFUSED])),
            "gang000 has 1 of 2, and a node has room",
            id="room for the member that waits",
        ),
        pytest.param(
            without("single-3", on("single-7")),
            "single-7 waits, and a node has room",
            id="a single pod is forgotten",
        ),
        pytest.param(
            lambda life: replace(life, pods=[on("gang000-4"), on("gang000-5")]),
            "gang000 waits, and all of it fits",
            id="a gang is forgotten",
        ),
        pytest.param(
            lambda life: replace(life, versions=life.versions[:2]),
            "high000: 0 of 1 were bound",
            id="victims for nothing",
        ),
        pytest.param(
            with_cache(cache={"assumed": {"u": "node-0001"}, "nodes": []}),
            "u is assumed on node-0001",
            id="room is held",
        ),
        pytest.param(
            without("x", on("single-7", nominatedNodeName="node-0000")),
            "single-7 is nominated for node-0000",
            id="a nomination is left",
        ),
        pytest.param(
            with_cache(comparison={"count": 1}),
            "1 differences: {'count': 1}",
            id="the cache is wrong",
        ),
        pytest.param(
            with_log(deleted("single-9")), "single-9 was deleted 2 times", id="a victim twice"
        ),
        pytest.param(with_log(deleted("high000-2")), "high000-2 was a victim", id="high priority"),
        pytest.param(without("x", FULL), "node-0001 lacks 16000 m CPU", id="overcommitted"),
        pytest.param(
            lambda life: replace(life, is_at_rest=False),
            "pods still changed when the time was up",
            id="no rest",
        ),
    ],
)
def test_what_breaks_a_promise(life, change, broken):
    assert broken in [case for promise in judge(change(life)) for case in promise.broken]


def test_a_gang_that_lost_its_room_and_says_so_keeps_the_promise(life):
    lost = without("gang000-1", FULL, on("gang000-7", conditions=[REFUSED]))(life)
    assert {each.text: each.broken for each in judge(lost) if each.broken} == {}

"""Extenders with a preempt verb have a say in who has to go."""

from __future__ import annotations

import msgspec
import pytest

from plugins.framework.victims import Victims
from scheduler.config import Extender
from scheduler.extenders import ExtenderError
from tests.builders import node, pod
from tests.scheduler.extenders.scripted_extender import Reply, Stage, says

PREEMPTOR = pod("preemptor").uid("u-p").info()
NODES = {
    name: node(name).info(
        *(pod(f"{name}{i}").uid(f"u-{name}{i}").request(cpu="1") for i in range(3))
    )
    for name in ("n1", "n2")
}
CANDIDATES = {
    "n1": Victims(tuple(NODES["n1"].pods.values())[:2], 1),
    "n2": Victims(tuple(NODES["n2"].pods.values())[:1]),
}


def answer(**victims: object) -> dict[str, object]:
    return {"NodeNameToMetaVictims": victims}


def meta(*uids: str, violations: int = 0) -> dict[str, object]:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


def config(url: str, **more: object) -> Extender:
    return msgspec.convert(
        {"urlPrefix": url, "preemptVerb": "preempt", "nodeCacheCapable": True, **more}, Extender
    )


def uids(found: dict[str, Victims]) -> dict[str, list[str]]:
    return {name: [each.uid for each in victims.pods] for name, victims in found.items()}


def preempt(stage: Stage, *configs: Extender) -> dict[str, Victims]:
    return dict(stage.chain(*configs).preempt(PREEMPTOR, CANDIDATES, NODES))


def test_one_that_knows_nodes_is_asked_by_uid(stage):
    server = stage.serve(preempt=says(answer(n1=meta("u-n10"))))
    preempt(stage, config(server.url))
    ((_, asked),) = server.asked
    assert asked["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "u-n10"}, {"UID": "u-n11"}], "NumPDBViolations": 1},
        "n2": {"Pods": [{"UID": "u-n20"}], "NumPDBViolations": 0},
    }
    assert asked["NodeNameToVictims"] is None
    assert asked["Pod"]["metadata"]["uid"] == "u-p"


def test_one_that_does_not_is_shown_whole_pods(stage):
    server = stage.serve(preempt=says(answer(n1=meta("u-n10"))))
    preempt(stage, config(server.url, nodeCacheCapable=False))
    ((_, asked),) = server.asked
    assert asked["NodeNameToMetaVictims"] is None
    shown = asked["NodeNameToVictims"]["n1"]["Pods"]
    assert [each["metadata"]["uid"] for each in shown] == ["u-n10", "u-n11"]
    assert shown[0]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_what_it_leaves_is_what_there_is(stage):
    server = stage.serve(preempt=says(answer(n1=meta("u-n12", violations=2))))
    found = preempt(stage, config(server.url))
    assert uids(found) == {"n1": ["u-n12"]}
    assert found["n1"].pdb_violations == 2


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param({}, id="no field"),
        pytest.param({"NodeNameToMetaVictims": None}, id="null"),
        pytest.param({"nodenametometavictims": {}}, id="no node"),
    ],
)
def test_it_may_leave_nothing(stage, nothing):
    server = stage.serve(preempt=says(nothing))
    assert preempt(stage, config(server.url)) == {}


def test_the_next_one_is_asked_about_what_the_first_left(stage):
    first = stage.serve(preempt=says(answer(n2=meta("u-n20"))))
    second = stage.serve(preempt=says(answer(n2=meta("u-n21"))))
    found = preempt(stage, config(first.url), config(second.url))
    ((_, asked),) = second.asked
    assert set(asked["NodeNameToMetaVictims"]) == {"n2"}
    assert uids(found) == {"n2": ["u-n21"]}


def test_nobody_is_asked_about_no_candidates(stage):
    first, second = (stage.serve(preempt=says({})) for _ in range(2))
    assert preempt(stage, config(first.url), config(second.url)) == {}
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_those_without_the_verb_or_an_interest_are_not_asked(stage):
    server = stage.serve(preempt=says({}))
    others = stage.serve(filter=says({}))
    managed = [{"name": "example.com/gpu"}]
    configs = [
        config(server.url, managedResources=managed),
        config(others.url, preemptVerb="", filterVerb="filter"),
    ]
    assert preempt(stage, *configs) == CANDIDATES
    assert (server.asked, others.asked) == ([], [])


BAD = [
    pytest.param(Reply(status=500), id="fails"),
    pytest.param(Reply(b"[1, 2]"), id="garbage"),
    pytest.param(Reply(msgspec.json.encode(answer(n1=meta("nobody")))), id="unknown pod"),
    pytest.param(Reply(msgspec.json.encode(answer(n9=meta("u-n10")))), id="unknown node"),
]


@pytest.mark.parametrize("reply", BAD)
def test_a_failure_is_told(stage, reply):
    server = stage.serve(preempt=lambda asked: reply)
    with pytest.raises(ExtenderError):
        preempt(stage, config(server.url))


@pytest.mark.parametrize("reply", BAD)
def test_a_failure_of_one_that_is_ignorable_changes_nothing(stage, reply):
    server = stage.serve(preempt=lambda asked: reply)
    assert preempt(stage, config(server.url, ignorable=True)) == CANDIDATES


@pytest.mark.parametrize("empty", [meta(), None], ids=["no pods", "null"])
def test_a_node_without_victims_is_a_mistake(stage, empty):
    server = stage.serve(preempt=says(answer(n1=empty, n2=meta("u-n20"))))
    with pytest.raises(ExtenderError, match='at least one victim pod on node "n1"'):
        preempt(stage, config(server.url))


@pytest.mark.parametrize("empty", [meta(), None], ids=["no pods", "null"])
def test_a_node_without_victims_of_one_that_is_ignorable_is_left_out(stage, empty):
    server = stage.serve(preempt=says(answer(n1=empty, n2=meta("u-n20"))))
    assert uids(preempt(stage, config(server.url, ignorable=True))) == {"n2": ["u-n20"]}

"""What filters of extenders leave, and what becomes of the rest."""

from __future__ import annotations

import pytest

from cache.objects import Container, ResourceRequirements
from plugins.framework.status import Code
from scheduler.config import Extender, ManagedResource
from scheduler.decision.decision import EXTENDER_NAME
from tests.builders import pod
from tests.scheduler.extenders.scripted_extender import Points, Reply, says

BY_NAME = {"filter_verb": "filter", "node_cache_capable": True}
WHOLE = {"filter_verb": "filter"}


def broken(asked):
    return Reply(status=500)


def echo(asked):
    return says({"NodeNames": asked["NodeNames"], "Nodes": asked["Nodes"]})(asked)


def whole(*names):
    return {"items": [{"metadata": {"name": name}} for name in names]}


def test_an_extender_that_knows_the_nodes_gets_their_names(stage):
    server = stage.serve(filter=says({"NodeNames": ["b"]}))
    decision = stage.decide(Extender(server.url, **BY_NAME))
    ((_, asked),) = server.asked
    assert (decision.node_name, asked["Nodes"], sorted(asked["NodeNames"])) == (
        "b",
        None,
        ["a", "b", "c"],
    )
    assert server.content_types == {"application/json"}


def test_an_extender_that_does_not_gets_whole_nodes(stage):
    server = stage.serve(filter=says({"Nodes": whole("b")}))
    decision = stage.decide(Extender(server.url, **WHOLE))
    ((_, asked),) = server.asked
    assert asked["NodeNames"] is None
    assert asked["Nodes"]["items"][0]["spec"] == {"podCIDR": "10.0.0.0/24"}
    assert decision.node_name == "b"


def test_the_pod_is_whole_and_read_once_a_cycle(stage):
    server = stage.serve(filter=echo, prioritize=says([]))
    stage.decide(Extender(server.url, prioritize_verb="prioritize", weight=1, **BY_NAME))
    assert [asked["Pod"]["spec"]["dnsPolicy"] for _, asked in server.asked] == ["ClusterFirst"] * 2
    assert stage.objects.pods_read == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"nodenames": ["b"], "ERROR": None}, id="keys in another case"),
        pytest.param({"NodeNames": ["b"], "FailedNodes": None}, id="null for nothing"),
        pytest.param({"Nodes": {"Items": [{"metadata": {"name": "b"}}]}}, id="whole nodes"),
        pytest.param({"NodeNames": ["b", "b"]}, id="a name twice"),
        pytest.param({"NodeNames": ["b"], "new": 1}, id="a field that nobody knows"),
    ],
)
def test_answers_are_read_as_go_reads_them(stage, answer):
    server = stage.serve(filter=says(answer))
    assert stage.decide(Extender(server.url, **BY_NAME)).node_name == "b"


def test_each_sees_what_the_one_before_left(stage):
    first = stage.serve(filter=says({"NodeNames": ["a", "b"]}))
    second = stage.serve(filter=says({"NodeNames": ["b"]}))
    decision = stage.decide(Extender(first.url, **BY_NAME), Extender(second.url, **BY_NAME))
    assert sorted(second.asked[0][1]["NodeNames"]) == ["a", "b"]
    assert decision.node_name == "b"


def test_with_nothing_left_nobody_else_is_asked(stage):
    first = stage.serve(filter=says({"NodeNames": []}))
    second = stage.serve(filter=echo)
    decision = stage.decide(Extender(first.url, **BY_NAME), Extender(second.url, **BY_NAME))
    assert not decision.is_placed
    assert second.asked == []


def test_reasons_reach_the_diagnosis(stage):
    answer = {
        "NodeNames": [],
        "FailedNodes": {"a": "no licence", "b": "no licence", "c": "no licence"},
        "FailedAndUnresolvableNodes": {"c": "no rack"},
    }
    server = stage.serve(filter=says(answer))
    decision = stage.decide(Extender(server.url, **BY_NAME))
    assert decision.message() == "0/3 nodes are available: 1 no rack, 2 no licence."
    codes = {name: g.status.code for g in decision.diagnosis.rejected for name in g.node_names}
    assert codes == {
        "a": Code.UNSCHEDULABLE,
        "b": Code.UNSCHEDULABLE,
        "c": Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    }
    assert decision.diagnosis.unschedulable_plugins == {EXTENDER_NAME}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"NodeNames": []}, id="none of the names"),
        pytest.param({}, id="no list at all"),
    ],
)
def test_nodes_left_out_without_a_reason_are_not_feasible(stage, answer):
    server = stage.serve(filter=says(answer))
    decision = stage.decide(Extender(server.url, **BY_NAME))
    assert decision.status.code is Code.UNSCHEDULABLE
    assert decision.message() == "0/3 nodes are available:"
    assert decision.diagnosis.unschedulable_plugins == {EXTENDER_NAME}


@pytest.mark.parametrize(
    ("how", "answer", "message"),
    [
        pytest.param(BY_NAME, {"NodeNames": ["z"]}, 'a filtered node "z"', id="a strange name"),
        pytest.param(WHOLE, {"Nodes": whole("z")}, 'a filtered node "z"', id="a strange node"),
        pytest.param(BY_NAME, {"Error": "out of tea"}, "out of tea", id="its own error"),
        pytest.param(BY_NAME, {"NodeNames": "b"}, "NodeNames: Expected `array", id="wrong type"),
        pytest.param(BY_NAME, {"NodeNames": [], "FailedNodes": {"a": 1}}, "Failed", id="number"),
        pytest.param(BY_NAME, [], "with garbage", id="a list"),
    ],
)
def test_an_answer_that_cannot_be_used_is_an_error(stage, how, answer, message):
    server = stage.serve(filter=says(answer))
    decision = stage.decide(Extender(server.url, **how))
    assert decision.status.code is Code.ERROR
    assert message in decision.message()


def test_an_ignorable_one_that_fails_is_skipped(stage):
    server, other = stage.serve(filter=broken), stage.serve(filter=says({"NodeNames": ["c"]}))
    ignorable = Extender(server.url, ignorable=True, **BY_NAME)
    assert stage.decide(ignorable, Extender(other.url, **BY_NAME)).node_name == "c"


def test_ignorable_ones_are_asked_last(stage):
    last = stage.serve(filter=echo)
    first = stage.serve(filter=says({"NodeNames": ["a", "b"]}))
    stage.decide(Extender(last.url, ignorable=True, **BY_NAME), Extender(first.url, **BY_NAME))
    assert sorted(last.asked[0][1]["NodeNames"]) == ["a", "b"]


def test_a_node_that_has_not_arrived_whole_is_left_out(stage):
    stage.objects.absent = {"a", "b"}
    server = stage.serve(filter=echo)
    assert stage.decide(Extender(server.url, **WHOLE)).node_name == "c"


def test_when_no_node_has_arrived_whole_the_pod_is_tried_again(stage):
    stage.objects.absent = set("abc")
    server = stage.serve(filter=echo)
    decision = stage.decide(Extender(server.url, **WHOLE))
    assert (decision.status.code, server.asked) == (Code.ERROR, [])


def test_a_pod_that_is_gone_is_shown_to_nobody(stage):
    stage.objects.pod_is_gone = True
    server = stage.serve(filter=echo)
    decision = stage.decide(Extender(server.url, **BY_NAME))
    assert (decision.message(), server.asked) == ("the pod no longer exists", [])


GPU = ManagedResource("example.com/gpu")
INITIAL = Container(name="i", resources=ResourceRequirements(limits={"example.com/gpu": "1"}))


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        pytest.param(pod("p"), False, id="asks for nothing"),
        pytest.param(pod("p").request(cpu="1"), False, id="asks for something else"),
        pytest.param(pod("p").request({"example.com/gpu": "1"}), True, id="asks for it"),
        pytest.param(pod("p").init_container(INITIAL), True, id="initially"),
    ],
)
def test_an_extender_of_resources_is_asked_about_pods_that_want_them(stage, made, asked):
    server = stage.serve(filter=echo)
    config = Extender(server.url, managed_resources=(GPU,), **BY_NAME)
    stage.decide(config, info=made.info())
    assert bool(server.asked) is asked
    assert bool(stage.objects.pods_read) is asked


def test_a_profile_without_scores_still_shows_all_nodes_to_a_filter(stage):
    server = stage.serve(filter=says({"NodeNames": ["c"]}))
    assert stage.decide(Extender(server.url, **BY_NAME)).node_name == "c"


def test_connections_are_kept(stage):
    server = stage.serve(filter=echo, prioritize=says([]))
    config = Extender(server.url, prioritize_verb="prioritize", weight=1, **BY_NAME)
    stage.decide(config, points=Points())
    assert (server.verbs(), len(server.peers)) == (["filter", "prioritize"], 1)

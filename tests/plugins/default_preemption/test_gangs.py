"""Members of gangs as victims of a pod: surplus members first, then a gang whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource, PodGroup, group_key
from scheduler.client.codec import Decoder
from tests.builders import node, pod
from tests.plugins.default_preemption.stage import Stage
from tests.plugins.default_preemption.test_victims import budget
from tests.pod_group_builders import x_group

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.builders import NodeBuilder, PodBuilder

PREEMPTOR = pod("web").priority(100)


def key(name: str, source: GroupSource = GroupSource.LABEL) -> GroupKey:
    return GroupKey("default", name, source)


def cluster(*objects: NodeBuilder | PodBuilder, **minimums: int) -> Stage:
    """Return a cluster with a gang for each name, and its minimum."""
    stage = Stage(*objects)
    for name, minimum in minimums.items():
        stage.cluster.known.pod_groups.x_pod_group_changed(None, x_group(minimum, key=key(name)))
    return stage


def member(name: str, number: int, node_name: str, priority: int = 0, cpu: str = "1") -> PodBuilder:
    made = pod(f"{name}-{number}").priority(priority).request(cpu=cpu).on(node_name)
    return made.label(GROUP_LABEL, name).started(f"2025-01-01T00:00:{number:02}Z")


def gang(name: str, *node_names: str, priority: int = 0) -> list[PodBuilder]:
    return [member(name, at, where, priority) for at, where in enumerate(node_names)]


N1, N2 = node("n1").capacity(cpu="2"), node("n2").capacity(cpu="2")


def test_a_surplus_member_goes_alone() -> None:
    stage = cluster(N1, *gang("g", "n1", "n1"), g=1)
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["g-1"], 0)}
    stage = cluster(N1, N2, *gang("g", "n1", "n1", "n2", "n2"), g=3)
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["g-1"], 0), "n2": (["g-3"], 0)}


def test_a_gang_at_its_minimum_goes_whole_wherever_its_members_run() -> None:
    stage = cluster(N1, N2, *gang("g", "n1", "n1", "n2"), g=3)
    everybody = (["g-0", "g-1", "g-2"], 0)
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": everybody, "n2": everybody}


def test_equal_members_go_in_the_order_of_their_uids_whoever_came_first() -> None:
    same = "2025-01-01T00:00:00Z"
    members = [member("g", at, "n2" if at else "n1").started(same) for at in range(3)]
    for arriving in (members, members[::-1]):
        stage = cluster(N1, N2, *arriving, g=3)
        assert stage.victims(PREEMPTOR.request(cpu="2"))["n1"] == (["g-0", "g-1", "g-2"], 0)


def test_a_gang_goes_whole_where_its_surplus_does_not_suffice() -> None:
    stage = cluster(N1, N2, *gang("g", "n1", "n1", "n2"), g=2)
    found = stage.victims(PREEMPTOR.request(cpu="2"))
    assert found["n1"] == (["g-0", "g-1", "g-2"], 0)
    assert found["n2"] == (["g-2"], 0)


def test_another_pod_of_the_same_priority_goes_before_a_gang() -> None:
    alone = pod("alone").request(cpu="1").on("n1").started("2024-01-01T00:00:00Z")
    stage = cluster(N1, N2, alone, *gang("g", "n1", "n2", "n2"), g=3)
    assert stage.victims(PREEMPTOR.request(cpu="1"))["n1"] == (["alone"], 0)


def test_the_node_where_fewer_pods_are_lost_in_all_is_chosen() -> None:
    pods = (pod(f"p-{at}").request(cpu="1").on("n1") for at in range(2))
    stage = cluster(N1, N2, node("n3"), *pods, *gang("g", "n2", "n3", "n3"), g=3)
    stage.post_filter(PREEMPTOR.request(cpu="2"))
    assert [name for _, name, _ in stage.preemption.started] == ["n1"]


def test_a_member_that_is_too_important_protects_a_gang_at_its_minimum() -> None:
    members = [member("g", 0, "n1"), member("g", 1, "n2", priority=100)]
    stage = cluster(N1, N2, *members, g=2)
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {}


def test_a_surplus_member_goes_though_another_is_too_important() -> None:
    members = [member("g", 0, "n1"), member("g", 1, "n1"), member("g", 2, "n2", priority=100)]
    stage = cluster(N1, N2, *members, g=2)
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["g-1"], 0)}
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {}


def test_the_largest_surplus_member_goes_of_equals() -> None:
    small = member("g", 0, "n1").started("2025-02-01T00:00:00Z")
    large = member("g", 1, "n1", cpu="3").started("2025-01-01T00:00:00Z")
    stage = cluster(node("n1").capacity(cpu="4"), small, large, g=1)
    stage.cluster.known.pod_groups.x_pod_group_changed(None, x_group(2, key=key("g")))
    stage.cluster.add_pod(member("g", 2, "n2").build())
    stage.add_node(N2.build())
    assert stage.victims(PREEMPTOR.request(cpu="3"))["n1"] == (["g-1"], 0)


@pytest.mark.parametrize(
    ("minimum", "expected"), [(3, ["g-1"]), (4, ["g-0", "g-1"])], ids=["surplus", "whole"]
)
def test_members_that_succeeded_count_for_the_minimum(minimum: int, expected: list[str]) -> None:
    stage = cluster(N1, *gang("g", "n1", "n1"), g=minimum)
    for number in (7, 8):
        stage.cluster.add_pod(_succeeded(member("g", number, "n1")))
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (expected, 0)}


def _succeeded(made: PodBuilder) -> Pod:
    return made._status(phase="Succeeded").build()


def test_a_member_that_terminates_is_no_surplus() -> None:
    leaving = member("g", 9, "n2").terminating()
    stage = cluster(N1, N2, *gang("g", "n1", "n2"), leaving, g=2)
    assert stage.victims(PREEMPTOR.request(cpu="2"))["n1"] == (["g-0", "g-1"], 0)


def test_a_victim_that_no_watch_has_shown_to_leave_is_no_surplus() -> None:
    stage = cluster(N1, N2, *gang("g", "n1", "n2", "n2"), g=2)
    asked = PREEMPTOR.request(cpu="2")
    assert stage.victims(asked)["n1"] == (["g-0"], 0)
    stage.preemption.about_to_leave.add(member("g", 2, "n2").info().uid)
    assert stage.victims(asked)["n1"] == (["g-0", "g-1"], 0)


def test_a_pod_never_preempts_a_gang_of_its_own() -> None:
    stage = cluster(N1, *gang("g", "n1", "n1"), g=3)
    assert stage.victims(PREEMPTOR.label(GROUP_LABEL, "g").request(cpu="1")) == {}


def test_a_budget_that_would_be_violated_protects_a_gang_with_a_member_elsewhere() -> None:
    alone = pod("alone").priority(5).request(cpu="1").on("n1")
    members = [member("g", 0, "n1"), member("g", 1, "n2").label("app", "db")]
    stage = cluster(N1, N2, alone, *members, g=2)
    stage.cluster.known.disruption_budgets.budget_changed(None, budget(0, app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="1"))["n1"] == (["alone"], 0)
    assert stage.victims(PREEMPTOR.request(cpu="2"))["n1"] == (["alone", "g-0", "g-1"], 1)


def test_violations_by_members_elsewhere_are_shown() -> None:
    members = [member("g", 0, "n1"), member("g", 1, "n2").label("app", "db")]
    stage = cluster(N1, N2, *members, g=2)
    stage.cluster.known.disruption_budgets.budget_changed(None, budget(0, app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="2"))["n1"] == (["g-0", "g-1"], 1)


# --- groups of scheduling.k8s.io ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"policy": {"basic": {}}}, ["g-1"]),
        ({"policy": {"gang": {"minCount": 1}}}, ["g-1"]),
        ({"policy": {"gang": {"minCount": 2}}}, ["g-0", "g-1"]),
        ({"policy": {"basic": {}}, "disruptionMode": "PodGroup"}, ["g-0", "g-1"]),
        ({"policy": {"basic": {}}, "disruptionMode": {"all": {}}}, ["g-0", "g-1"]),
        ({"policy": {"gang": {"minCount": 2}}, "priority": 99}, ["g-0", "g-1"]),
        ({"policy": {"gang": {"minCount": 2}}, "priority": 100}, None),
    ],
    ids=["basic", "minimum-1", "gang", "whole", "whole-1.37", "priority-below", "priority-equal"],
)
def test_the_rules_of_a_group_say_who_goes(group: dict, expected: list[str] | None) -> None:
    members = [
        pod(f"g-{at}")
        .request(cpu="1")
        .on("n1")
        .scheduling_group("g")
        .started(f"2025-01-0{at + 1}T00:00:00Z")
        for at in range(2)
    ]
    stage = Stage(N1, *members)
    rules = dict(group)
    metadata = {"name": "g", "namespace": "default", "uid": "u"}
    spec = {"schedulingPolicy": rules.pop("policy"), **rules}
    made = Decoder(PodGroup).decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))
    stage.cluster.known.pod_groups.pod_group_changed(None, made)
    found = stage.victims(PREEMPTOR.request(cpu="1"))
    assert found == ({} if expected is None else {"n1": (expected, 0)})


# --- what is kept between searches --------------------------------------------------------------


def test_a_gang_that_changes_elsewhere_is_looked_at_anew() -> None:
    stage = cluster(N1, N2, *gang("g", "n1", "n2"), g=2)
    asked = PREEMPTOR.request(cpu="2")
    assert stage.victims(asked)["n1"] == (["g-0", "g-1"], 0)
    stage.cluster.add_pod(member("g", 2, "n2").build())
    assert stage.victims(asked)["n1"] == (["g-0"], 0)
    groups = stage.cluster.known.pod_groups
    groups.x_pod_group_changed(x_group(2, key=key("g")), x_group(3, key=key("g")))
    assert stage.victims(asked)["n1"] == (["g-0", "g-1", "g-2"], 0)
    groups.x_pod_group_changed(x_group(3, key=key("g")), None)
    assert stage.victims(asked)["n1"] == (["g-0"], 0)


# --- extenders ----------------------------------------------------------------------------------


def test_extenders_are_asked_about_the_node_and_gangs_are_completed() -> None:
    stage = cluster(N1, N2, *gang("g", "n1", "n2"), g=2)
    stage.preemption.extenders_leave = frozenset({"n1"})
    stage.post_filter(PREEMPTOR.request(cpu="2"))
    assert stage.preemption.asked == {"n1": ["g-0"], "n2": ["g-1"]}
    ((_, name, victims),) = stage.preemption.started
    assert (name, [info.name for info in victims.pods]) == ("n1", ["g-0", "g-1"])


# --- any cluster --------------------------------------------------------------------------------

pods_of = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 3),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=9,
)


@settings(deadline=None, max_examples=60)
@given(pods_of, st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_no_gang_is_left_below_its_minimum_and_nobody_goes_for_nothing(
    listed: list[tuple[str, str, int, int]], a: int, b: int, wanted: int, priority: int
) -> None:
    nodes = [node(name).capacity(cpu="4") for name in ("n1", "n2", "n3")]
    made = [
        (
            member(name, at, where, level, str(cpu))
            if name
            else pod(f"p-{at}").priority(level).request(cpu=str(cpu)).on(where)
        )
        for at, (where, name, level, cpu) in enumerate(listed)
    ]
    stage = cluster(*nodes, *made, a=a, b=b)
    running = {one.info().name: one.info() for one in made}
    minimum = {"a": a, "b": b}
    survey = stage.survey(pod("web").priority(priority).request(cpu=str(wanted)))
    for name, candidate in survey.candidates.items():
        gone = {info.name for info in candidate.victims.pods}
        assert all(running[each].priority < priority for each in gone)
        assert _is_allowed(running, gone, minimum)
        free = 4 - sum(
            info.requests["cpu"] // 1000
            for each, info in running.items()
            if info.node_name == name and each not in gone
        )
        assert free >= wanted
        for each in gone:
            if (
                running[each].node_name == name
                and free - running[each].requests["cpu"] // 1000 >= wanted
            ):
                assert not _is_allowed(running, gone - {each}, minimum)


def _is_allowed(running: dict, gone: set[str], minimum: dict[str, int]) -> bool:
    for name, least in minimum.items():
        members = {
            each
            for each, info in running.items()
            if (found := group_key(info.pod)) is not None and found.name == name
        }
        if least > 1 and members & gone and members - gone and len(members - gone) < least:
            return False
    return True

"""Whom an event asks, how often, and when: counted in questions, never by a clock."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import Namespace, ObjectMeta
from plugins.framework.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    EventRegistration,
    Hint,
    Resource,
)
from plugins.framework.queueing_hints import GroupHint, Question
from plugins.inter_pod_affinity import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_resources_fit import NodeResourcesFit
from plugins.pod_topology_spread import PodTopologySpread
from scheduler.queueing import QueueState
from scheduler.queueing.event_backlog import MAX_BACKLOG
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle
from tests.scheduler.queueing.stage import NODE_LABEL, Stage, wants

if TYPE_CHECKING:
    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.queueing import QueuedPod

HANDLE = RecordingHandle([Namespace(ObjectMeta(name="default"))])
MANY = 10_000


class Counted:
    """The registrations of a plugin, and how often its hints were asked."""

    def __init__(self, plugin: Plugin) -> None:
        self.questions = 0
        self.read = 0
        self.name = plugin.name
        self.registrations = [self._counted(each) for each in plugin.events_to_register()]

    def _counted(self, registration: EventRegistration) -> EventRegistration:
        hint = registration.hint
        assert isinstance(hint, GroupHint)

        def about(old: Any, new: Any) -> Question[Any]:
            question = hint.about(old, new)

            def answer(facts: Any) -> bool:
                self.questions += 1
                return question.answer(facts)

            return Question(answer, question.topics)

        return EventRegistration(registration.event, GroupHint(hint.likeness, about))


def stage_of(plugin: Plugin, **options: Any) -> tuple[Stage, Counted]:
    counted = Counted(plugin)
    return Stage({counted.name: counted.registrations}, **options), counted


def refuse_all(stage: Stage, plugin: str, pods: list[PodBuilder]) -> None:
    for each in pods:
        stage.queue.add(each.info())
    popped = [stage.pop() for _ in pods]
    for queued in popped:
        stage.refuse(queued, plugin)


def pieces(number: int) -> Any:
    numbers = count(1)
    return lambda: next(numbers) >= number


def lonely(name: str, app: str) -> PodBuilder:
    """Return a pod with two terms: near some pods, and apart from others."""
    return (
        pod(name).label("app", app).pod_affinity("zone", db=app).pod_anti_affinity("zone", app=app)
    )


FOREIGN = pod("foreign").label("app", "other").label("tier", "x").on("n").build()


@pytest.mark.parametrize(
    ("plugin", "waiting"),
    [
        pytest.param(InterPodAffinity(None, HANDLE), lambda i: lonely(f"p{i}", "a"), id="affinity"),
        pytest.param(
            PodTopologySpread(None, HANDLE),
            lambda i: pod(f"p{i}").label("app", "a").spread("zone", app="a"),
            id="spread",
        ),
        pytest.param(
            NodeResourcesFit(None, HANDLE), lambda i: pod(f"p{i}").request(cpu="9"), id="fit"
        ),
        pytest.param(
            NodeAffinity(None, HANDLE),
            lambda i: pod(f"p{i}").node_selector("disk", "ssd"),
            id="nodes",
        ),
    ],
)
def test_pods_that_are_alike_are_one_question_for_each_hint(plugin, waiting):
    stage, counted = stage_of(plugin)
    refuse_all(stage, counted.name, [waiting(index) for index in range(MANY)])
    for event, old, new in (
        (ASSIGNED_POD_ADD, None, FOREIGN),
        (ASSIGNED_POD_DELETE, pod("gone").label("app", "b").build(), None),
        (NODE_ADD, None, node("tiny").capacity(cpu="1", pods="9").build()),
    ):
        counted.questions = 0
        stage.queue.move_all(event, old, new)
        assert counted.questions <= 2


def test_a_small_pod_that_goes_does_not_wake_ten_thousand_that_it_cannot_help():
    handle = RecordingHandle()
    left = pod("left").request(cpu="2").on("n")
    handle.cached_nodes["n"] = node("n").capacity(cpu="3", pods="9").info(left)
    stage, counted = stage_of(NodeResourcesFit(None, handle))
    large = [pod(f"p{i}").request(cpu="2") for i in range(MANY)]
    refuse_all(stage, counted.name, [*large, pod("small").request(cpu="1")])
    stage.queue.move_all(ASSIGNED_POD_DELETE, pod("gone").request(cpu="1").on("n").build(), None)
    assert counted.questions == 2
    assert stage.queue.counts().unschedulable == MANY
    assert stage.state(pod("small")) is QueueState.BACKOFF


def test_nobody_is_asked_about_a_pod_whose_labels_no_term_means():
    stage, counted = stage_of(InterPodAffinity(None, HANDLE))
    refuse_all(stage, counted.name, [lonely(f"p{i}", f"app-{i}") for i in range(MANY)])
    stage.queue.move_all(ASSIGNED_POD_ADD, None, FOREIGN)
    stage.queue.move_all(ASSIGNED_POD_DELETE, FOREIGN, None)
    assert counted.questions == 0
    stage.queue.move_all(ASSIGNED_POD_ADD, None, pod("db").label("db", "app-7").on("n").build())
    assert 0 < counted.questions <= 2
    assert stage.state(pod("p7")) is QueueState.BACKOFF
    assert stage.queue.counts().unschedulable == MANY - 1


def test_nobody_is_asked_about_pods_of_other_namespaces():
    stage, counted = stage_of(PodTopologySpread(None, HANDLE))
    waiting = [pod(f"p{i}", namespace=f"n{i}").spread("zone", app="other") for i in range(500)]
    refuse_all(stage, counted.name, waiting)
    stage.queue.move_all(ASSIGNED_POD_ADD, None, FOREIGN)
    assert counted.questions == 0


def test_what_a_hint_reads_of_a_pod_is_read_once_for_each_version():
    stage, _ = stage_of(InterPodAffinity(None, HANDLE))
    one = lonely("one", "a")
    queued = stage.refused(one, "InterPodAffinity")
    stage.queue.move_all(ASSIGNED_POD_ADD, None, FOREIGN)
    facts = queued.facts
    stage.queue.move_all(ASSIGNED_POD_DELETE, FOREIGN, None)
    assert queued.facts is facts
    stage.update(one, one.label("other", "b"))
    assert queued.facts is not facts


def test_no_group_outlives_its_pods():
    stage, counted = stage_of(InterPodAffinity(None, HANDLE))
    refuse_all(stage, counted.name, [lonely(f"p{i}", f"app-{i}") for i in range(20)])
    stage.queue.move_all(ASSIGNED_POD_ADD, None, FOREIGN)
    for index in range(20):
        stage.queue.delete(pod(f"p{index}").info().uid)
    assert stage.queue._pods.unschedulable.groups() == []


# --- in slices --------------------------------------------------------------------------------


def pickily(told: list[str]) -> Any:
    def hint(one: Pod, old: object, new: object) -> Hint:
        told.append(one.metadata.name)
        return Hint.QUEUE if new == "all" or one.metadata.name == new else Hint.SKIP

    return hint


def sliced(number: int, **options: Any) -> tuple[Stage, list[str], list[int]]:
    """Return a stage with refused pods, the names asked about, and the calls of wake_later."""
    told: list[str] = []
    calls: list[int] = []
    wanted = {"Picky": (wants(Resource.NODE, Action.UPDATE_NODE_LABEL, pickily(told)),)}
    stage = Stage(wanted, wake_later=lambda: calls.append(1), **options)
    refuse_all(stage, "Picky", [pod(f"p{index}") for index in range(number)])
    return stage, told, calls


def test_an_event_costs_a_bounded_number_of_questions_and_the_rest_follows():
    stage, told, calls = sliced(1000, pieces_at_once=10)
    stage.queue.move_all(NODE_LABEL, None, "p999")
    assert (len(told), len(calls), stage.queue.backlog()) == (10, 1, 1)
    stage.queue.move_all(NODE_LABEL, None, "nobody")
    assert (len(told), stage.queue.backlog()) == (10, 2)
    while stage.queue.judge_backlog(pieces(50)):
        assert len(told) % 50 == 10 or len(told) > 1000
    assert len(told) == 1999
    assert stage.queue.counts().unschedulable == 999


def test_a_pod_whose_attempt_started_after_an_event_is_not_woken_by_it():
    stage, _, _ = sliced(3, pieces_at_once=1)
    stage.queue.move_all(NODE_LABEL, None, "late")
    late = stage.refused(pod("late"), "Picky")
    while stage.queue.judge_backlog(pieces(1)):
        pass
    assert late.state is QueueState.UNSCHEDULABLE
    stage.queue.move_all(NODE_LABEL, None, "late")
    while stage.queue.judge_backlog(pieces(1)):
        pass
    assert late.state is not QueueState.UNSCHEDULABLE


def test_a_pod_in_flight_judges_an_event_of_the_backlog_at_its_end():
    stage, _, _ = sliced(3, pieces_at_once=1)
    stage.add(pod("trying"))
    trying = stage.pop()
    stage.queue.move_all(NODE_LABEL, None, "trying")
    stage.refuse(trying, "Picky")
    assert trying.state is QueueState.BACKOFF


@pytest.mark.parametrize("fate", ["deleted", "activated"])
def test_a_pod_that_left_its_room_is_not_woken(fate):
    stage, _, _ = sliced(3, pieces_at_once=1)
    stage.queue.move_all(NODE_LABEL, None, "all")
    uid = pod("p2").info().uid
    if fate == "deleted":
        stage.queue.delete(uid)
    else:
        stage.queue.activate([uid])
    state = stage.queue.state_of(uid)
    while stage.queue.judge_backlog(pieces(1)):
        pass
    assert stage.queue.state_of(uid) is state


def test_an_event_that_concerns_nobody_who_waits_is_not_put_down():
    wanted = {"Picky": (wants(Resource.NODE, Action.UPDATE_NODE_LABEL, lambda *_: Hint.SKIP),)}
    stage = Stage(wanted, wake_later=lambda: None, pieces_at_once=1)
    refuse_all(stage, "Picky", [pod(f"p{index}") for index in range(4)])
    stage.queue.move_all(NODE_LABEL, None, "x")
    assert stage.queue.backlog() == 1
    stage.queue.move_all(ASSIGNED_POD_ADD, None, FOREIGN)
    assert stage.queue.backlog() == 1


def test_another_policy_is_asked_about_the_events_that_wait():
    answers = [Hint.SKIP]
    wanted = {"Picky": (wants(Resource.NODE, Action.UPDATE_NODE_LABEL, lambda *_: answers[0]),)}
    stage = Stage(wanted, wake_later=lambda: None, pieces_at_once=1)
    refuse_all(stage, "Picky", [pod(f"p{index}") for index in range(4)])
    stage.queue.move_all(NODE_LABEL, None, "x")
    answers[0] = Hint.QUEUE
    stage.queue.policy_changed(frozenset(), frozenset({"berth"}))
    while stage.queue.judge_backlog(pieces(1)):
        pass
    assert stage.queue.counts().unschedulable == 0


def test_a_backlog_that_is_full_wakes_whom_its_events_may_concern_without_asking():
    stage, told, _ = sliced(5, pieces_at_once=1)
    asked = len(told)
    for _ in range(MAX_BACKLOG + 2):
        stage.queue.move_all(NODE_LABEL, None, "nobody")
    assert stage.queue.backlog() < MAX_BACKLOG
    late = stage.refused(pod("late"), "Picky")
    while stage.queue.judge_backlog(pieces(3)):
        pass
    assert len(told) <= asked + 3
    assert stage.queue.counts().unschedulable == 1
    assert late.state is QueueState.UNSCHEDULABLE


def test_the_age_of_the_oldest_active_pod():
    stage = Stage()
    assert stage.queue.oldest_active_s() == 0
    stage.add(pod("one"))
    stage.add(pod("two").priority(9))
    assert stage.queue.oldest_active_s() == 2
    stage.pop()
    assert stage.queue.oldest_active_s() == 2
    stage.pop()
    assert stage.queue.oldest_active_s() == 0


# --- nothing is lost, nothing is heard twice --------------------------------------------------

NAMES = ["p0", "p1", "p2", "p3"]
STEPS = st.one_of(
    st.tuples(st.just("event"), st.sampled_from([*NAMES, "all", "nobody"])),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("refuse"), st.sampled_from(NAMES)),
    st.tuples(st.just("slice"), st.integers(1, 4)),
    st.tuples(st.just("later"), st.none()),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_a_pod_sleeps_exactly_if_nothing_helped_since_its_attempt_started(steps):
    wanted = {"Picky": (wants(Resource.NODE, Action.UPDATE_NODE_LABEL, pickily([])),)}
    stage = Stage(wanted, wake_later=lambda: None, pieces_at_once=1)
    refuse_all(stage, "Picky", [pod(name) for name in NAMES])
    since = {name: list[str]() for name in NAMES}
    in_flight: dict[str, QueuedPod] = {}
    for what, which in steps:
        if what == "event":
            stage.queue.move_all(NODE_LABEL, None, which)
            for heard in since.values():
                heard.append(which)
        elif what == "pop":
            queued = stage.queue.pop(0)
            if queued is not None:
                in_flight[queued.info.name] = queued
                since[queued.info.name].clear()
        elif what == "refuse" and which in in_flight:
            stage.refuse(in_flight.pop(which), "Picky")
        elif what == "slice":
            stage.queue.judge_backlog(pieces(which))
        else:
            stage.now_s += 20
    while stage.queue.judge_backlog(pieces(1)):
        pass
    for name, heard in since.items():
        if name not in in_flight:
            sleeps = stage.state(pod(name)) is QueueState.UNSCHEDULABLE
            assert sleeps is not any(which in (name, "all") for which in heard)

from __future__ import annotations

import pytest

from cache.pod_info import PodInfo
from plugins.framework.cluster_events import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    EventRegistration,
    Hint,
    Resource,
)
from scheduler.queueing.blocked_pods import Blockers
from scheduler.queueing.pod_facts import PodFacts
from scheduler.queueing.queue_event import Happening
from scheduler.queueing.requeue_check import Verdict, WakeUps
from tests.builders import pod
from tests.scheduler.queueing.stage import FIT, NODE_LABEL, NODE_TAINT, TAINTS, wants

POD = pod("p").build()
QUEUE, SKIP = (lambda *_: Hint.QUEUE), (lambda *_: Hint.SKIP)
ADDED = Action.ADD

PLUGINS = {
    "Fit": FIT,
    "Taints": TAINTS,
    "Silent": (),
    "Everything": (EventRegistration(ALL_EVENTS),),
    "Yes": (wants(Resource.NODE, ADDED, QUEUE),),
    "No": (wants(Resource.NODE, ADDED, SKIP),),
    "NoThenYes": (wants(Resource.NODE, ADDED, SKIP), wants(Resource.NODE, ADDED, QUEUE)),
}


def blockers(unschedulable: str = "", pending: str = "", profile: str = "berth") -> Blockers:
    return Blockers(profile, frozenset(unschedulable.split()), frozenset(pending.split()))


def wake_ups(failures: list[str] | None = None) -> WakeUps:
    told = [] if failures is None else failures
    return WakeUps(
        lambda profile: PLUGINS if profile == "berth" else {},
        lambda plugin, event, pod, error: told.append(f"{plugin}: {error}"),
    )


def judge(event, refused_by, old=None, new=None) -> Verdict:
    under_test = wake_ups()
    return under_test.verdict(
        under_test.askers(refused_by, event), Happening(event, old, new), PodFacts(PodInfo(POD))
    )


@pytest.mark.parametrize(
    ("event", "refused_by", "verdict"),
    [
        pytest.param(NODE_ADD, blockers("Fit"), Verdict.AFTER_BACKOFF, id="registered"),
        pytest.param(NODE_DELETE, blockers("Fit"), Verdict.STAY, id="not registered"),
        pytest.param(NODE_LABEL, blockers("Fit"), Verdict.STAY, id="another change of a node"),
        pytest.param(
            ASSIGNED_POD_DELETE, blockers("Fit"), Verdict.AFTER_BACKOFF, id="pods are of two kinds"
        ),
        pytest.param(ASSIGNED_POD_ADD, blockers("Fit"), Verdict.STAY, id="a pod takes room"),
        pytest.param(
            NODE_TAINT, blockers("Fit Taints"), Verdict.AFTER_BACKOFF, id="one of two is enough"
        ),
        pytest.param(NODE_ADD, blockers("Silent"), Verdict.STAY, id="wants to hear of nothing"),
        pytest.param(
            NODE_DELETE, blockers("Everything"), Verdict.AFTER_BACKOFF, id="wants to hear it all"
        ),
        pytest.param(NODE_ADD, blockers("Yes"), Verdict.AFTER_BACKOFF, id="hint says Queue"),
        pytest.param(NODE_ADD, blockers("No"), Verdict.STAY, id="hint says QueueSkip"),
        pytest.param(
            NODE_ADD, blockers("No Yes"), Verdict.AFTER_BACKOFF, id="any hint that says Queue"
        ),
        pytest.param(
            NODE_ADD, blockers("NoThenYes"), Verdict.AFTER_BACKOFF, id="two hints of one plugin"
        ),
        pytest.param(NODE_ADD, blockers("", "Yes"), Verdict.AT_ONCE, id="pending, awaited"),
        pytest.param(NODE_ADD, blockers("Yes", "No"), Verdict.AFTER_BACKOFF, id="pending says no"),
        pytest.param(NODE_ADD, blockers("Fit", "Yes"), Verdict.AT_ONCE, id="the larger verdict"),
        pytest.param(NODE_ADD, blockers("Yes", "Yes"), Verdict.AT_ONCE, id="both at once"),
        pytest.param(NODE_DELETE, blockers("Unheard"), Verdict.AFTER_BACKOFF, id="unknown plugin"),
        pytest.param(
            NODE_DELETE, blockers("Fit", "", "other"), Verdict.AFTER_BACKOFF, id="unknown profile"
        ),
        pytest.param(ALL_EVENTS, blockers("Silent"), Verdict.AFTER_BACKOFF, id="wildcard"),
        pytest.param(
            ALL_EVENTS, blockers("", "Fit"), Verdict.AFTER_BACKOFF, id="wildcard keeps pauses"
        ),
    ],
)
def test_what_an_event_means(event, refused_by, verdict):
    assert judge(event, refused_by) is verdict


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        pytest.param(POD, Verdict.AFTER_BACKOFF, id="this pod"),
        pytest.param(pod("other").build(), Verdict.STAY, id="another pod"),
        pytest.param(pod("p").uid("new").build(), Verdict.STAY, id="its successor"),
        pytest.param(None, Verdict.AFTER_BACKOFF, id="nobody"),
    ],
)
def test_a_wildcard_event_may_name_one_pod(new, verdict):
    assert judge(FORCE_ACTIVATE, blockers("Fit"), None, new) is verdict


@pytest.mark.parametrize(
    ("event", "old", "new", "verdict"),
    [
        pytest.param(ASSIGNED_POD_DELETE, POD, None, Verdict.STAY, id="its own release"),
        pytest.param(
            ASSIGNED_POD_DELETE, pod("o").build(), None, Verdict.AFTER_BACKOFF, id="another's"
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            pod("p").uid("x").build(),
            None,
            Verdict.AFTER_BACKOFF,
            id="namesake",
        ),
        pytest.param(NODE_ADD, None, POD, Verdict.AFTER_BACKOFF, id="no event of a pod"),
    ],
)
def test_what_a_pod_gives_back_itself_is_no_news_to_it(event, old, new, verdict):
    assert judge(event, blockers("Fit"), old, new) is verdict


def test_a_hint_gets_the_pod_and_the_object_before_and_after():
    got = []
    under_test = WakeUps(
        lambda _: {"P": (wants(Resource.NODE, ADDED, lambda *args: got.append(args)),)},
        lambda *_: None,
    )
    askers = under_test.askers(blockers("P"), NODE_ADD)
    under_test.verdict(askers, Happening(NODE_ADD, "old", "new"), PodFacts(PodInfo(POD)))
    assert got == [(POD, "old", "new")]


def test_a_hint_that_raises_says_queue_and_is_told_of():
    def broken(*_: object) -> Hint:
        raise ValueError("oh")

    failures: list[str] = []
    under_test = WakeUps(
        lambda _: {"P": (wants(Resource.NODE, ADDED, broken),)},
        lambda plugin, event, pod, error: failures.append(f"{plugin}: {error}"),
    )
    askers = under_test.askers(blockers("P"), NODE_ADD)
    happening = Happening(NODE_ADD, None, None)
    verdict = under_test.verdict(askers, happening, PodFacts(PodInfo(POD)))
    assert verdict is Verdict.AFTER_BACKOFF
    assert failures == ["P: oh"]


def test_registrations_are_asked_for_once_for_each_profile():
    asked = []
    under_test = WakeUps(lambda profile: asked.append(profile) or PLUGINS, lambda *_: None)
    for event in (NODE_ADD, NODE_DELETE, NODE_ADD):
        under_test.askers(blockers("Fit"), event)
        under_test.askers(blockers("Fit", "", "second"), event)
    assert asked == ["berth", "second"]


@pytest.mark.parametrize(
    ("event", "gate", "concerned"),
    [
        pytest.param(NODE_ADD, "Fit", True, id="registered"),
        pytest.param(NODE_DELETE, "Fit", False, id="not registered"),
        pytest.param(ALL_EVENTS, "Fit", False, id="wildcard"),
        pytest.param(ALL_EVENTS, "Everything", True, id="wildcard, wanted"),
        pytest.param(NODE_ADD, "Unheard", False, id="unknown gate"),
    ],
)
def test_a_gate_is_only_concerned_by_what_it_registered(event, gate, concerned):
    gated = Blockers("berth", frozenset({gate}), frozenset(), gate)
    assert bool(wake_ups().askers(gated, event)) is concerned


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        pytest.param("No", Verdict.AFTER_BACKOFF, id="the gate wants to hear of it"),
        pytest.param("Taints", Verdict.STAY, id="the gate does not"),
    ],
)
def test_who_refused_a_gated_pod_is_asked_about_what_its_gate_registered(gate, verdict):
    event = NODE_ADD if gate == "No" else ASSIGNED_POD_DELETE
    gated = Blockers("berth", frozenset({gate, "Fit"}), frozenset(), gate)
    assert judge(event, gated) is verdict

"""DefaultPreemption as the framework calls it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plugins.default_preemption import DefaultPreemptionArgs
from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.framework.status import Code, Status
from scheduler.config import ConfigError
from tests.builders import PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage

SMALL = node("n1").capacity(cpu="1")
PREEMPTOR = pod("web").priority(100).request(cpu="1")
VICTIM = pod("victim").request(cpu="1").on("n1")


def full(name: str, priority: int) -> PodBuilder:
    return pod(f"on-{name}").priority(priority).request(cpu="1").on(name)


def test_the_node_that_is_chosen_is_nominated_and_its_victims_are_evicted() -> None:
    stage = Stage(SMALL, node("n2").capacity(cpu="1"), full("n1", 9), full("n2", 3))
    assert stage.post_filter(PREEMPTOR) == ("n2", Status(Code.SUCCESS))
    ((asked, name, victims),) = stage.preemption.started
    assert (asked, name) == ("default/web", "n2")
    assert [info.name for info in victims.pods] == ["on-n2"]


@pytest.mark.parametrize(
    ("stage", "asked", "nominated", "message"),
    [
        pytest.param(
            Stage(SMALL, VICTIM),
            PREEMPTOR.never_preempts(),
            None,
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="may not preempt",
        ),
        pytest.param(
            Stage(SMALL, VICTIM.preempted("2999-01-01T00:00:00Z")),
            PREEMPTOR.nominated("n1"),
            None,
            "preemption: not eligible due to a terminating pod on the nominated node.",
            id="waits for its victims",
        ),
        pytest.param(
            Stage(
                SMALL,
                VICTIM,
                node("n2").capacity(cpu="4").taint("closed"),
                node("n3").capacity(cpu="8"),
                pod("big").priority(200).request(cpu="7").on("n3"),
                pod("little").request(cpu="1").on("n3"),
            ),
            PREEMPTOR.request(cpu="2"),
            "",
            "preemption: 0/3 nodes are available: 1 Insufficient cpu, "
            "2 Preemption is not helpful for scheduling.",
            id="no node would do",
        ),
    ],
)
def test_why_nobody_is_evicted(
    stage: Stage, asked: PodBuilder, nominated: str | None, message: str
) -> None:
    assert stage.post_filter(asked) == (nominated, Status(Code.UNSCHEDULABLE, (message,)))
    assert not stage.preemption.started


def test_nobody_is_evicted_for_a_pod_that_is_gone() -> None:
    stage = Stage(SMALL, VICTIM)
    again = PREEMPTOR.uid("another").build()
    nominated, status = stage.post_filter(PREEMPTOR, live=again)
    assert (nominated, status.code) == (None, Code.ERROR)
    assert status.message == 'preemption: pod "web" not found'
    assert not stage.preemption.started


def test_the_latest_version_of_the_pod_counts() -> None:
    stage = Stage(SMALL, VICTIM)
    live = PREEMPTOR.build()
    live = replace(live, spec=replace(live.spec, preemption_policy="Never"))
    nominated, status = stage.post_filter(PREEMPTOR, live=live)
    assert (nominated, status.code) == (None, Code.UNSCHEDULABLE)


def test_extenders_narrow_the_candidates() -> None:
    stage = Stage(SMALL, node("n2").capacity(cpu="1"), full("n1", 9), full("n2", 3))
    stage.preemption.extenders_leave = frozenset({"n1"})
    assert stage.post_filter(PREEMPTOR)[0] == "n1"


def test_extenders_may_leave_nothing() -> None:
    stage = Stage(SMALL, VICTIM)
    stage.preemption.extenders_leave = frozenset()
    nominated, status = stage.post_filter(PREEMPTOR)
    assert (nominated, status.code) == (None, Code.UNSCHEDULABLE)
    assert status.message == "preemption: no candidate node for preemption"


def test_an_extender_that_fails_ends_the_attempt() -> None:
    stage = Stage(SMALL, VICTIM)
    stage.preemption.extenders_fail = True
    nominated, status = stage.post_filter(PREEMPTOR)
    assert (nominated, status.code) == (None, Code.ERROR)
    assert "no answer" in status.message


def test_where_eviction_does_not_begin_nothing_is_nominated() -> None:
    stage = Stage(SMALL, VICTIM)
    stage.preemption.answer = Status(Code.ERROR, ("not now",))
    assert stage.post_filter(PREEMPTOR) == (None, Status(Code.ERROR, ("preemption: not now",)))


def test_other_nodes_are_taken_when_a_victim_will_not_die() -> None:
    stuck = VICTIM.preempted("2025-01-01T00:00:00Z")
    stage = Stage(SMALL, stuck, node("n2").capacity(cpu="1"), full("n2", 50))
    assert stage.post_filter(PREEMPTOR.nominated("n1"))[0] == "n2"


def test_without_other_nodes_a_victim_that_will_not_die_is_waited_for() -> None:
    stage = Stage(SMALL, VICTIM.preempted("2025-01-01T00:00:00Z"))
    nominated, status = stage.post_filter(PREEMPTOR.nominated("n1"))
    assert (nominated, status.code) == (None, Code.UNSCHEDULABLE)
    assert not stage.preemption.started


def test_a_pod_stays_out_of_the_queue_while_its_victims_are_evicted() -> None:
    stage = Stage(SMALL)
    stage.preemption.running.add(PREEMPTOR.info().uid)
    status = stage.plugin.pre_enqueue(PREEMPTOR.build())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for the preemption for this pod to be finished"
    assert stage.plugin.pre_enqueue(VICTIM.build()).is_success


def test_a_pod_that_goes_is_no_reason_of_its_own_to_try_again() -> None:
    (registered,) = Stage(SMALL).plugin.events_to_register()
    assert (registered.event.resource, registered.event.action) == (Resource.POD, Action.DELETE)
    assert registered.hint is not None
    assert registered.hint(PREEMPTOR.build(), VICTIM.build(), None) is Hint.SKIP


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "count", "num_nodes", "wanted"),
    [
        pytest.param(10, 100, 5000, 500, id="a share of many"),
        pytest.param(10, 100, 500, 100, id="a number of few"),
        pytest.param(10, 100, 60, 60, id="never more than there are"),
        pytest.param(0, 1, 5000, 1, id="no share"),
        pytest.param(100, 0, 7, 7, id="no number"),
    ],
)
def test_how_many_candidates_are_enough(
    share: int, count: int, num_nodes: int, wanted: int
) -> None:
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=share, min_candidate_nodes_absolute=count
    )
    assert args.candidates_wanted(num_nodes) == wanted


@pytest.mark.parametrize(
    ("share", "count"),
    [
        pytest.param(-1, 1, id="negative share"),
        pytest.param(101, 1, id="more than all"),
        pytest.param(10, -1, id="negative number"),
        pytest.param(0, 0, id="nothing at all"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(share: int, count: int) -> None:
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=share, min_candidate_nodes_absolute=count
    )
    with pytest.raises(ConfigError, match="minCandidateNodes"):
        Stage(SMALL, args=args)

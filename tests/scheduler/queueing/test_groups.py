from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.objects import PodMeta
from cache.pod_group_objects import (
    GangPolicy,
    GroupKey,
    GroupSource,
    PodGroup,
    PodGroupSpec,
    SchedulingPolicy,
    XPodGroup,
    XPodGroupSpec,
)
from cache.pod_groups import PodGroups
from plugins import names
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE, NODE_ADD
from plugins.framework.status import unresolvable
from scheduler.queueing import QueuedGroup, QueueState, Refusers
from tests.builders import node, pod
from tests.scheduler.queueing.stage import NODE_LABEL, Stage

if TYPE_CHECKING:
    from cache.objects import Pod
    from scheduler.queueing import QueuedPod
    from tests.builders import PodBuilder

KEY = GroupKey("default", "train", GroupSource.LABEL)
FIT = Refusers(frozenset({"Fit"}))


def member(name: str, group: str = "train") -> PodBuilder:
    return pod(name).label("scheduling.x-k8s.io/pod-group", group)


class GroupStage(Stage):
    """A queue that knows groups, and the groups."""

    def __init__(self, **options: int) -> None:
        self.groups = PodGroups()
        super().__init__(standing=self.groups.standing, **options)
        self.groups.subscribe(self.queue.group_changed)
        self.shown: dict[str, Pod] = {}
        self.object: XPodGroup | None = None

    def group(self, minimum: int) -> None:
        """Let the object come, or change."""
        meta = PodMeta(name=KEY.name, namespace=KEY.namespace, uid="uid")
        made = XPodGroup(meta, XPodGroupSpec(minimum))
        self.groups.x_pod_group_changed(self.object, made)
        self.object = made

    def show(self, *pods: PodBuilder) -> None:
        """Let the watch show pods, new ones or other versions."""
        for each in pods:
            made = each.build()
            old = self.shown.get(made.metadata.uid)
            self.groups.pod_changed(old, made)
            self.shown[made.metadata.uid] = made
            if made.spec.node_name:
                self.queue.delete(made.metadata.uid)
            elif old is None:
                self.queue.add(each.info())
            else:
                self.queue.update(old, each.info())
            self.now_s += 1

    def gone(self, each: PodBuilder) -> None:
        """Let a pod be deleted."""
        made = each.build()
        self.groups.pod_changed(made, None)
        self.queue.delete(made.metadata.uid)

    def pop_group(self) -> QueuedGroup:
        """Take the group that must be there."""
        entry = self.pop()
        assert isinstance(entry, QueuedGroup)
        return entry

    def refuse_group(self, entry: QueuedGroup, *refused: PodBuilder) -> None:
        """End an attempt with a "no" to these members."""
        self.queue.group_refused(entry, {each.build().metadata.uid: FIT for each in refused})

    def place(self, entry: QueuedGroup, *placed: PodBuilder) -> list[QueuedPod]:
        """Assume members; return those that are left."""
        uids = {each.build().metadata.uid for each in placed}
        self.groups.assume(entry.key, uids)
        self.queue.group_placed(entry)
        return [each for each in entry.tried if each.info.uid not in uids]

    def reason(self) -> str:
        """Why the group is kept out."""
        (group,) = self.queue.groups()
        return group.gate_reasons[0] if group.gate_reasons else ""


@pytest.fixture
def stage() -> GroupStage:
    return GroupStage()


A, B, C = member("a"), member("b"), member("c")


class TestGathering:
    def test_a_group_is_popped_once_with_all_of_its_members(self, stage):
        stage.group(2)
        stage.show(A, B, C)
        assert [each.info.name for each in stage.pop_group().tried] == ["a", "b", "c"]
        assert stage.queue.pop(0) is None

    def test_what_comes_next_is_told_of_single_pods_alone(self, stage):
        stage.group(2)
        stage.show(A, B)
        stage.queue.add(pod("single").info())
        assert [info.name for info in stage.queue.coming(5)] == ["single"]

    def test_members_wait_for_the_object(self, stage):
        stage.show(A, B)
        assert stage.queue.pop(0) is None
        assert stage.reason() == 'waiting for pod group "train" to appear'
        stage.group(2)
        assert len(stage.pop_group().tried) == 2

    def test_members_wait_for_each_other(self, stage):
        stage.group(3)
        stage.show(A, B)
        assert stage.reason() == "waiting for members: 2 of at least 3 wait"
        stage.show(C)
        assert len(stage.pop_group().tried) == 3

    def test_a_member_that_is_deleted_is_missed(self, stage):
        stage.group(2)
        stage.show(A, B)
        stage.gone(B)
        assert stage.queue.pop(0) is None
        assert stage.state(A) is QueueState.GROUPED

    def test_a_gated_member_does_not_count(self, stage):
        stage.group(2)
        stage.show(A, member("b").gate("wait"))
        expected = "waiting for members: 1 of at least 2 wait, 1 more have scheduling gates"
        assert stage.reason() == expected
        stage.show(B)
        assert len(stage.pop_group().tried) == 2

    def test_members_of_two_schedulers_are_kept(self, stage):
        stage.group(2)
        stage.show(A, B)
        stage.groups.pod_changed(None, member("c").scheduler("other").build())
        assert stage.reason() == "members name different schedulers: 'berth', 'other'"

    def test_rules_that_are_refused_keep_the_members(self, stage):
        stage.group(-1)
        stage.show(A)
        assert stage.reason() == "the pod group is refused: spec.minMember: -1 is negative"

    def test_a_group_that_is_too_large_is_refused(self):
        stage = GroupStage(max_group_members=2)
        stage.group(1)
        stage.show(A, B, C)
        assert stage.reason() == "3 members are more than 2"

    def test_no_memory_for_members_that_are_not_there(self, stage):
        stage.group(2**31 - 1)
        stage.show(A)
        assert stage.reason() == "waiting for members: 1 of at least 2147483647 wait"

    def test_a_lowered_minimum_counts_at_once_a_raised_one_too(self, stage):
        stage.group(3)
        stage.show(A, B)
        stage.group(2)
        assert [each.state for each in stage.queue.groups()] == [QueueState.ACTIVE]
        stage.group(3)
        assert stage.queue.pop(0) is None

    def test_a_pod_that_changes_its_label_leaves_one_group_and_joins_the_other(self, stage):
        stage.group(2)
        stage.show(A, B)
        stage.show(member("b", "other"))
        assert stage.queue.pop(0) is None
        assert {str(each.key) for each in stage.queue.groups()} == {
            "default/train",
            "default/other",
        }

    def test_a_pod_that_names_no_group_any_more_is_an_ordinary_one(self, stage):
        stage.group(3)
        stage.show(A)
        stage.show(pod("a"))
        assert stage.pop_names() == ["a"]

    def test_a_group_that_nobody_names_any_more_is_forgotten(self, stage):
        stage.group(2)
        stage.show(A)
        stage.gone(A)
        assert not list(stage.queue._groups)


class TestOrder:
    def test_the_lowest_priority_of_the_members_counts(self, stage):
        stage.group(2)
        stage.show(member("a").priority(9), member("b").priority(5), pod("x").priority(7))
        assert stage.pop_names() == ["x", "train"]

    def test_the_priority_of_the_object_counts_more(self, stage):
        gang = SchedulingPolicy(gang=GangPolicy(1))
        meta = PodMeta(name="jobs", namespace="default")
        stage.groups.pod_group_changed(None, PodGroup(meta, PodGroupSpec(gang, priority=8)))
        stage.show(pod("a").scheduling_group("jobs"), pod("x").priority(7))
        assert stage.pop_names() == ["jobs", "x"]

    def test_a_group_stands_where_it_became_ready(self, stage):
        stage.group(2)
        stage.show(A, pod("x"), B, pod("y"))
        assert stage.pop_names() == ["x", "train", "y"]

    def test_a_group_that_does_not_fit_holds_nobody_up(self, stage):
        stage.group(2)
        stage.show(A, B, pod("x"))
        stage.refuse_group(stage.pop_group(), A)
        stage.queue.activate([A.build().metadata.uid])
        assert stage.pop_names() == ["x", "train"]


class TestRefused:
    def refused(self, stage: GroupStage) -> None:
        stage.group(2)
        stage.show(A, B)
        stage.refuse_group(stage.pop_group(), B)

    def test_what_would_help_a_member_wakes_the_group(self, stage):
        self.refused(stage)
        stage.now_s += 10
        stage.queue.move_all(NODE_ADD, None, node("n").build())
        assert len(stage.pop_group().tried) == 2

    def test_what_helps_nobody_does_not(self, stage):
        self.refused(stage)
        stage.now_s += 10
        stage.queue.move_all(NODE_LABEL, None, node("n").build())
        assert stage.queue.pop(0) is None

    def test_an_idle_scheduler_does_not_shorten_the_pause(self, stage):
        self.refused(stage)
        stage.queue.move_all(NODE_ADD, None, node("n").build())
        assert stage.queue.pop(0) is None
        stage.now_s += 2
        assert len(stage.pop_group().tried) == 2

    @pytest.mark.parametrize(("members", "longest_s"), [(2, 10.2), (100, 20.0), (2000, 60.0)])
    def test_the_longest_pause_grows_with_the_group(self, stage, members, longest_s):
        stage.group(members)
        stage.show(*(member(f"m{i}") for i in range(members)))
        for _ in range(10):
            entry = stage.pop_group()
            stage.queue.group_refused(entry, {}, is_error=True)
            pause_s = entry.backoff_until_s - stage.now_s
            stage.now_s = entry.backoff_until_s
        assert longest_s - 1 <= pause_s <= longest_s + 1

    def test_an_event_of_the_attempt_counts(self, stage):
        stage.group(2)
        stage.show(A, B)
        entry = stage.pop_group()
        stage.queue.move_all(NODE_ADD, None, node("n").build())
        stage.refuse_group(entry, B)
        assert entry.state is QueueState.BACKOFF

    def test_a_new_member_wakes_it(self, stage):
        self.refused(stage)
        stage.now_s += 10
        stage.show(C)
        assert len(stage.pop_group().tried) == 3

    def test_a_member_that_was_deleted_meanwhile_is_missed(self, stage):
        stage.group(2)
        stage.show(A, B)
        entry = stage.pop_group()
        stage.gone(B)
        stage.refuse_group(entry, A)
        assert stage.reason() == "waiting for members: 1 of at least 2 wait"

    def test_the_end_of_the_member_that_watched_wakes_it(self, stage):
        stage.group(1)
        stage.show(A, B)
        stage.refuse_group(stage.pop_group(), B)
        stage.gone(B)
        stage.now_s += 10
        assert [each.info.name for each in stage.pop_group().tried] == ["a"]

    def test_nobody_stays_in_flight(self, stage):
        self.refused(stage)
        assert stage.queue.counts().in_flight == 0
        assert stage.queue.counts().unschedulable == 2


class TestPlaced:
    def placed(self, stage: GroupStage) -> list[QueuedPod]:
        stage.group(2)
        stage.show(A, B, C)
        return stage.place(stage.pop_group(), A, B)

    def test_a_member_left_over_is_tried_alone(self, stage):
        (left,) = self.placed(stage)
        stage.refuse(left, "Fit")
        assert stage.state(C) is QueueState.UNSCHEDULABLE
        stage.now_s += 10
        stage.queue.move_all(NODE_ADD, None, node("n").build())
        assert stage.pop_names() == ["c"]

    def test_a_member_that_comes_later_is_tried_alone(self, stage):
        self.placed(stage)
        stage.show(member("d"))
        assert stage.pop_names() == ["d"]

    def test_an_active_pod_that_joins_it_stays_active(self, stage):
        self.placed(stage)
        stage.show(pod("d"))
        stage.show(member("d"))
        assert stage.pop_names() == ["d"]

    def test_a_gang_below_its_minimum_is_completed_first(self, stage):
        self.placed(stage)
        stage.show(pod("x"), pod("y"))
        stage.show(member("a").on("n"))
        stage.gone(B)
        stage.groups.forget(KEY, B.build().metadata.uid)
        stage.show(member("d"))
        assert stage.pop_names() == ["d", "x", "y"]

    def test_a_gang_that_has_lost_all_gathers_again(self, stage):
        (left,) = self.placed(stage)
        stage.refuse(left, "Fit")
        stage.gone(A)
        stage.gone(B)
        assert stage.state(C) is QueueState.GROUPED
        stage.show(member("d"))
        assert len(stage.pop_group().tried) == 2

    def test_a_member_that_has_succeeded_counts(self, stage):
        stage.group(2)
        stage.groups.pod_changed(None, member("a").on("n").ended("Succeeded").build())
        stage.show(B)
        assert stage.pop_names() == ["b"]


def test_a_cluster_that_serves_no_groups_takes_members_for_ordinary_pods():
    stage = Stage()
    stage.add(A)
    assert stage.pop_names() == ["a"]


def test_the_end_of_an_eviction_is_looked_for_where_a_plugin_keeps_a_group_out(stage):
    stage.group(1)
    shut = stage.queue._groups._moves
    stage.queue._groups._moves = shut._replace(
        pre_enqueue=lambda made: stage.pre_enqueue(pod("door").label("door").build())
    )
    stage.show(A)
    assert stage.queue.pop(0) is None
    stage.door_is_shut = False
    stage.queue.move_all(ASSIGNED_POD_DELETE, pod("v").on("n").build(), None)
    assert len(stage.pop_group().tried) == 1


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        pytest.param("Mine", "not yet", id="a plugin of somebody"),
        pytest.param(names.DEFAULT_PREEMPTION, None, id="victims leave: the refusal says so"),
    ],
)
def test_a_group_that_a_plugin_keeps_out_is_held_but_for_its_own_victims(stage, plugin, why):
    stage.group(1)
    moves = stage.queue._groups._moves
    kept = unresolvable("not yet").by(plugin)
    stage.queue._groups._moves = moves._replace(pre_enqueue=lambda made: kept)
    stage.show(A)
    held = stage.queue.why_held(KEY)
    assert (None if held is None else held[0]) == why


def test_a_group_that_lacks_members_is_held_with_those_that_wait(stage):
    stage.group(3)
    stage.show(A, B)
    message, waiting = stage.queue.why_held(KEY)
    assert message == "waiting for members: 2 of at least 3 wait"
    assert [each.name for each in waiting] == ["a", "b"]
    stage.show(C)
    assert stage.queue.why_held(KEY) is None

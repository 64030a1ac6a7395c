"""Members of a gang whose nodes are taken by others before the first binding."""

from __future__ import annotations

import pytest

from cache.pod_groups import PodGroups
from cache.pod_info import PodInfo
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.cycle.gang import Gang
from tests.pod_group_builders import X_KEY, member

MEMBERS = [PodInfo(member(number)) for number in range(3)]
TAKEN = Status(Code.ERROR, ("taken",))


class Scene:
    """Three members that were decided together, and the nodes that others have taken."""

    def __init__(self, spare: int = 0) -> None:
        self.groups = PodGroups()
        for info in MEMBERS:
            self.groups.pod_changed(None, info.pod)
        self.groups.assume(X_KEY, [info.uid for info in MEMBERS])
        self.gang = Gang(X_KEY, MEMBERS, (), 0.0, self.groups, spare)
        self.taken: set[int] = set()
        self.asked = 0

    def check(self, info: PodInfo) -> Status:
        self.asked += 1
        return TAKEN if any(MEMBERS[number] is info for number in self.taken) else SUCCESS

    def binds(self, number: int, *, sends: bool = True) -> bool:
        return self.gang.may_bind(MEMBERS[number], self.check, sends=sends).is_success


@pytest.mark.parametrize("first", [0, 1, 2])
def test_before_the_first_binding_all_members_go_back(first):
    scene = Scene()
    scene.taken = {1}
    assert not scene.binds(first)
    scene.taken = set()
    assert not any(scene.binds(number) for number in range(3))


def test_what_another_member_lost_is_the_reason():
    scene = Scene()
    scene.taken = {1}
    status = scene.gang.may_bind(MEMBERS[0], scene.check)
    assert status.message == "another member of the pod group was refused: taken"


def test_members_above_the_minimum_go_back_alone():
    scene = Scene(spare=1)
    scene.taken = {1}
    assert [scene.binds(number) for number in range(3)] == [True, False, True]


def test_more_losses_than_members_to_spare_send_all_back():
    scene = Scene(spare=1)
    scene.taken = {1, 2}
    assert [scene.binds(number) for number in range(3)] == [False, False, False]


def test_once_the_first_binding_is_sent_members_go_back_alone():
    scene = Scene()
    assert scene.binds(0)
    scene.taken = {1}
    assert [scene.binds(1), scene.binds(2)] == [False, True]


def test_losses_before_anything_is_written_send_all_back():
    scene = Scene()
    scene.taken = {1}
    assert not scene.binds(1, sends=False)
    assert not scene.binds(0)


def test_others_are_asked_once_before_the_first_binding():
    scene = Scene()
    assert all(scene.binds(number) for number in range(3))
    assert scene.asked <= 2 * len(MEMBERS)

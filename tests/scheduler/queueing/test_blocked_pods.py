from __future__ import annotations

from scheduler.queueing.blocked_pods import BlockedPods, Blockers
from scheduler.queueing.queued_pod import QueuedPod
from tests.builders import pod

FIT = Blockers("berth", frozenset({"Fit"}), frozenset())
PORTS = Blockers("berth", frozenset({"Ports"}), frozenset())


def queued(name: str) -> QueuedPod:
    return QueuedPod(pod(name).info(), 0.0, 0, ())


def test_pods_are_found_by_who_blocks_them():
    pods = BlockedPods()
    one, two = queued("one"), queued("two")
    pods.add(one, FIT)
    pods.add(two, PORTS)
    assert pods.pods_of(FIT) == [one]
    assert pods.pods_of(PORTS) == [two]


def test_a_group_ends_with_its_last_pod():
    pods = BlockedPods()
    one = queued("one")
    pods.add(one, FIT)
    assert pods.remove(one.info.uid)
    assert pods.groups() == []
    assert pods.pods_of(FIT) == []
    assert len(pods) == 0
    assert not pods.remove(one.info.uid)


def test_a_pod_leaves_its_group_even_if_its_plugins_were_replaced_meanwhile():
    pods = BlockedPods()
    one = queued("one")
    one.unschedulable_plugins = {"Fit"}
    pods.add(one, Blockers.of_refused(one))
    one.unschedulable_plugins = {"Ports"}
    assert pods.remove(one.info.uid)
    assert pods.groups() == []


def test_pods_stand_in_the_order_in_which_they_came():
    pods = BlockedPods()
    made = [queued(name) for name in "cab"]
    for index, each in enumerate(made):
        pods.add(each, FIT if index % 2 else PORTS)
    assert list(pods) == made

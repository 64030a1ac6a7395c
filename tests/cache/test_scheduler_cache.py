from __future__ import annotations

import pytest

from cache.objects import Node, NodeMeta, NodeStatus, Pod, PodMeta, PodSpec
from cache.pod_info import PodInfo
from cache.pod_states import PodState
from cache.resources import MalformedObjectError
from cache.scheduler_cache import CacheConflictError, SchedulerCache
from cache.snapshot import Snapshot
from tests.builders import node, pod


def assigned(name: str, node_name: str, **changes: object) -> PodInfo:
    made = pod(name).request(cpu="1", memory="1Gi").on(node_name)
    return PodInfo(made.build())


def pending(name: str) -> PodInfo:
    return PodInfo(pod(name).request(cpu="1", memory="1Gi").build())


def used_milli_cpu(cache: SchedulerCache, name: str) -> int:
    info = cache.dump().nodes.get(name)
    return 0 if info is None else info.requested.get("cpu", 0)


@pytest.fixture
def cache() -> SchedulerCache:
    cache = SchedulerCache(ttl_s=30)
    cache.add_node(node("n1").capacity(cpu="4", memory="8Gi").build())
    cache.add_node(node("n2").capacity(cpu="4", memory="8Gi").build())
    return cache


class TestAssumedPods:
    def test_an_assumed_pod_takes_room_at_once(self, cache):
        cache.assume_pod(pending("a"), "n1")
        assert used_milli_cpu(cache, "n1") == 1000

    def test_no_pod_is_assumed_twice(self, cache):
        cache.assume_pod(pending("a"), "n1")
        with pytest.raises(CacheConflictError, match="default/a"):
            cache.assume_pod(pending("a"), "n2")

    def test_an_added_pod_is_not_assumed(self, cache):
        cache.add_pod(assigned("a", "n1"))
        with pytest.raises(CacheConflictError):
            cache.assume_pod(pending("a"), "n2")

    def test_forget_gives_the_room_back(self, cache):
        cache.assume_pod(pending("a"), "n1")
        assert cache.forget_pod(pending("a"))
        assert used_milli_cpu(cache, "n1") == 0

    def test_forget_after_the_confirmation_changes_nothing(self, cache):
        cache.assume_pod(pending("a"), "n1")
        cache.add_pod(assigned("a", "n1"))
        assert not cache.forget_pod(pending("a"))
        assert used_milli_cpu(cache, "n1") == 1000

    def test_the_confirmation_may_come_before_the_answer(self, cache):
        info = pending("a")
        cache.assume_pod(info, "n1")
        cache.add_pod(assigned("a", "n1"))
        cache.finish_binding(info, 0)
        assert cache.pod_state(info.uid) is PodState.ADDED
        assert cache.overdue(1e9) == []

    def test_a_pod_confirmed_on_another_node_is_moved(self, cache):
        cache.assume_pod(pending("a"), "n1")
        cache.add_pod(assigned("a", "n2"))
        assert (used_milli_cpu(cache, "n1"), used_milli_cpu(cache, "n2")) == (0, 1000)

    def test_a_deleted_pod_frees_what_was_assumed_for_it(self, cache):
        cache.assume_pod(pending("a"), "n1")
        assert cache.remove_pod(pending("a"))
        assert used_milli_cpu(cache, "n1") == 0

    def test_the_same_name_with_another_uid_is_another_pod(self, cache):
        old = PodInfo(pod("a").uid("old").request(cpu="1").build())
        new = PodInfo(pod("a").uid("new").request(cpu="1").build())
        cache.assume_pod(old, "n1")
        cache.assume_pod(new, "n2")
        cache.remove_pod(old)
        assert (used_milli_cpu(cache, "n1"), used_milli_cpu(cache, "n2")) == (0, 1000)


class TestExpiry:
    def test_before_its_binding_has_finished_a_pod_never_expires(self, cache):
        cache.assume_pod(pending("a"), "n1")
        assert cache.expire_assumed(1e9) == []

    def test_expiry_frees_the_node(self, cache):
        info = pending("a")
        cache.assume_pod(info, "n1")
        cache.finish_binding(info, 100)
        assert cache.expire_assumed(130) == []
        assert [each.uid for each in cache.expire_assumed(131)] == [info.uid]
        assert used_milli_cpu(cache, "n1") == 0

    def test_a_late_add_restores_an_expired_pod(self, cache):
        info = pending("a")
        cache.assume_pod(info, "n1")
        cache.finish_binding(info, 100)
        cache.expire_assumed(131)
        cache.add_pod(assigned("a", "n1"))
        assert used_milli_cpu(cache, "n1") == 1000

    def test_only_the_named_pods_expire(self, cache):
        for name in ("a", "b"):
            info = pending(name)
            cache.assume_pod(info, "n1")
            cache.finish_binding(info, 100)
        expired = cache.expire_assumed(131, only=frozenset({pending("b").uid}))
        assert [each.name for each in expired] == ["b"]
        assert used_milli_cpu(cache, "n1") == 1000

    def test_overdue_pods_are_named_with_their_node_and_stay(self, cache):
        info = pending("a")
        cache.assume_pod(info, "n1")
        cache.finish_binding(info, 100)
        assert cache.overdue(131) == [(info, "n1")]
        assert used_milli_cpu(cache, "n1") == 1000


class TestUnknownPods:
    def test_what_was_never_added_is_not_updated(self, cache):
        assert not cache.update_pod(assigned("a", "n1"))
        assert used_milli_cpu(cache, "n1") == 0

    def test_what_was_never_added_is_not_removed(self, cache):
        assert not cache.remove_pod(assigned("a", "n1"))

    def test_a_pod_may_come_before_its_node(self, cache):
        cache.add_pod(assigned("a", "later"))
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        assert "later" not in snapshot
        cache.add_node(node("later").capacity(cpu="4", memory="8Gi").build())
        cache.update_snapshot(snapshot)
        found = snapshot.get("later")
        assert found is not None
        assert found.requested["cpu"] == 1000


class TestNodes:
    def test_a_deleted_node_with_pods_stays_as_an_imaginary_one(self, cache):
        cache.add_pod(assigned("a", "n1"))
        assert cache.remove_node("n1")
        assert cache.dump().nodes["n1"].node is None
        cache.remove_pod(assigned("a", "n1"))
        assert "n1" not in cache.dump().nodes

    def test_a_node_made_again_finds_the_pods_that_stayed(self, cache):
        cache.add_pod(assigned("a", "n1"))
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        cache.remove_node("n1")
        cache.add_node(node("n1").uid("second").capacity(cpu="2", memory="1Gi").build())
        cache.update_snapshot(snapshot)
        found = snapshot.get("n1")
        assert found is not None
        assert (found.uid, found.allocatable["cpu"], found.requested["cpu"]) == (
            "second",
            2000,
            1000,
        )

    def test_a_malformed_node_leaves_what_was_known(self, cache):
        broken = Node(
            metadata=NodeMeta(name="n1", uid="x"), status=NodeStatus(allocatable={"cpu": "lots"})
        )
        with pytest.raises(MalformedObjectError, match=r"status\.allocatable"):
            cache.add_node(broken)
        assert cache.dump().nodes["n1"].allocatable["cpu"] == 4000

    def test_a_malformed_new_node_leaves_no_trace(self, cache):
        broken = Node(metadata=NodeMeta(name="n3"), status=NodeStatus(allocatable={"cpu": "?"}))
        with pytest.raises(MalformedObjectError):
            cache.add_node(broken)
        assert "n3" not in cache.dump().nodes


class TestSnapshots:
    def test_an_update_costs_what_changed(self, cache):
        for index in range(50):
            cache.add_node(node(f"more{index}").capacity(cpu="1", memory="1Gi").build())
        snapshot = Snapshot()
        assert cache.update_snapshot(snapshot).changed == 52
        assert cache.update_snapshot(snapshot).changed == 0
        cache.assume_pod(pending("a"), "n1")
        assert cache.update_snapshot(snapshot).changed == 1

    def test_a_snapshot_stands_still(self, cache):
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        cache.assume_pod(pending("a"), "n1")
        found = snapshot.get("n1")
        assert found is not None
        assert found.requested == {}

    def test_the_api_s_confirmation_costs_no_row(self, cache):
        snapshot = Snapshot()
        info = pending("a")
        cache.assume_pod(info, "n1")
        cache.update_snapshot(snapshot)
        cache.add_pod(assigned("a", "n1"))
        assert cache.update_snapshot(snapshot).changed == 0

    def test_two_snapshots_are_brought_up_to_date_apart(self, cache):
        first, second = Snapshot(), Snapshot()
        cache.update_snapshot(first)
        cache.assume_pod(pending("a"), "n1")
        cache.update_snapshot(first)
        cache.update_snapshot(second)
        for snapshot in (first, second):
            found = snapshot.get("n1")
            assert found is not None
            assert found.requested["cpu"] == 1000

    def test_a_deleted_and_an_added_node_between_two_snapshots(self, cache):
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        cache.remove_node("n1")
        cache.add_node(node("n3").capacity(cpu="1", memory="1Gi").build())
        update = cache.update_snapshot(snapshot)
        assert sorted(snapshot.names()) == ["n2", "n3"]
        assert (update.changed, update.removed) == (1, 1)

    def test_the_visiting_order_goes_round_robin_over_zones(self):
        cache = SchedulerCache()
        for name, zone in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c")]:
            cache.add_node(node(name).zone(zone).capacity(cpu="1", memory="1Gi").build())
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        names = snapshot.names()
        assert [names[row] for row in snapshot.order()] == ["a1", "b1", "c1", "a2", "a3"]


def test_filtered_list_by_selector(cache):
    cache.add_pod(PodInfo(pod("a").label("app", "web").on("n1").build()))
    cache.add_pod(PodInfo(pod("b").label("app", "db").on("n1").build()))
    found = cache.filtered_list(lambda each: each.metadata.labels.get("app") == "web")
    assert [info.name for info in found] == ["a"]


def test_a_pod_with_a_bad_quantity_names_its_path():
    broken = Pod(metadata=PodMeta(name="a"), spec=PodSpec(overhead={"cpu": "1e999999"}))
    with pytest.raises(MalformedObjectError, match=r"spec\.overhead\[cpu\]"):
        PodInfo(broken)

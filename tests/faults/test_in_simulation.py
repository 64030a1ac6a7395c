"""Faults that need a whole Berth and an API server that misbehaves, in simulated time."""

from __future__ import annotations

from tests.faults.scene import is_bind, is_event, is_list, scene
from tests.storm.troubles import GATEWAY, Fate

LOOKS_EVERY_S = 60.0
"""For lost events, in simulated replicas; see tests/storm/replica.py."""


# --- what is known --------------------------------------------------------------------------------


def test_f4_pods_are_placed_while_no_list_can_be_had() -> None:
    with scene() as it:
        it.node("a")
        leader = it.leader()
        it.pods("early")
        it.wait(lambda: len(it.bound()) == 1, 10.0)
        it.trouble(lambda request: is_list(request) and request.resource == "nodes", _BUSY)
        it.etcd.compact()
        for server in it.world.servers.frontends:
            for watch in server.watches():
                server.end_watch(watch)
        it.run(10.0)
        it.pods("late")
        it.wait(lambda: len(it.bound()) == 2, 20.0)
        assert it.world.leader() is leader


def test_f4_lists_do_not_storm() -> None:
    with scene() as it:
        it.node("a")
        it.leader()
        it.trouble(is_list, _BUSY)
        it.etcd.compact()
        for server in it.world.servers.frontends:
            for watch in server.watches():
                server.end_watch(watch)
        before = it.world.simulation.counts["trouble"]
        it.run(60.0)
        resources = len(it.leader().informers())
        assert it.world.simulation.counts["trouble"] - before <= 30 * resources


def test_f8_a_lost_deletion_is_found() -> None:
    with scene() as it:
        it.node("a", 1000)
        it.leader()
        it.pods("old")
        it.wait(lambda: len(it.bound()) == 1 and it.at_rest(), 60.0)
        it.drop("pods", "DELETED")
        it.etcd.delete("pods", ("default", "old-0"))
        it.run(1.0)
        it.pods("new")
        it.wait(lambda: it.bound() == {"new-0": "a"}, 4 * LOOKS_EVERY_S)


def test_f9_a_lost_pod_is_found_and_placed() -> None:
    with scene() as it:
        it.node("a")
        it.leader()
        it.run(5.0)
        it.drop("pods", "ADDED")
        it.pods("unseen")
        it.wait(lambda: len(it.bound()) == 1, 4 * LOOKS_EVERY_S)


def test_f10_a_lost_node_deletion_is_found() -> None:
    with scene() as it:
        it.node("goes", 8000)
        it.leader()
        it.run(5.0)
        it.drop("nodes", "DELETED")
        it.etcd.delete("nodes", ("", "goes"))
        it.run(1.0)
        it.node("stays", 2000)
        it.wait(lambda: "goes" not in it.leader().cache.dump().nodes, 4 * LOOKS_EVERY_S)
        it.pods("web", 2)
        it.wait(lambda: it.bound() == {"web-0": "stays", "web-1": "stays"}, 60.0)


def test_f11_a_node_that_is_only_imagined_gets_no_pod() -> None:
    with scene() as it:
        it.node("a")
        it.leader()
        it.pods("first")
        it.wait(lambda: len(it.bound()) == 1 and it.at_rest(), 60.0)
        it.etcd.delete("nodes", ("", "a"))
        it.run(0.5)
        it.pods("second")
        it.run(1.0)
        assert set(it.bound()) == {"first-0"}  # not yet collected


def test_f12_a_node_goes_while_a_pod_is_bound_to_it() -> None:
    with scene() as it:
        it.node("goes")
        leader = it.leader()
        it.trouble(is_bind, Fate(delay_s=0.5))
        it.pods("web")
        it.wait(lambda: bool(leader.cache.assumed_nodes()), 10.0)
        it.etcd.delete("nodes", ("", "goes"))
        it.wait(lambda: it.etcd.find("pods", ("default", "web-0")) is None, 60.0)
        it.wait(lambda: not leader.cache.dump().nodes and it.at_rest(), 60.0)


def test_f13_a_node_that_comes_back_smaller_is_not_overcommitted() -> None:
    with scene() as it:
        it.node("a", 4000)
        it.leader()
        it.pods("first")
        it.wait(lambda: len(it.bound()) == 1 and it.at_rest(), 60.0)
        it.node("a", 2000)
        it.run(1.0)
        it.pods("second", 3)
        it.run(20.0)
        assert len(it.bound()) == 2


# --- bindings -------------------------------------------------------------------------------------


def test_f16_a_binding_whose_answer_is_lost_is_sent_once() -> None:
    with scene() as it:
        it.node("a")
        it.leader()
        it.trouble(is_bind, Fate(reset=True))
        it.pods("web", 3)
        it.wait(lambda: len(it.bound()) == 3 and it.at_rest(), 60.0)
        assert it.sent("bind") == 3
        assert not any(request.verb == "status" for _, request, _ in it.requests)


def test_f20_slow_bindings_hold_up_no_others() -> None:
    with scene() as it:
        it.node("a", 64_000)
        it.leader()
        slow = Fate(delay_s=29.0)
        it.trouble(lambda request: is_bind(request) and "slow" in request.name, slow, for_s=60.0)
        it.pods("slow", 1, cpu="100m")
        it.pods("web", 99, cpu="100m")
        it.wait(lambda: len(it.bound("web")) == 99, 10.0)
        assert not it.bound("slow")
        it.wait(lambda: len(it.bound("slow")) == 1 and it.at_rest(), 180.0)


def test_f20_the_lease_is_renewed_meanwhile() -> None:
    with scene(replicas=2) as it:
        it.node("a", 64_000)
        leader = it.leader()
        it.trouble(is_bind, Fate(delay_s=29.0))
        it.pods("slow", 10, cpu="100m")
        it.run(28.0)
        assert it.world.leader() is leader


# --- who leads ------------------------------------------------------------------------------------


def test_f22_a_leader_whose_lease_requests_hang_ends_in_time() -> None:
    with scene(replicas=2) as it:
        it.node("a")
        old = it.leader()
        it.run(5.0)
        it.trouble(lambda request: request.resource == "leases", Fate(False, hangs=True))
        it.wait(lambda: old.status == 1, 14.0)


def test_f23_a_leader_that_stood_still_writes_nothing() -> None:
    with scene(replicas=2) as it:
        it.node("a", 64_000)
        old = it.leader()
        it.run(1.0)
        it.pods("web", 5, cpu="100m")
        it.run(0.003)  # it has begun with them
        old.machine.pause()
        it.run(20.0)
        it.wait(lambda: it.world.leader() not in (None, old), 60.0)
        it.requests.clear()
        old.machine.resume()
        it.wait(lambda: len(it.bound()) == 5, 60.0)
        wrote = [str(request) for name, request, _ in it.requests if name == old.name]
        assert wrote == []
        it.wait(lambda: old.status == 1, 30.0)


def test_f24_a_wall_clock_that_jumps_changes_nothing() -> None:
    with scene(replicas=2) as it:
        it.node("a")
        leader = it.leader()
        for offset_s in (3600.0, -7200.0):
            for replica in it.world.replicas.values():
                replica.machine.wall_offset_s += offset_s
            it.run(30.0)
            assert it.world.leader() is leader
        it.pods("web")
        it.wait(lambda: len(it.bound()) == 1, 10.0)


def test_f25_a_standby_leads_soon_after_a_leader_was_ended() -> None:
    with scene(replicas=2) as it:
        it.node("a", 64_000)
        old = it.leader()
        it.run(10.0)
        it.pods("web", 30, cpu="100m")
        it.run(0.005)
        old.terminate()
        it.wait(lambda: it.world.leader() not in (None, old), 2.0)
        assert old.status == 0
        it.wait(lambda: len(it.bound()) == 30, 10.0)
        assert it.sent("bind") == 30


def test_f26_what_was_bound_before_a_kill_counts_after_it() -> None:
    with scene() as it:
        it.node("a", 2000)
        it.leader()
        it.pods("first", 2)
        it.wait(lambda: len(it.bound()) == 2, 10.0)
        it.world.end_replica(0)
        it.pods("second")
        it.leader()
        it.run(20.0)
        assert set(it.bound()) == {"first-0", "first-1"}
        assert it.at_rest()


def test_f26_the_next_leader_clears_the_nomination() -> None:
    with scene() as it:
        it.node("a", 2000)
        it.leader()
        it.pods("low", 2)
        it.wait(lambda: len(it.bound()) == 2, 10.0)
        it.world.cluster.dead_kubelets.add("a")
        it.pods("high", cpu="2", priority=100)
        it.wait(lambda: bool(it.pod("high-0")["status"].get("nominatedNodeName")), 10.0)
        it.world.end_replica(0)
        it.etcd.delete("nodes", ("", "a"))
        it.node("b", 1000)
        it.leader()
        it.wait(lambda: not it.pod("high-0")["status"].get("nominatedNodeName"), 60.0)


def test_f35_a_leader_that_is_cut_off_ends_before_its_lease() -> None:
    with scene(replicas=2) as it:
        it.node("a")
        old = it.leader()
        it.run(10.0)
        it.world.network.cut_off.add(old.name)
        it.wait(lambda: it.world.leader() not in (None, old), 30.0)
        assert old.status == 1
        it.pods("web")
        it.wait(lambda: len(it.bound()) == 1, 10.0)


# --- too much -------------------------------------------------------------------------------------


def test_f30_a_flood_is_bound_while_no_event_can_be_written() -> None:
    with scene() as it:
        for number in range(5):
            it.node(f"n{number}", 64_000)
        leader = it.leader()
        it.trouble(is_event, Fate(False, hangs=True))
        for wave in ("first", "second"):
            it.pods(wave, 100, cpu="100m")
            it.wait(lambda wave=wave: len(it.bound(wave)) == 100, 10.0)
        it.world.troubles.active.clear()
        it.wait(it.at_rest, 60.0)
        assert it.world.leader() is leader


_BUSY = Fate(False, GATEWAY)

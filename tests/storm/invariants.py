"""What must hold: checked at each write, every hundred steps, and when a world is at rest."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from cache.comparer import compare
from tests.storm.binding_checks import BindingChecks
from tests.storm.knowledge_checks import KnowledgeChecks
from tests.storm.objects import is_over
from tests.storm.request_checks import RequestChecks
from tests.storm.write_checks import WriteChecks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.scheduler_cache import CacheDump
    from tests.storm.etcd import Change, Stored
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

EVERY: Final = 100
"""Steps between two looks at what is not checked at each write."""

OFTEN: Final = 30
SOON_S: Final = 2.0
"""As many requests of a kind about one pod in so many seconds are a request without end."""

SPINNING: Final = 20_000
SPINNING_S: Final = 0.6
"""As many steps in so many seconds are taken only by a loop that waits for nothing."""

SILENT_S: Final = 20.0
"""A watch that has said nothing for so long may be dead, and comes back some time later."""

SETTLED_S: Final = 40.0
"""In a calm an assumed pod is confirmed or given up in so long: its time limit is 30 s."""

AWAY: Final = 5
AWAY_S: Final = 25.0
"""So often in so many seconds no kubelet rejects pods of one app: the fourth pause is 16 s long."""

TAKEOVER_S: Final = 60.0
"""For how long one that began without it may not know what the leader before has bound."""


class Invariants:
    """Checks of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._simulation = world.simulation
        self._next = EVERY
        self._mark = (0, 0.0)
        self._deleted: dict[tuple[str, str], str] = {}
        self._answered: dict[str, dict[str, Any]] = {}
        self._silent: dict[str, float] = {}
        self._assumed_s: dict[str, dict[str, float]] = {}
        self._nodes_seen: dict[str, set[str]] = {}
        self._requests: dict[Any, deque[float]] = {}
        self.replicas: dict[str, Replica] = {}
        self.requests = RequestChecks(world)
        self.bindings = BindingChecks(world)
        self._knowledge = KnowledgeChecks(world)
        self._writes = WriteChecks(world)
        self.taken_over_s = 0.0
        self.bound = 0
        world.servers.written = self._written
        world.servers.on_deleted = self._gone
        world.simulation.each_step.append(self._step)

    def watch(self, replica: Replica) -> None:
        """Begin to watch a process."""
        self.replicas[replica.name] = replica
        self._knowledge.watch(replica)
        self.bindings.watch(replica)

    def exited(self, replica: Replica, status: int) -> None:
        """Take in that a process has ended by itself."""
        self._deaths(replica)
        if not replica.is_scheduling or self._is_troubled(replica):
            return
        # F25: what is under way is settled, and the next leader need not wait for the lease.
        self._new_holder()
        if status == 0 and self.requests.holder == replica.name:
            self._simulation.broken("F25", f"{replica.name} has ended, and keeps the lease")
        if status == 1 and replica.is_told_to_end and not replica.leadership.is_lost:
            self._simulation.broken("F25", f"{replica.name} does not end in time")

    def _is_troubled(self, replica: Replica) -> bool:
        """Tell whether writes of a replica may have failed or waited lately."""
        world, lately_s = self._world, self._simulation.now_s - 30.0
        if world.network.cut_off or world.network.slow_s or replica.api.writes_in_flight:
            return True
        if not all(each.is_up for each in world.servers.frontends):
            return True
        if any(extra.may_refuse_writes() for extra in world.extras.values()):
            return True
        troubles = world.troubles.last_s
        last_s = max(troubles["leases"], troubles["writes"], replica.machine.resumed_s)
        return max(last_s, world.network.healed_s) > lately_s

    def _gone(self, resource: str, change: Change) -> None:
        self._knowledge.deleted(change)
        if resource == "pods":
            self.requests.deleted(change.stored.data["metadata"]["uid"])

    # --- at each write ------------------------------------------------------------------------

    def _written(self, name: str, request: Request, status: int, is_answered: bool) -> None:
        if request.resource == "pods":
            self._sent(name, request)
            for extra in self._world.extras.values():
                extra.written(self.replicas[name], request, status)
        replica = self.replicas[name]
        if status >= 300:
            self._simulation.counts[f"refused: {request.verb} {status}"] += 1
            self._writes.refused(replica, request)
            return
        self._simulation.counts[f"write: {request.verb}"] += 1
        if request.resource == "leases":
            self._new_holder()
            return
        self._writes.written(replica, request)
        if request.verb == "bind":
            self._bound(name, request, is_answered)
        elif request.verb == "delete":
            self._victim(name, request, is_answered)

    def _sent(self, name: str, request: Request) -> None:
        """I16: nothing is sent again and again about one pod."""
        key = (name, request.verb, request.key)
        sent = self._requests.setdefault(key, deque(maxlen=OFTEN))
        sent.append(self._simulation.now_s)
        if len(sent) == OFTEN and sent[-1] - sent[0] < SOON_S:
            self._simulation.broken("I16", f"{name} sends {OFTEN} times in {SOON_S} s: {request}")

    def _new_holder(self) -> None:
        for stored in self._world.servers.etcd.objects["leases"].values():
            holder = stored.data["spec"].get("holderIdentity", "")
            if holder != self.requests.holder:
                self.requests.holder = holder
                self.taken_over_s = self._simulation.now_s
                self._simulation.counts["leader changes"] += 1

    def _bound(self, name: str, request: Request, is_answered: bool) -> None:
        """I1: a pod is bound where its scheduler assumes it, and no other pod of its name is."""
        self.bound += 1
        pod = self._world.servers.etcd.get("pods", request.key).data
        uid, node_name = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        if self._world.servers.etcd.find("nodes", ("", node_name)) is None:
            self._simulation.counts["F12 bound to a node that is gone"] += 1
        if is_answered:
            self._answered.setdefault(name, {})[uid] = request.key
        cache = self.replicas[name].cache
        known = cache.assumed_node(uid)
        if known is None:
            info = cache.get_pod(uid)
            known = None if info is None else info.pod.spec.node_name
        if known != node_name:
            self._simulation.broken(
                "I1", f"{name} binds {request.name} ({uid}) to {node_name}, and assumes {known}"
            )

    def _victim(self, name: str, request: Request, is_answered: bool) -> None:
        """I8: no victim is deleted again after its deletion was answered."""
        if request.resource != "pods":
            return
        uid = ((request.body or {}).get("preconditions") or {}).get("uid", "")
        self._simulation.counts["victim deleted"] += 1
        if self._deleted.get((name, uid)) == "answered":
            self._simulation.broken("I8", f"{name} deletes {request.name} ({uid}) again")
        self._deleted[name, uid] = "answered" if is_answered else "lost"

    # --- now and then -------------------------------------------------------------------------

    def _step(self) -> None:
        if self._simulation.steps < self._next:
            return
        self._next = self._simulation.steps + EVERY
        self._spins()
        for replica in self._world.replicas.values():
            self._knowledge.look(replica)
            self._deaths(replica)
            self._cache_is_true(replica)
            self._remembers(replica)
            self._settles(replica)
        if self._world.cluster.rejections:
            self._rejections()
        if self._world.cluster.turned_away_s:
            self._turned_away()

    def _spins(self) -> None:
        """I11: nobody goes on and on without waiting for anything."""
        steps, now_s = self._simulation.steps, self._simulation.now_s
        if steps - self._mark[0] < SPINNING:
            return
        if now_s - self._mark[1] < SPINNING_S:
            self._simulation.broken("I11", f"{SPINNING} steps in {now_s - self._mark[1]:.1f} s")
        self._mark = (steps, now_s)

    def _deaths(self, replica: Replica) -> None:
        """I17: no thread and no task dies."""
        for name, error in replica.machine.deaths:
            self._simulation.broken("I17", f"{replica.name}: {name} died: {error!r}")
        for failure in replica.machine.loop.failures:
            self._simulation.broken("I17", f"{replica.name}: {failure}")
        replica.machine.loop.failures.clear()

    def _cache_is_true(self, replica: Replica) -> None:
        """I4: the cache equals one that is built anew from the stores.

        Not while the watch is silent, or has lost something: the reaper asks the API server then,
        and the cache knows more than the store.
        """
        if replica.name in self._world.servers.lossy:
            return
        now_s = self._simulation.now_s
        if replica.watches.pods.staleness_s(replica.machine.now()) > SILENT_S:
            self._silent[replica.name] = now_s
        if now_s - self._silent.get(replica.name, -SILENT_S) < SILENT_S:
            return
        if replica.machine.is_between_callbacks():
            dump, pods = replica.cache.dump(), replica.watches.pods.list()
            if dump.assumed.keys() - {pod.metadata.uid for pod in pods}:
                return  # deleted while it was decided about: its binding is about to fail
            self._count_imaginary(replica, dump)
            found = compare(dump, replica.watches.nodes.list(), pods)
            if found:
                self._simulation.broken("I4", f"{replica.name}: {found[0]} ({len(found)} in all)")

    def _count_imaginary(self, replica: Replica, dump: CacheDump) -> None:
        """Count nodes whose pods are known, and which have never been known themselves."""
        seen = self._nodes_seen.setdefault(replica.name, set())
        for name, info in dump.nodes.items():
            if info.node is None and name not in seen:
                self._simulation.counts["F11 a pod is known before its node"] += 1
        seen.update(dump.nodes)

    def _remembers(self, replica: Replica) -> None:
        """I2: what a process has bound counts until it is gone, whatever its watch says."""
        answered = self._answered.get(replica.name, {})
        for uid, key in list(answered.items()):
            stored = self._world.servers.etcd.find("pods", key)
            if (
                stored is None
                or stored.data["metadata"]["uid"] != uid
                or "deletionTimestamp" in stored.data["metadata"]
                or is_over(stored.data)
            ):
                del answered[uid]
            elif not replica.cache.is_placed_pod(uid):
                self._simulation.broken("I2", f"{replica.name} bound {key[1]}, and counts it not")

    def _settles(self, replica: Replica) -> None:
        """I5: no pod stays assumed, whatever the watch has lost of it.

        Its claims may become known as late as watches come back with other extras.
        """
        now_s = self._simulation.now_s
        patience_s = SETTLED_S + sum(each.PATIENCE_S for each in self._world.extras.values())
        assumed = replica.cache.assumed_nodes()
        since_s = self._assumed_s.get(replica.name, {})
        self._assumed_s[replica.name] = known = {uid: since_s.get(uid, now_s) for uid in assumed}
        for uid, at_s in known.items():
            if now_s - max(at_s, self._world.calm_s) > patience_s:
                self._simulation.broken("I5", f"{replica.name}: {uid} is assumed since {at_s:.1f}")

    def _rejections(self) -> None:
        """I2: our own bindings do not overcommit a node that nobody else has touched."""
        world = self._world
        rejected, world.cluster.rejections = world.cluster.rejections, []
        if world.is_excused():
            self._simulation.counts["rejected by a kubelet, excused"] += len(rejected)
            return
        self._simulation.broken("I2", f"a kubelet rejects {rejected[0]}")

    def _turned_away(self) -> None:
        """I16: an app that a kubelet does not want is not sent there again and again."""
        world, now_s = self._world, self._simulation.now_s
        since_s = max(now_s - AWAY_S, self.taken_over_s)
        for app, times_s in world.cluster.turned_away_s.items():
            times_s[:] = [at_s for at_s in times_s if at_s > since_s]
            if len(times_s) > AWAY and not world.servers.lossy:
                self._simulation.broken("I16", f"{app} is rejected {len(times_s)} times")

    # --- at rest ------------------------------------------------------------------------------

    def unrest(self) -> tuple[str, str] | None:
        """Return a promise that does not hold yet, and why; None when all do."""
        return next(self._unrest(), None)

    def _unrest(self) -> Iterator[tuple[str, str]]:
        world = self._world
        leader = world.leader()
        if leader is None:
            yield "I3", "nobody leads"
            return
        for replica in world.replicas.values():
            if not replica.is_ready:
                yield "I3", f"{replica.name} is not ready"
                continue
            if replica is leader or replica.name not in world.servers.lossy:
                yield from self._stores(replica)
            yield from self._empty(replica)
        yield from self._queued(leader)
        for pod in world.cluster.pending(*world.names()):
            if pod["spec"].get("schedulingGates") or _is_unreadable(pod):
                continue
            if any(extra.is_decided_elsewhere(pod) for extra in world.extras.values()):
                continue
            node_name = world.cluster.feasible_node(pod)
            if node_name:
                state = leader.queue.state_of(pod["metadata"]["uid"])
                yield "I3", f"{pod['metadata']['name']} ({state}) fits on {node_name}"
        for extra in world.extras.values():
            yield from extra.unrest(leader)

    def _stores(self, replica: Replica) -> Iterator[tuple[str, str]]:
        """I4, I15: what is known is what there is."""
        for informer in replica.informers():
            stored: dict[Any, Stored] = self._world.servers.etcd.objects[informer.kind.resource]
            truth = {
                each.data["metadata"]["uid"]: each.data["metadata"]["resourceVersion"]
                for each in stored.values()
            }
            known = {each.metadata.uid: each.metadata.resource_version for each in informer.list()}
            if known != truth:
                wrong = sorted(set(known.items()) ^ set(truth.items()))[:3]
                yield "I4", f"{replica.name}: store of {informer.kind.name} is wrong: {wrong}"

    def _empty(self, replica: Replica) -> Iterator[tuple[str, str]]:
        """I5: nothing is under way."""
        under_way = {
            "assumed pods": replica.cache.assumed_nodes(),
            "bindings": replica.acting.bindings.in_flight,
            "waiting pods": replica.known.pods.waiting.list(),
            "writes": replica.api.writes_in_flight,
            "pods in flight": replica.queue.counts().in_flight,
            "preemptions": list(replica.acting.preemptions._running),
        }
        for what, there in under_way.items():
            if there:
                yield "I5", f"{replica.name}: {what}: {there}"

    def _queued(self, leader: Replica) -> Iterator[tuple[str, str]]:
        """I7: each pod that waits is in exactly one place of the queue, and no other pod is."""
        pending = leader.queue.pending()
        rooms = (pending.active, pending.backoff, pending.unschedulable, pending.gated)
        leaving = {
            key
            for key, each in self._world.servers.etcd.objects["pods"].items()
            if "deletionTimestamp" in each.data["metadata"]
        }
        entries = [each.info for room in rooms for each in room]
        queued = [each.uid for each in entries if (each.namespace, each.name) not in leaving]
        there = self._world.cluster.pending(*self._world.names())
        bad = {pod["metadata"]["uid"] for pod in there if _is_unreadable(pod)}
        waiting = {pod["metadata"]["uid"] for pod in there} - bad
        if set(queued) - bad != waiting or len(set(queued)) != len(queued):
            wrong = sorted(set(queued) ^ waiting)[:3]
            yield "I7", f"{leader.name}: the queue is wrong about {wrong}"
        for uid in queued:
            node_name = leader.queue.nominator.node_of(uid)
            if node_name and self._world.servers.etcd.find("nodes", ("", node_name)) is None:
                self._simulation.counts["nominated to a node that is gone"] += 1
        if len(leader.queue.nominator) > len(queued):
            yield "I5", f"{leader.name}: nominations without pods"


def _is_unreadable(pod: dict[str, Any]) -> bool:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return "e" in requests.get("cpu", "")

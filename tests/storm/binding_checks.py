"""What holds of each binding from the assumption of its pod until it is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.cycle.bind_guard import BindingWithheldError
from tests.storm import objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_info import PodInfo
    from cache.scheduler_cache import PlacedPod
    from plugins.framework.status import Status
    from scheduler.cycle.binding_cycle import BindingJob
    from tests.storm.etcd import Change
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

TRIES: Final = 8
"""Requests of one binding; Berth stops at six, and a connection may break under one."""

GANG_TRIES: Final = TRIES + 60
"""The same of a member of a gang: one a second until the time of its group is over, 60 s in most
worlds."""

SEEN_S: Final = 3.0
"""What a process has known for so long it has looked at before it sends a binding."""

WAITS_S: Final = 8.0
"""No request waits for so long before it is sent, where all are answered."""


class BindingChecks:
    """Checks of bindings that leave replicas."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._simulation = world.simulation
        self._tries: dict[tuple[str, str], int] = {}
        self._in_gangs: set[tuple[str, str]] = set()
        self._since_s: dict[str, float] = {}
        """When a pod was placed, or a node was changed the last time, by UID or name."""
        world.cluster.others.append(self._changed)

    def watch(self, replica: Replica) -> None:
        """Count anew with each assumption of a pod; measure how long requests wait."""
        cache = replica.cache
        assume_one, assume_members = cache.assume_pod, cache.assume_pods

        def assume_pod(info: PodInfo, node_name: str) -> None:
            self._tries.pop((replica.name, info.uid), None)
            self._in_gangs.discard((replica.name, info.uid))
            assume_one(info, node_name)

        def assume_pods(placed: Sequence[PlacedPod]) -> None:
            for info, _ in placed:
                self._tries.pop((replica.name, info.uid), None)
                self._in_gangs.add((replica.name, info.uid))
            assume_members(placed)

        cache.assume_pod = assume_pod  # type: ignore[method-assign]
        cache.assume_pods = assume_pods  # type: ignore[method-assign]
        undo = replica.acting.bindings.undo

        def undone(job: BindingJob, status: Status) -> None:
            if isinstance(status.error, BindingWithheldError):
                self._withheld(replica, job)
            undo(job, status)

        replica.acting.bindings.undo = undone  # type: ignore[method-assign]
        replica.transport.measure = _Waits(self._world, replica)

    def _withheld(self, replica: Replica, job: BindingJob) -> None:
        """I7: no binding is withheld that its process knows to be made."""
        info, node_name = job.decision.info, job.decision.node_name
        known = replica.watches.pods.get(info.namespace, info.name)
        is_it = known is not None and known.metadata.uid == info.uid
        if known is not None and is_it and known.spec.node_name == node_name:
            self._simulation.broken("I7", f"{replica.name} withholds {info.key}, bound there")

    def _changed(self, resource: str, change: Change) -> None:
        data = change.stored.data
        if resource == "nodes":
            self._since_s[change.key[1]] = self._simulation.now_s
        elif resource == "pods":
            uid = data["metadata"]["uid"]
            if change.type == "DELETED":
                self._since_s.pop(uid, None)
            elif data["spec"].get("nodeName"):
                self._since_s.setdefault(uid, self._simulation.now_s)

    def sends(self, replica: Replica, request: Request, uid: str) -> None:
        """Take in that a binding leaves a process."""
        key = (replica.name, uid)
        self._tries[key] = tries = self._tries.get(key, 0) + 1
        if tries > (GANG_TRIES if key in self._in_gangs else TRIES):
            # I16: a binding is not sent without end.
            self._simulation.broken("I16", f"{replica.name} sends {request} {tries} times")
        node_name = replica.cache.assumed_node(uid)
        slow = self._world.network.slow_s or replica.machine.resumed_s > self._earlier_s()
        if node_name is not None and not slow:
            self._has_room(replica, request, node_name)

    def was_sent(self, replica: Replica, uid: str) -> bool:
        """Return whether a binding of a pod was sent since a replica placed it the last time."""
        return (replica.name, uid) in self._tries

    def _earlier_s(self) -> float:
        return self._simulation.now_s - SEEN_S

    def _has_room(self, replica: Replica, request: Request, node_name: str) -> None:
        """I2: no pod is bound where it is known that there is no room for it."""
        etcd, earlier_s = self._world.servers.etcd, self._earlier_s()
        node, pod = etcd.find("nodes", ("", node_name)), etcd.find("pods", request.key)
        known_node = replica.watches.nodes.get("", node_name)
        if node is None or pod is None or known_node is None:
            return
        is_news = known_node.metadata.resource_version != node.data["metadata"]["resourceVersion"]
        if is_news or self._since_s.get(node_name, 0.0) > earlier_s:
            return
        cpu, memory = objects.requests_of(pod.data["spec"])
        for other in replica.watches.pods.list():
            uid = other.metadata.uid
            if other.spec.node_name != node_name or self._since_s.get(uid, 1e9) > earlier_s:
                continue
            stored = etcd.find("pods", (other.metadata.namespace, other.metadata.name))
            if stored is None or stored.data["metadata"]["uid"] != uid:
                continue
            if stored is not pod and not objects.is_over(stored.data):
                more_cpu, more_memory = objects.requests_of(stored.data["spec"])
                cpu, memory = cpu + more_cpu, memory + more_memory
        allocatable = node.data["status"]["allocatable"]
        if cpu > objects.milli(allocatable["cpu"]) or memory > objects.mebi(allocatable["memory"]):
            self._simulation.broken(
                "I2", f"{replica.name} binds {request.name} to {node_name}, which is known as full"
            )


class _Waits:
    """I16: a Retry-After about some requests holds no others."""

    def __init__(self, world: World, replica: Replica) -> None:
        self._world = world
        self._replica = replica

    def requested(self, *_: object) -> None:
        """Nothing: answers are looked at elsewhere."""

    def waited(self, host: str, method: str, duration_s: float) -> None:
        """Look at how long a request waited until it was sent."""
        simulation, lately_s = self._world.simulation, self._world.simulation.now_s - 45.0
        if duration_s < WAITS_S or self._replica.machine.resumed_s > lately_s:
            return
        if self._world.troubles.hung_s < lately_s:
            name = self._replica.name
            simulation.broken("I16", f"{name}: a {method} waits {duration_s:.0f} s to be sent")

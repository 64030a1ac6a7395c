"""A stage: nodes on which only the pods of one incident run, and what its script can do there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cache.pod_group_objects import GROUP_LABEL
from tests.storm import objects
from tests.storm.api_servers import stamp
from tests.storm.cluster import OTHER, OWN
from tests.storm.troubles import Trouble

if TYPE_CHECKING:
    from scheduler.queueing import QueueState
    from tests.storm.etcd import Key
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.troubles import Fate
    from tests.storm.world import World

Script = Iterator[float]
"""Yields how many seconds pass until it goes on."""

STAGE: Final = "example.com/stage"
"""Label and taint of the nodes of an incident."""

NAMESPACE: Final = "other"
CPU: Final = 4000
"""Of a node, in thousandths."""

LOOK_S: Final = 0.002
"""Between two looks of a script whether what it waits for has happened."""


class AbandonedError(Exception):
    """Something came between; nothing can be said."""


class Actor:
    """A pod of an incident."""

    def __init__(self, stage: Stage, key: Key, uid: str) -> None:
        self._stage = stage
        self.key = key
        self.uid = uid

    @property
    def data(self) -> dict[str, Any] | None:
        """The pod; None when it is gone."""
        stored = self._stage.world.servers.etcd.find("pods", self.key)
        is_it = stored is not None and stored.data["metadata"]["uid"] == self.uid
        return stored.data if stored is not None and is_it else None

    @property
    def node_name(self) -> str:
        """Where it is bound, or the empty string."""
        return str((self.data or {"spec": {}})["spec"].get("nodeName") or "")

    @property
    def is_leaving(self) -> bool:
        """Whether it is gone, or on its way out."""
        return self.data is None or "deletionTimestamp" in self.data["metadata"]

    @property
    def assumed_on(self) -> str:
        """Where the leader assumes it, or the empty string."""
        return self._stage.leader.cache.assumed_node(self.uid) or ""

    @property
    def state(self) -> QueueState:
        """Where it is in the queue."""
        return self._stage.leader.queue.state_of(self.uid)

    def kill(self) -> None:
        """Delete it without a grace period."""
        if self.data is not None:
            self._stage.world.servers.etcd.delete("pods", self.key)


class Stage:
    """What the script of an incident has at hand.

    Attributes
    ----------
    leader
        Who leads; an incident is abandoned when that changes.
    """

    def __init__(self, world: World, name: str, leader: Replica) -> None:
        self.world = world
        self.name = name
        self.leader = leader
        self.nodes: list[str] = []
        self._actors: list[Actor] = []
        self._troubles: list[Trouble] = []
        self.node = self.add_node()

    # --- what a script does -------------------------------------------------------------------

    def add_node(self) -> str:
        """Create a node."""
        name = f"{self.name}-{len(self.nodes)}"
        node = objects.node(name, CPU, 4096, objects.ZONES[0])
        node["metadata"]["labels"][STAGE] = self.name
        node["spec"]["taints"] = [{"key": STAGE, "value": self.name, "effect": "NoSchedule"}]
        self.world.servers.etcd.create("nodes", node)
        self.world.cluster.disturb(name, 600.0)
        self.nodes.append(name)
        return name

    def label(self, node_name: str, label: str, value: str | None) -> None:
        """Set a label of a node, or take it away."""

        def edit(node: dict[str, Any]) -> None:
            labels = {each: of for each, of in node["metadata"]["labels"].items() if each != label}
            node["metadata"]["labels"] = labels | ({label: value} if value is not None else {})

        self.world.servers.etcd.edit("nodes", ("", node_name), edit)

    def label_pod(self, actor: Actor, label: str, value: str) -> None:
        """Set a label of a pod."""

        def edit(pod: dict[str, Any]) -> None:
            pod["metadata"]["labels"] = pod["metadata"]["labels"] | {label: value}

        self.world.servers.etcd.edit("pods", actor.key, edit)

    def pod(
        self,
        name: str,
        cpu: int = CPU,
        priority: int = 0,
        *,
        selector: dict[str, str] | None = None,
        scheduler: str = OWN,
        nominated: str = "",
        finalizer: str = "",
        group: str = "",
        claim: str = "",
        apart: str = "",
        disk: str = "",
    ) -> Actor:
        """Create a pod that can only go to this stage.

        Parameters
        ----------
        finalizer
            Of a pod that is being deleted.
        apart
            A label: the pod keeps away from pods that have it.
        disk
            A disk that one node can have at a time.
        """
        requests = {"cpu": f"{cpu}m", "memory": "64Mi"}
        container = {"name": "main", "image": "image", "resources": {"requests": requests}}
        pod: dict[str, Any] = {
            "metadata": {
                "name": f"{self.name}-{name}",
                "namespace": NAMESPACE,
                "labels": {"app": self.name},
            },
            "spec": {
                "schedulerName": scheduler,
                "containers": [container],
                "priority": priority,
                "nodeSelector": {STAGE: self.name} | (selector or {}),
                "tolerations": [{"key": STAGE, "operator": "Exists"}],
            },
        }
        if nominated:
            pod["status"] = {"phase": "Pending", "nominatedNodeName": nominated}
        if group:
            pod["metadata"]["labels"][GROUP_LABEL] = group
        if claim:
            source = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
            pod["spec"]["volumes"] = [source]
        if apart:
            wanted = {"matchExpressions": [{"key": apart, "operator": "Exists"}]}
            term = {"labelSelector": wanted, "topologyKey": objects.HOSTNAME}
            anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            pod["spec"]["affinity"] = {"podAntiAffinity": anti}
        if disk:
            source = {"name": "disk", "awsElasticBlockStore": {"volumeID": disk}}
            pod["spec"]["volumes"] = [source]
        if finalizer:
            pod["metadata"]["finalizers"] = [finalizer]
            pod["metadata"]["deletionTimestamp"] = stamp(self.world.simulation.now_s + 30.0)
        metadata = self.world.servers.etcd.create("pods", pod).data["metadata"]
        actor = Actor(self, (NAMESPACE, metadata["name"]), metadata["uid"])
        self._actors.append(actor)
        return actor

    def put(self, name: str, cpu: int = CPU, priority: int = 0, *, node_name: str = "") -> Actor:
        """Have another scheduler place a pod."""
        actor = self.pod(name, cpu, priority, scheduler=OTHER)
        self.world.servers.bind(actor.key, node_name or self.node, actor.uid)
        return actor

    def trouble(self, verb: str, actor: Actor | str, fate: Fate, for_s: float) -> None:
        """Have requests of a kind about a pod, which may not be there yet, have a fate."""
        name = f"{self.name}-{actor}" if isinstance(actor, str) else actor.key[1]

        def concerns(replica: str, request: Request) -> bool:
            return request.verb == verb and request.name == name and request.resource == "pods"

        until_s = self.world.simulation.now_s + for_s
        trouble = Trouble(f"incident: {verb}", 1.0, until_s, concerns, fate)
        self._troubles.append(trouble)
        self.world.troubles.active.append(trouble)

    def until(self, holds: Callable[[], object], for_s: float = 6.0) -> Script:
        """Go on as soon as something holds; abandon the incident if that takes too long."""
        until_s = self.world.simulation.now_s + for_s
        while not holds():
            if self.world.simulation.now_s > until_s:
                raise AbandonedError("it does not come to that")
            yield LOOK_S

    def expect(
        self, holds: Callable[[], object], for_s: float, invariant: str, otherwise: str
    ) -> Script:
        """Go on as soon as something holds, which must be in time."""
        until_s = self.world.simulation.now_s + for_s
        while not holds():
            if self.world.simulation.now_s > until_s:
                self.check_undisturbed()
                self._check_free()
                self.broken(invariant, otherwise)
                raise AbandonedError(otherwise)
            yield 0.1

    def broken(self, invariant: str, message: str) -> None:
        """Have the world end with a broken promise."""
        self.world.simulation.broken(invariant, f"{self.name}: {message}")

    # --- who looks after it -------------------------------------------------------------------

    def check_undisturbed(self) -> None:
        """Raise AbandonedError if others have come between."""
        if self.world.leader() is not self.leader:
            raise AbandonedError("somebody else leads")
        own = {actor.uid for actor in self._actors}
        for stored in self.world.servers.etcd.objects["pods"].values():
            is_here = stored.data["spec"].get("nodeName") in self.nodes
            if is_here and stored.data["metadata"]["uid"] not in own:
                raise AbandonedError("somebody else is here")

    def _check_free(self) -> None:
        """Raise AbandonedError if it takes more than room for the pods of the incident."""
        extras = self.world.extras.values()
        pods = [actor.data for actor in self._actors if actor.data is not None]
        if any(extra.is_decided_elsewhere(pod) for extra in extras for pod in pods):
            raise AbandonedError("an extra keeps pods from their nodes")

    def clear(self) -> None:
        """Take everything away."""
        etcd = self.world.servers.etcd
        for trouble in self._troubles:
            if trouble in self.world.troubles.active:
                self.world.troubles.active.remove(trouble)
        for actor in self._actors:
            actor.kill()
        for name in self.nodes:
            self.world.cluster.dead_kubelets.discard(name)
            if etcd.find("nodes", ("", name)) is not None:
                self.world.simulation.after(1.0, lambda name=name: self._remove(name))

    def _remove(self, name: str) -> None:
        if self.world.servers.etcd.find("nodes", ("", name)) is not None:
            self.world.servers.etcd.delete("nodes", ("", name))

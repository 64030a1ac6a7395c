"""Who acts in a simulated cluster besides Berth: kubelets, controllers, garbage collectors.

They act on what etcd has, after delays of their own, as their real counterparts do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.fakes.api_objects import ApiProblemError
from tests.storm import objects
from tests.storm.api_servers import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.storm.api_servers import ApiServers
    from tests.storm.etcd import Change, Etcd, Key
    from tests.storm.simulation import Simulation

OWN: Final = "berth"
OTHER: Final = "other-scheduler"


@dataclass(slots=True)
class Controller:
    """Keeps a number of like pods."""

    name: str
    namespace: str
    wanted: int
    template: dict[str, Any]
    names_stay: bool = False
    pods: dict[str, Key] = field(default_factory=dict)
    made: int = 0


class Cluster:
    """Everybody but Berth.

    Attributes
    ----------
    disturbed
        Until when a node may be overcommitted without a mistake of Berth, by name.
    rejections
        Pods that kubelets rejected though nobody else had touched their nodes.
    dead_kubelets
        Nodes whose kubelets do nothing.
    unwanted
        Apps that kubelets reject for reasons of their own.
    turned_away_s
        When they did, by app, but for pods that another scheduler has bound.
    bound_by_others
        UIDs of pods of ours that another scheduler has bound.
    others
        Who else is told of each change.
    limits
        What else decides whether a pod fits on a node.
    """

    def __init__(self, simulation: Simulation, servers: ApiServers) -> None:
        self.simulation = simulation
        self.servers = servers
        self.etcd: Etcd = servers.etcd
        self.rng = simulation.rng("cluster")
        self.controllers: dict[str, Controller] = {}
        self.disturbed: dict[str, float] = {}
        self.rejections: list[str] = []
        self.dead_kubelets: set[str] = set()
        self.unwanted: set[str] = set()
        self.turned_away_s: dict[str, list[float]] = {}
        self.bound_by_others: set[str] = set()
        self.nodes_made = 0
        self.others: list[Callable[[str, Change], None]] = []
        self.limits: list[Callable[[dict[str, Any], dict[str, Any]], bool]] = []
        self._admitted: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        servers.on_change = self._changed

    # --- what happens by itself ---------------------------------------------------------------

    def _changed(self, resource: str, change: Change) -> None:
        if resource == "pods":
            self._pod_changed(change)
        elif resource == "nodes" and change.type == "DELETED":
            self.simulation.after(
                2.0 + self.rng.random() * 10.0, lambda: self._collect_pods(change.key[1])
            )
        for told in self.others:
            told(resource, change)

    def _pod_changed(self, change: Change) -> None:
        pod = change.stored.data
        uid, node_name = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if change.type == "DELETED":
            self._admitted.pop(uid, None)
            self._tell_owner(uid, change.key)
            return
        if objects.is_over(pod):
            self._admitted.pop(uid, None)
            self._after(1.0, 5.0, lambda: self._remove(change.key, uid))
            return
        if not node_name:
            if "deletionTimestamp" in pod["metadata"]:
                self._after(1.0, 8.0, lambda: self._without_finalizer(change.key, uid))
            return
        if "deletionTimestamp" in pod["metadata"]:
            if uid not in self._admitted or self._admitted[uid] != "ending":
                self._admitted[uid] = "ending"
                self._after(0.05, 3.0, lambda: self._end_pod(change.key, uid, node_name))
        elif uid not in self._admitted:
            self._admitted[uid] = "known"
            self._after(0.02, 1.0, lambda: self._start_pod(change.key, uid, node_name))

    def _after(self, least_s: float, most_s: float, call: Any) -> None:
        self.simulation.after(least_s + self.rng.random() * (most_s - least_s), call)

    def _start_pod(self, key: Key, uid: str, node_name: str) -> None:
        """Admit a pod on its node, or reject it, as its kubelet does."""
        stored = self.etcd.find("pods", key)
        if stored is None or stored.data["metadata"]["uid"] != uid:
            return
        pod = stored.data
        if "deletionTimestamp" in pod["metadata"] or objects.is_over(pod):
            return
        if node_name in self.dead_kubelets:
            self.simulation.after(5.0, lambda: self._start_pod(key, uid, node_name))
            return
        if self.etcd.find("nodes", ("", node_name)) is None:
            return  # garbage collected later
        app = pod["metadata"].get("labels", {}).get("app", "")
        if app in self.unwanted:
            if uid not in self.bound_by_others:
                self.turned_away_s.setdefault(app, []).append(self.simulation.now_s)
            status = {
                "phase": "Failed",
                "reason": "UnexpectedAdmissionError",
                "message": "unwanted",
            }
            self.etcd.edit("pods", key, lambda obj: obj.setdefault("status", {}).update(status))
            return
        reason = self._reason_to_reject(pod, node_name)
        status: dict[str, Any] = {"phase": "Running", "startTime": stamp(self.simulation.now_s)}
        if reason:
            self._rejected(pod, node_name, reason)
            status = {"phase": "Failed", "reason": reason, "message": "Pod was rejected"}
        else:
            self._admitted[uid] = "running"
        self.etcd.edit("pods", key, lambda obj: obj.setdefault("status", {}).update(status))

    def _rejected(self, pod: dict[str, Any], node_name: str, reason: str) -> None:
        name = pod["metadata"]["name"]
        self.simulation.note(f"kubelet of {node_name} rejects {name}: {reason}")
        self.simulation.counts["F31 kubelet rejects a pod"] += 1
        quiet = self.disturbed.get(node_name, -1.0) < self.simulation.now_s
        if pod["spec"]["schedulerName"] == OWN and quiet:
            self.rejections.append(f"{name} on {node_name}: {reason}")

    def _reason_to_reject(self, pod: dict[str, Any], node_name: str) -> str:
        node = self.etcd.get("nodes", ("", node_name)).data
        cpu, memory = objects.requests_of(pod["spec"])
        count = 1
        ports = _ports(pod)
        for stored in self.etcd.objects["pods"].values():
            other = stored.data
            uid = other["metadata"]["uid"]
            if other["spec"].get("nodeName") != node_name or uid == pod["metadata"]["uid"]:
                continue
            if self._admitted.get(uid) not in ("running", "ending") or objects.is_over(other):
                continue
            more_cpu, more_memory = objects.requests_of(other["spec"])
            cpu, memory, count = cpu + more_cpu, memory + more_memory, count + 1
            if ports & _ports(other):
                return "NodePorts"
        allocatable = node["status"]["allocatable"]
        if cpu > objects.milli(allocatable["cpu"]):
            return "OutOfcpu"
        if memory > objects.mebi(allocatable["memory"]):
            return "OutOfmemory"
        return "OutOfpods" if count > int(allocatable["pods"]) else ""

    def _end_pod(self, key: Key, uid: str, node_name: str) -> None:
        if node_name in self.dead_kubelets:
            self.simulation.counts["F32 victim that does not end"] += 1
            self.simulation.after(5.0, lambda: self._end_pod(key, uid, node_name))
            return
        stored = self.etcd.find("pods", key)
        if stored is None or stored.data["metadata"]["uid"] != uid:
            return
        if stored.data["metadata"].get("finalizers"):
            self.simulation.counts["F32 victim that does not end"] += 1
            self.simulation.after(10.0, lambda: self._without_finalizer(key, uid))
            return
        self.etcd.delete("pods", key)

    def _without_finalizer(self, key: Key, uid: str) -> None:
        stored = self.etcd.find("pods", key)
        if stored is not None and stored.data["metadata"]["uid"] == uid:
            self._remove(key, uid)

    def _remove(self, key: Key, uid: str) -> None:
        """Delete what is over, as controllers and the garbage collector do."""
        stored = self.etcd.find("pods", key)
        if stored is not None and stored.data["metadata"]["uid"] == uid:
            if stored.data["metadata"].get("finalizers"):
                self.etcd.edit("pods", key, lambda obj: obj["metadata"].pop("finalizers", None))
            self.etcd.delete("pods", key)

    def _collect_pods(self, node_name: str) -> None:
        """Delete the pods of a node that is gone."""
        if self.etcd.find("nodes", ("", node_name)) is not None:
            return
        for key, stored in list(self.etcd.objects["pods"].items()):
            if stored.data["spec"].get("nodeName") == node_name:
                self.etcd.delete("pods", key)

    def sweep(self) -> None:
        """Collect the pods of all nodes that are gone."""
        for name in {each.data["spec"].get("nodeName") for each in self._pods()} - {None}:
            self._collect_pods(name)

    def make_room(self) -> None:
        """Delete some of the pods that have a node, for good."""
        for controller in self.controllers.values():
            for uid, key in list(controller.pods.items()):
                stored = self.etcd.find("pods", key)
                if stored is None or stored.data["metadata"]["uid"] != uid:
                    continue
                if stored.data["spec"].get("nodeName") and self.rng.random() < 0.4:
                    controller.wanted = max(controller.wanted - 1, 0)
                    controller.pods.pop(uid)
                    self._owners.pop(uid, None)
                    self.servers.delete("pods", key)

    # --- controllers --------------------------------------------------------------------------

    def _tell_owner(self, uid: str, key: Key) -> None:
        owner = self.controllers.get(self._owners.pop(uid, ""))
        if owner is not None:
            owner.pods.pop(uid, None)
            delay_s = 0.001 + self.rng.random() * (0.01 if owner.names_stay else 0.5)
            self.simulation.after(delay_s, lambda: self.reconcile(owner))

    def reconcile(self, controller: Controller) -> None:
        """Create or delete pods until there are as many as wanted."""
        while len(controller.pods) < controller.wanted:
            self._make_pod(controller)
        for uid, key in list(controller.pods.items())[controller.wanted :]:
            stored = self.etcd.find("pods", key)
            if stored is not None and stored.data["metadata"]["uid"] == uid:
                self.servers.delete("pods", key)
            controller.pods.pop(uid, None)
            self._owners.pop(uid, None)

    def _make_pod(self, controller: Controller) -> None:
        pod = msgspec.json.decode(msgspec.json.encode(controller.template))
        pod["metadata"]["namespace"] = controller.namespace
        if controller.names_stay:
            taken = {key[1] for key in controller.pods.values()}
            number = 0
            while (name := f"{controller.name}-{number}") in taken or self.etcd.find(
                "pods", (controller.namespace, name)
            ):
                number += 1
            pod["metadata"]["name"] = name
        else:
            controller.made += 1
            pod["metadata"]["name"] = f"{controller.name}-{controller.made}"
        name = pod["metadata"]["name"]
        for volume in pod["spec"].get("volumes", ()):
            source = volume["persistentVolumeClaim"]
            source["claimName"] = source["claimName"].format(pod=name)
        for claim in pod["spec"].get("resourceClaims", ()):
            claim["resourceClaimName"] = claim["resourceClaimName"].format(pod=name)
        try:
            stored = self.etcd.create("pods", pod)
        except ApiProblemError:
            return
        metadata = stored.data["metadata"]
        controller.pods[metadata["uid"]] = (controller.namespace, metadata["name"])
        self._owners[metadata["uid"]] = controller.name

    # --- what can be asked --------------------------------------------------------------------

    def _pods(self) -> list[Any]:
        return list(self.etcd.objects["pods"].values())

    def pending(self, *names: str) -> list[dict[str, Any]]:
        """Return the pods that wait for one of some schedulers, by default for Berth."""
        return [
            each.data
            for each in self._pods()
            if not each.data["spec"].get("nodeName")
            and each.data["spec"]["schedulerName"] in (names or (OWN,))
            and "deletionTimestamp" not in each.data["metadata"]
            and not objects.is_over(each.data)
        ]

    def disturb(self, node_name: str, for_s: float = 60.0) -> None:
        """Have it be known that others have changed what fits on a node."""
        until_s = self.simulation.now_s + for_s
        self.disturbed[node_name] = max(until_s, self.disturbed.get(node_name, 0.0))

    def feasible_node(self, pod: dict[str, Any]) -> str:
        """Return a node on which a pod fits, by a rule that is much simpler than Berth's."""
        return next((name for name, _ in self._rooms(pod)), "")

    def free_on(self, node_name: str) -> tuple[int, int] | None:
        """Return CPU in thousandths and memory in MiB that nobody uses; None without the node."""
        stored = self.etcd.find("nodes", ("", node_name))
        if stored is None:
            return None
        allocatable = stored.data["status"]["allocatable"]
        cpu, memory, _ = self._used()[0].get(node_name, [0, 0, 0])
        return objects.milli(allocatable["cpu"]) - cpu, objects.mebi(allocatable["memory"]) - memory

    def room_for(self, pod: dict[str, Any]) -> int:
        """Return how many pods like this one fit at once, by the same rule."""
        return sum(count for _, count in self._rooms(pod))

    def _rooms(self, pod: dict[str, Any]) -> Iterator[tuple[str, int]]:
        """Yield each node with room for a pod, and for how many like it."""
        spec = pod["spec"]
        if spec.get("affinity") or spec.get("topologySpreadConstraints"):
            return  # not decided here
        used, ports = self._used()
        cpu, memory = objects.requests_of(spec)
        for (_, name), stored in self.etcd.objects["nodes"].items():
            node = stored.data
            if node["spec"].get("unschedulable"):
                continue
            if node["spec"].get("taints") and not spec.get("tolerations"):
                continue
            wanted = spec.get("nodeSelector") or {}
            if any(node["metadata"]["labels"].get(k) != v for k, v in wanted.items()):
                continue
            own_ports = _ports(pod)
            if own_ports & ports.get(name, set()) or self._keeps_away(pod, name):
                continue
            if not all(allows(pod, node) for allows in self.limits):
                continue
            sums = used.get(name, [0, 0, 0])
            allocatable = node["status"]["allocatable"]
            count = min(
                (objects.milli(allocatable["cpu"]) - sums[0]) // max(cpu, 1),
                (objects.mebi(allocatable["memory"]) - sums[1]) // max(memory, 1),
                int(allocatable["pods"]) - sums[2],
                1 if own_ports else 1_000,
            )
            if count > 0:
                yield name, count

    def _used(self) -> tuple[dict[str, list[int]], dict[str, set[int]]]:
        """Return CPU, memory, pods and ports in use on each node."""
        used: dict[str, list[int]] = {}
        ports: dict[str, set[int]] = {}
        for stored in self._pods():
            other = stored.data
            name = other["spec"].get("nodeName")
            if not name or objects.is_over(other):
                continue
            cpu, memory = objects.requests_of(other["spec"])
            sums = used.setdefault(name, [0, 0, 0])
            sums[0] += cpu
            sums[1] += memory
            sums[2] += 1
            ports.setdefault(name, set()).update(_ports(other))
        return used, ports

    def has_an_overlooked_nomination(self) -> bool:
        """Tell whether a pod waits for a node near those that it wants to be apart from.

        kube-scheduler 1.36 (``RunPreFilterExtensionAddPod``) does not ask InterPodAffinity about
        the anti-affinity of a nominated pod where no pod that runs has such a term, and nobody asks
        PodTopologySpread about the constraints of a nominated pod. So others take the place of the
        victims again, and are evicted again, for as long as they are recreated.
        """
        return any(
            self._is_near_others(each.data)
            for each in self._pods()
            if not each.data["spec"].get("nodeName")
        )

    def _is_near_others(self, pod: dict[str, Any]) -> bool:
        """Tell whether pods that a pod wants few or none of are where it is nominated to."""
        node_name = pod.get("status", {}).get("nominatedNodeName")
        alone, spread = objects.kept_away(pod["spec"]), objects.spread_apps(pod["spec"])
        if not node_name or not alone | spread:
            return False
        zones = {
            name: stored.data["metadata"]["labels"].get(objects.ZONE)
            for (_, name), stored in self.etcd.objects["nodes"].items()
        }
        for other in (each.data for each in self._pods()):
            on, app = other["spec"].get("nodeName"), other["metadata"].get("labels", {}).get("app")
            if not on or other["metadata"]["namespace"] != pod["metadata"]["namespace"]:
                continue
            if on == node_name and app in alone:
                return True
            if app in spread and on in zones and zones[on] == zones.get(node_name):
                return True
        return False

    def _keeps_away(self, pod: dict[str, Any], node_name: str) -> bool:
        """Tell whether a pod on a node has an anti-affinity to this one."""
        app = pod["metadata"].get("labels", {}).get("app")
        return any(
            each.data["spec"].get("nodeName") == node_name
            and app in objects.kept_away(each.data["spec"])
            and each.data["metadata"]["namespace"] == pod["metadata"]["namespace"]
            for each in self._pods()
        )


def _ports(pod: dict[str, Any]) -> set[int]:
    return {
        port["hostPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
    }

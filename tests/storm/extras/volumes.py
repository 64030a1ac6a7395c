"""Volumes: claims that wait for a pod or do not, and a provisioner that is slow or fails.

The controllers of volumes act here as the real ones do: they provision for the node that a
scheduler has chosen, complete what it has bound, and take the annotation away where they fail.

I23 is checked at each binding: a pod is bound only when all of its claims are bound to volumes that
its node can reach, and a claim for one pod has no other. No volume changes from one claim to
another. I3 is checked at rest with the claims, I5 with what is assumed of claims and volumes.

*Source*: pkg/controller/volume/persistentvolume/pv_controller.go and
pkg/controller/volume/pvcprotection (1.36); sig-storage-lib-external-provisioner v10,
controller/controller.go, rescheduleProvisioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.storm import objects
from tests.storm.cluster import OTHER, OWN, Controller
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.storm.etcd import Change, Key, Stored
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

action: Final = Actions()

PROVISIONED: Final = "zonal"
IMMEDIATE: Final = "immediate"
LOCAL: Final = "local"
ODD: Final = "odd"
"""A class without a binding mode, which no API server takes: its pods make a filter raise (F27)."""

CLASSES: Final = {
    PROVISIONED: ("disks.example.com", "WaitForFirstConsumer"),
    IMMEDIATE: ("disks.example.com", "Immediate"),
    LOCAL: ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
}
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
ONE_POD: Final = "ReadWriteOncePod"

MOST_APPS: Final = 6
RELABELLED_S: Final = 30.0
"""For how long after a change of a node's labels a pod may be bound beside its volume."""


class Volumes(Extra):
    """Volumes, claims, and who completes them.

    Attributes
    ----------
    trouble
        What the provisioner does: nothing out of the ordinary, ``fail``, or ``stop``.
    slow_s
        How long controllers take at most, if not as long as usual.
    made
        Volumes on disks of nodes so far.
    """

    NAME = "volumes"
    actions = action

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.trouble = ""
        self.slow_s = 0.0
        self.made = 0
        self._claim_of: dict[str, str] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._relabelled_s = -1e9
        self._pending: set[Key] = set()
        world.cluster.limits.append(self._allows)

    def begin(self) -> None:
        for name, (provisioner, mode) in CLASSES.items():
            self.etcd.create("storageclasses", storage_class(name, provisioner, mode))
        self.etcd.create(
            "storageclasses", {"metadata": {"name": ODD}, "provisioner": "disks.example.com"}
        )
        for _ in range(3):
            new_local_volume(self.world, self.rng)

    def calm(self) -> None:
        self.trouble, self.slow_s = "", 0.0
        for name, (provisioner, mode) in CLASSES.items():
            if self.etcd.find("storageclasses", ("", name)) is None:
                self.etcd.create("storageclasses", storage_class(name, provisioner, mode))
        for key in list(self.etcd.objects["persistentvolumeclaims"]):
            self._look_at(key)
        for stored in list(self.etcd.objects["pods"].values()):
            self._claims_appear(stored.data)

    # --- controllers of volumes ---------------------------------------------------------------

    def changed(self, resource: str, change: Change) -> None:
        key, data = change.key, change.stored.data
        if resource == "nodes":
            labels = data["metadata"]["labels"]
            if self._labels.get(key[1], labels) != labels or change.type == "DELETED":
                self._relabelled_s = self.simulation.now_s
            self._labels[key[1]] = labels
        elif resource == "pods":
            if change.type == "ADDED":
                self._after(0.0, 0.3, lambda: self._claims_appear(data))
            elif change.type == "DELETED" or objects.is_over(data):
                for name in claims_of(data):
                    self._after(0.0, 1.0, lambda name=name: self._release_claim((key[0], name)))
        elif resource == "persistentvolumeclaims":
            if change.type == "DELETED":
                self._after(0.05, 1.0, lambda: self._release_volume(data["metadata"]["uid"]))
            else:
                self._soon(key)
        elif resource == "persistentvolumes" and change.type != "DELETED":
            self._volume_changed(data)

    def _after(self, least_s: float, most_s: float, call: Any) -> None:
        self.simulation.after(least_s + self.rng.random() * (most_s - least_s), call)

    def _volume_changed(self, volume: dict[str, Any]) -> None:
        """I23: a volume stays with its claim."""
        name, reference = volume["metadata"]["name"], volume["spec"].get("claimRef") or {}
        uid, before = reference.get("uid", ""), self._claim_of.get(name, "")
        self._claim_of[name] = uid
        if uid and before and uid != before:
            self.simulation.broken("I23", f"volume {name} goes from claim {before} to {uid}")
        if uid:
            self._soon((reference["namespace"], reference["name"]))

    def _soon(self, key: Key) -> None:
        if key not in self._pending:
            self._pending.add(key)
            least_s, most_s = (0.01, 0.5) if not self.slow_s else (self.slow_s / 2, self.slow_s)
            self._after(least_s, most_s, lambda: self._look_at(key))

    def _claims_appear(self, pod: dict[str, Any]) -> None:
        """Make the claims that a pod names, as the controller of a StatefulSet does."""
        namespace = pod["metadata"]["namespace"]
        key = (namespace, pod["metadata"]["name"])
        stored = self.etcd.find("pods", key)
        if stored is None or "deletionTimestamp" in stored.data["metadata"]:
            return
        wanted = pod["metadata"].get("labels", {}).get("storage", "")
        if not wanted:
            return
        name, _, mode = wanted.partition(".")
        for claim in claims_of(pod):
            if self.etcd.find("persistentvolumeclaims", (namespace, claim)) is None:
                self.etcd.create(
                    "persistentvolumeclaims", claim_object(namespace, claim, name, mode)
                )

    def _release_claim(self, key: Key) -> None:
        """Remove a claim that is being deleted, unless a pod with a node uses it."""
        stored = self.etcd.find("persistentvolumeclaims", key)
        if stored is None or "deletionTimestamp" not in stored.data["metadata"]:
            return
        if not any(pod["spec"].get("nodeName") for pod in self._users(key)):
            self.etcd.delete("persistentvolumeclaims", key)

    def _release_volume(self, uid: str) -> None:
        """Delete the volume of a claim that is gone; one that people made is free again."""
        for key, stored in list(self.etcd.objects["persistentvolumes"].items()):
            if (stored.data["spec"].get("claimRef") or {}).get("uid") != uid:
                continue
            self._claim_of.pop(key[1], None)
            if stored.data["spec"]["storageClassName"] != LOCAL:
                self.etcd.delete("persistentvolumes", key)
            else:
                self.etcd.edit("persistentvolumes", key, lambda obj: obj["spec"].pop("claimRef"))

    def _look_at(self, key: Key) -> None:
        """Complete the binding of a claim, provision its volume, or say that it fails."""
        self._pending.discard(key)
        stored = self.etcd.find("persistentvolumeclaims", key)
        if stored is None:
            return
        claim = stored.data
        if claim["spec"].get("volumeName"):
            if self.etcd.find("persistentvolumes", ("", claim["spec"]["volumeName"])) is None:
                self._set_phase(key, "Lost")
            return
        volume = self._volume_for(claim)
        if volume is not None:
            self._complete(key, volume)
            return
        name = claim["spec"]["storageClassName"]
        node_name = claim["metadata"].get("annotations", {}).get(SELECTED_NODE, "")
        if "deletionTimestamp" in claim["metadata"] or name in (LOCAL, ODD):
            return
        if self.etcd.find("storageclasses", ("", name)) is None:
            return
        if name == PROVISIONED and not node_name:
            return
        self._provision(key, claim, node_name)

    def _provision(self, key: Key, claim: dict[str, Any], node_name: str) -> None:
        if self.trouble == "stop":
            self.simulation.counts["provisioner does nothing"] += 1
            self.simulation.after(5.0, lambda: self._soon(key))
            return
        node = self.etcd.find("nodes", ("", node_name)) if node_name else None
        if node_name and (node is None or self.trouble == "fail"):
            self.simulation.counts["provisioner fails"] += 1
            self.etcd.edit(
                "persistentvolumeclaims",
                key,
                lambda obj: obj["metadata"]["annotations"].pop(SELECTED_NODE, None),
            )
            return
        if self.trouble == "fail":
            self.simulation.after(3.0, lambda: self._soon(key))
            return
        self.simulation.counts["volume provisioned"] += 1
        zone = self.rng.choice(objects.ZONES)
        if node is not None:
            zone = node.data["metadata"]["labels"][objects.ZONE]
        volume = volume_object(
            f"pvc-{claim['metadata']['uid']}", claim["spec"]["storageClassName"], objects.ZONE, zone
        )
        volume["spec"]["claimRef"] = reference_to(claim)
        if self.etcd.find("persistentvolumes", ("", volume["metadata"]["name"])) is None:
            self.etcd.create("persistentvolumes", volume)

    def _volume_for(self, claim: dict[str, Any]) -> str | None:
        uid = claim["metadata"]["uid"]
        for (_, name), stored in self.etcd.objects["persistentvolumes"].items():
            if (stored.data["spec"].get("claimRef") or {}).get("uid") == uid:
                return name
        return None

    def _complete(self, key: Key, volume: str) -> None:
        def edit(claim: dict[str, Any]) -> None:
            claim["spec"]["volumeName"] = volume
            claim["status"] = {"phase": "Bound"}
            claim["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"

        self.etcd.edit("persistentvolumeclaims", key, edit)

    def _set_phase(self, key: Key, phase: str) -> None:
        self.etcd.edit(
            "persistentvolumeclaims", key, lambda claim: claim["status"].update(phase=phase)
        )

    # --- at each binding ----------------------------------------------------------------------

    def written(self, replica: Replica, request: Request, status: int) -> None:
        """I23: a pod is bound after its claims, where they can be reached, and alone if need be."""
        if request.verb != "bind" or status >= 300:
            return
        pod = self.etcd.get("pods", request.key).data
        names = claims_of(pod)
        if not names:
            return
        self.simulation.counts["pod with claims bound"] += 1
        if self.world.is_excused():
            return
        node = self.etcd.find("nodes", ("", pod["spec"]["nodeName"]))
        for name in names:
            problem = self._problem((request.namespace, name), pod, node)
            if problem:
                self.simulation.broken("I23", f"{replica.name} binds {request.name}: {problem}")

    def _problem(self, key: Key, pod: dict[str, Any], node: Stored | None) -> str:
        stored = self.etcd.find("persistentvolumeclaims", key)
        if stored is None or "deletionTimestamp" in stored.data["metadata"]:
            return ""  # users do that at any time
        claim = stored.data
        if not claim["spec"].get("volumeName"):
            return "" if self._is_young(stored) else f"claim {key[1]} is not bound"
        volume = self.etcd.find("persistentvolumes", ("", claim["spec"]["volumeName"]))
        was_relabelled = self.simulation.now_s - self._relabelled_s < RELABELLED_S
        is_known = volume is not None and node is not None and not was_relabelled
        if is_known and not _reaches(volume.data, node.data):
            return f"{node.data['metadata']['name']} cannot reach the volume of {key[1]}"
        if ONE_POD in claim["spec"]["accessModes"]:
            others = [
                each["metadata"]["name"]
                for each in self._users(key)
                if each["spec"].get("nodeName")
                and each["spec"]["schedulerName"] == OWN
                and each["metadata"]["uid"] != pod["metadata"]["uid"]
                and "deletionTimestamp" not in each["metadata"]
            ]
            if others:
                return f"claim {key[1]} has {others[0]}"
        return ""

    def _is_young(self, claim: Stored) -> bool:
        """Return whether a claim was made again a moment ago."""
        changes = self.etcd.changes["persistentvolumeclaims"]
        uid = claim.data["metadata"]["uid"]
        return any(
            change.type == "ADDED" and change.stored.data["metadata"]["uid"] == uid
            for change in changes[-20:]
        )

    # --- at rest ------------------------------------------------------------------------------

    def _allows(self, pod: dict[str, Any], node: dict[str, Any]) -> bool:
        """Return whether the claims of a pod let it run on a node."""
        return all(
            self._claim_allows((pod["metadata"]["namespace"], name), node)
            for name in claims_of(pod)
        )

    def _claim_allows(self, key: Key, node: dict[str, Any]) -> bool:
        stored = self.etcd.find("persistentvolumeclaims", key)
        if stored is None or "deletionTimestamp" in stored.data["metadata"]:
            return False
        claim = stored.data
        if ONE_POD in claim["spec"]["accessModes"] and any(
            each["spec"].get("nodeName") for each in self._users(key)
        ):
            return False
        name = claim["spec"].get("volumeName")
        if name:
            volume = self.etcd.find("persistentvolumes", ("", name))
            is_bound = claim["status"]["phase"] == "Bound"
            return volume is not None and is_bound and _reaches(volume.data, node)
        class_name = claim["spec"]["storageClassName"]
        if class_name == LOCAL:
            return any(
                each.data["spec"]["storageClassName"] == LOCAL
                and not each.data["spec"].get("claimRef")
                and _reaches(each.data, node)
                for each in self.etcd.objects["persistentvolumes"].values()
            )
        return class_name == PROVISIONED

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        storage = leader.known.cluster.storage
        for key in self.etcd.objects["persistentvolumeclaims"]:
            if storage.claims.get(key) is not storage.claims.get_api(key):
                yield "I5", f"{leader.name} assumes something of claim {key[1]}"
        for _, name in self.etcd.objects["persistentvolumes"]:
            if storage.volumes.get(name) is not storage.volumes.get_api(name):
                yield "I5", f"{leader.name} assumes something of volume {name}"

    def _users(self, key: Key) -> list[dict[str, Any]]:
        """Return the pods that have not ended and name a claim."""
        return [
            stored.data
            for (namespace, _), stored in self.etcd.objects["pods"].items()
            if namespace == key[0]
            and key[1] in claims_of(stored.data)
            and not objects.is_over(stored.data)
        ]


# --- objects ------------------------------------------------------------------------------------


def claims_of(pod: dict[str, Any]) -> list[str]:
    """Return the names of the claims that a pod uses."""
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    ]


def storage_class(name: str, provisioner: str, mode: str) -> dict[str, Any]:
    """Return a storage class."""
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def claim_object(namespace: str, name: str, class_name: str, mode: str) -> dict[str, Any]:
    """Return a claim."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "storageClassName": class_name,
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def volume_object(name: str, class_name: str, label: str, value: str) -> dict[str, Any]:
    """Return a volume that nodes with a label reach."""
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce", ONE_POD],
            "storageClassName": class_name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Available"},
    }


def reference_to(claim: dict[str, Any]) -> dict[str, Any]:
    """Return what a volume says of its claim."""
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _reaches(volume: dict[str, Any], node: dict[str, Any]) -> bool:
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (wanted,) = term["matchExpressions"]
    return node["metadata"]["labels"].get(wanted["key"]) in wanted["values"]


def _volumes(world: World) -> Volumes:
    extra = world.extras["volumes"]
    assert isinstance(extra, Volumes)
    return extra


# --- what happens -------------------------------------------------------------------------------


@action(5.0)
def new_stateful_app(world: World, dice: random.Random) -> None:
    """An app appears whose pods have a claim each, or share one."""
    cluster = world.cluster
    apps = [
        each
        for each in cluster.controllers.values()
        if each.wanted and "storage" in each.template["metadata"].get("labels", {})
    ]
    if len(apps) >= MOST_APPS:
        dice.choice(apps).wanted = dice.choice((0, 1))
        return
    name = f"disk-{len(cluster.controllers)}"
    class_name = dice.choice((PROVISIONED, PROVISIONED, PROVISIONED, IMMEDIATE, LOCAL, LOCAL, ODD))
    mode = ONE_POD if dice.random() < 0.4 else "ReadWriteOnce"
    spec = objects.pod_spec(dice, OWN if dice.random() < 0.95 else OTHER)
    is_shared = dice.random() < 0.3
    claim = name if is_shared else "{pod}"
    spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    labels = {"app": name, "storage": f"{class_name}.{mode}"}
    controller = Controller(
        name,
        dice.choice(objects.NAMESPACES),
        dice.choice((1, 2, 3)),
        {"metadata": {"labels": labels}, "spec": spec},
        names_stay=True,
    )
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@action(1.5)
def delete_claim(world: World, dice: random.Random) -> None:
    """A claim is deleted; it goes when no pod uses it any more."""
    etcd = world.servers.etcd
    keys = list(etcd.objects["persistentvolumeclaims"])
    if keys:
        key = dice.choice(keys)
        mark = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["protection"]}
        etcd.edit("persistentvolumeclaims", key, lambda claim: claim["metadata"].update(mark))
        _volumes(world)._release_claim(key)


@action(1.0)
def change_claim(world: World, dice: random.Random) -> None:
    """Somebody else changes claims and volumes, so that our writes conflict."""
    etcd = world.servers.etcd
    for resource in ("persistentvolumeclaims", "persistentvolumes"):
        for key in list(etcd.objects[resource]):
            if dice.random() < 0.5:
                note = {"note": str(dice.random())}
                etcd.edit(
                    resource,
                    key,
                    lambda obj, note=note: obj["metadata"].setdefault("labels", {}).update(note),
                )


@action(1.0)
def new_local_volume(world: World, dice: random.Random) -> None:
    """A volume on the disk of a node appears."""
    etcd = world.servers.etcd
    nodes = list(etcd.objects["nodes"])
    if nodes and len(etcd.objects["persistentvolumes"]) < 30:
        volumes = _volumes(world)
        volumes.made += 1
        name = f"local-{volumes.made}"
        etcd.create(
            "persistentvolumes",
            volume_object(name, LOCAL, objects.HOSTNAME, dice.choice(nodes)[1]),
        )


@action(0.5)
def lose_volume(world: World, dice: random.Random) -> None:
    """A volume is gone, whether it has a claim or not."""
    etcd = world.servers.etcd
    keys = list(etcd.objects["persistentvolumes"])
    if keys:
        key = dice.choice(keys)
        reference = etcd.get("persistentvolumes", key).data["spec"].get("claimRef")
        etcd.delete("persistentvolumes", key)
        if reference:
            _volumes(world)._soon((reference["namespace"], reference["name"]))


@action(0.5)
def lose_class(world: World, dice: random.Random) -> None:
    """A storage class is gone for a while."""
    name = dice.choice(list(CLASSES))
    etcd = world.servers.etcd
    if etcd.find("storageclasses", ("", name)) is None:
        return
    etcd.delete("storageclasses", ("", name))

    def again() -> None:
        if etcd.find("storageclasses", ("", name)) is None:
            etcd.create("storageclasses", storage_class(name, *CLASSES[name]))

    world.simulation.after(dice.choice((0.1, 5.0)), again)


@action(1.5)
def provisioner_trouble(world: World, dice: random.Random) -> None:
    """The provisioner fails, does nothing, or is slow for a while."""
    volumes = _volumes(world)
    volumes.trouble = dice.choice(("fail", "stop", ""))
    volumes.slow_s = dice.choice((0.0, 4.0, 15.0))

    def end() -> None:
        volumes.trouble, volumes.slow_s = "", 0.0

    world.simulation.after(dice.choice((1.0, 10.0)), end)

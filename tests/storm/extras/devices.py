"""Devices: slices that change, claims of one pod or of several, and writes of claims that fail.

The claim controller acts here as the real one does: a pod that is gone loses its reservation, and a
claim that nobody has reserved loses its devices.

I20 is checked at each change of a claim: no device is allocated to two. At each binding the claims
of the pod are allocated on its node and reserved for it. I3 is checked at rest with the devices, I5
with the allocations that are under way.

*Source*: pkg/controller/resourceclaim/controller.go, syncClaim (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scheduler.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.storm import objects
from tests.storm.cluster import OWN, Controller
from tests.storm.extras.extra import Actions, Extra
from tests.storm.troubles import CONFLICT, INTERNAL, Fate, Trouble

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.storm.etcd import Change, Key
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

action: Final = Actions()

DRIVER: Final = "gpu.example.com"
CLASS: Final = "gpu"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MOST_APPS: Final = 5

Device = tuple[str, str]
"""Pool, which has the name of its node, and device."""


class Devices(Extra):
    """Slices, claims, and the controller of claims."""

    NAME = "devices"
    KINDS = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS)
    actions = action

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._allocated: dict[str, set[Device]] = {}
        self._soon: set[Key] = set()
        world.cluster.limits.append(self._allows)

    def begin(self) -> None:
        self.etcd.create("deviceclasses", {"metadata": {"name": CLASS}, "spec": {}})
        for _, name in list(self.etcd.objects["nodes"]):
            self._publish(name, self.rng.choice((0, 1, 2, 4)))

    def calm(self) -> None:
        for stored in list(self.etcd.objects["pods"].values()):
            self._claims_appear(stored.data)
        for key in list(self.etcd.objects["resourceclaims"]):
            self._sync(key)

    # --- drivers and the controller of claims -------------------------------------------------

    def changed(self, resource: str, change: Change) -> None:
        key, data = change.key, change.stored.data
        if resource == "nodes" and change.type == "ADDED" and self.etcd.objects["deviceclasses"]:
            self._after(0.0, 1.0, lambda: self._publish(key[1], self.rng.choice((0, 1, 2, 4))))
        elif resource == "nodes" and change.type == "DELETED":
            self._after(0.0, 1.0, lambda: self._publish(key[1], 0))
        elif resource == "pods":
            if change.type == "ADDED":
                self._after(0.0, 0.2, lambda: self._claims_appear(data))
            elif change.type == "DELETED" or objects.is_over(data):
                for name in claims_of(data):
                    self._look_later((key[0], name))
        elif resource == "resourceclaims":
            self._claim_changed(change)

    def _after(self, least_s: float, most_s: float, call: Any) -> None:
        self.simulation.after(least_s + self.rng.random() * (most_s - least_s), call)

    def _claim_changed(self, change: Change) -> None:
        """I20: a device belongs to one claim."""
        uid = change.stored.data["metadata"]["uid"]
        devices = set() if change.type == "DELETED" else devices_of(change.stored.data)
        for other, held in self._allocated.items():
            if other != uid and held & devices and not self.world.is_excused():
                self.simulation.broken("I20", f"{held & devices} in claims {uid} and {other}")
        if devices:
            self._allocated[uid] = devices
        else:
            self._allocated.pop(uid, None)
        if change.type != "DELETED":
            self._look_later(change.key)

    def _look_later(self, key: Key) -> None:
        if key not in self._soon:
            self._soon.add(key)
            self._after(0.05, 1.0, lambda: self._sync(key))

    def _sync(self, key: Key) -> None:
        """Take reservations of pods away that are gone, and devices that nobody has reserved."""
        self._soon.discard(key)
        stored = self.etcd.find("resourceclaims", key)
        if stored is None:
            return
        status = stored.data.get("status") or {}
        pods = {
            each.data["metadata"]["uid"]
            for each in self.etcd.objects["pods"].values()
            if not objects.is_over(each.data)
        }
        valid = [each for each in status.get("reservedFor") or () if each["uid"] in pods]
        if valid == (status.get("reservedFor") or []) and (valid or not status.get("allocation")):
            self._finish(key)
            return

        def edit(claim: dict[str, Any]) -> None:
            if valid:
                claim["status"]["reservedFor"] = valid
            else:
                claim["status"] = {}

        self.simulation.counts["claim loses a reservation"] += 1
        self.etcd.edit("resourceclaims", key, edit)

    def _finish(self, key: Key) -> None:
        """Delete a claim that is being deleted and has no devices."""
        claim = self.etcd.get("resourceclaims", key).data
        if "deletionTimestamp" in claim["metadata"] and not devices_of(claim):
            self.etcd.delete("resourceclaims", key)

    def _publish(self, node_name: str, count: int) -> None:
        """Publish the devices of a node; none for a node that is gone."""
        key = ("", f"{node_name}-gpus")
        stored = self.etcd.find("resourceslices", key)
        if count and self.etcd.find("nodes", ("", node_name)) is None:
            return
        if stored is not None and not count:
            self.etcd.delete("resourceslices", key)
        elif stored is not None:
            generation = stored.data["spec"]["pool"]["generation"] + 1
            spec = slice_spec(node_name, count, generation)
            self.etcd.edit("resourceslices", key, lambda obj: obj.update(spec=spec))
        elif count:
            spec = slice_spec(node_name, count, 1)
            self.etcd.create("resourceslices", {"metadata": {"name": key[1]}, "spec": spec})

    def _claims_appear(self, pod: dict[str, Any]) -> None:
        """Make the claims that a pod names, if it is still there."""
        namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
        stored = self.etcd.find("pods", (namespace, pod["metadata"]["name"]))
        if stored is None or "devices" not in labels:
            return
        for name in claims_of(pod):
            if self.etcd.find("resourceclaims", (namespace, name)) is None:
                claim = claim_object(namespace, name, int(labels["devices"]))
                self.etcd.create("resourceclaims", claim)

    # --- at each binding ----------------------------------------------------------------------

    def written(self, replica: Replica, request: Request, status: int) -> None:
        """I20: a pod is bound when its claims are allocated on its node and reserved for it."""
        if request.verb != "bind" or status >= 300:
            return
        pod = self.etcd.get("pods", request.key).data
        names = claims_of(pod)
        if not names:
            return
        self.simulation.counts["pod with devices bound"] += 1
        for name in names:
            stored = self.etcd.find("resourceclaims", (request.namespace, name))
            if stored is None or "deletionTimestamp" in stored.data["metadata"]:
                continue  # users do that at any time
            claim = stored.data
            users = {each["uid"] for each in (claim.get("status") or {}).get("reservedFor") or ()}
            pools = {pool for pool, _ in devices_of(claim)}
            is_right = pools == {pod["spec"]["nodeName"]} and pod["metadata"]["uid"] in users
            if not is_right and not self._is_young(claim["metadata"]["uid"]):
                self.simulation.broken(
                    "I20", f"{replica.name} binds {request.name}: claim {name} has {pools}, {users}"
                )

    def _is_young(self, uid: str) -> bool:
        """Return whether a claim was made again a moment ago."""
        return any(
            change.type == "ADDED" and change.stored.data["metadata"]["uid"] == uid
            for change in self.etcd.changes["resourceclaims"][-20:]
        )

    # --- at rest ------------------------------------------------------------------------------

    def _allows(self, pod: dict[str, Any], node: dict[str, Any]) -> bool:
        """Return whether a node has devices for the claims of a pod."""
        name, namespace = node["metadata"]["name"], pod["metadata"]["namespace"]
        for claim_name in claims_of(pod):
            stored = self.etcd.find("resourceclaims", (namespace, claim_name))
            if stored is None or "deletionTimestamp" in stored.data["metadata"]:
                return False
            devices = devices_of(stored.data)
            if devices and {pool for pool, _ in devices} != {name}:
                return False
            (wanted,) = stored.data["spec"]["devices"]["requests"]
            if not devices and len(self._free(name)) < wanted["exactly"]["count"]:
                return False
        return True

    def _free(self, node_name: str) -> set[Device]:
        stored = self.etcd.find("resourceslices", ("", f"{node_name}-gpus"))
        if stored is None:
            return set()
        devices = {(node_name, each["name"]) for each in stored.data["spec"]["devices"]}
        return devices.difference(*self._allocated.values())

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        claims = leader.known.cluster.devices.claims
        if claims._in_flight:
            yield "I5", f"{leader.name}: allocations under way: {sorted(claims._in_flight)}"
        for key in self.etcd.objects["resourceclaims"]:
            if claims.get(*key) is not claims.api(*key):
                yield "I5", f"{leader.name} knows of a write of claim {key[1]}, and not its watch"


# --- objects ------------------------------------------------------------------------------------


def claims_of(pod: dict[str, Any]) -> list[str]:
    """Return the names of the claims of devices of a pod."""
    return [each["resourceClaimName"] for each in pod["spec"].get("resourceClaims", ())]


def devices_of(claim: dict[str, Any]) -> set[Device]:
    """Return the devices that are allocated to a claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results", ())
    return {(each["pool"], each["device"]) for each in results}


def slice_spec(node_name: str, count: int, generation: int) -> dict[str, Any]:
    """Return the devices of a node."""
    return {
        "driver": DRIVER,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(count)],
    }


def claim_object(namespace: str, name: str, count: int) -> dict[str, Any]:
    """Return a claim."""
    wanted = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
        "status": {},
    }


# --- what happens -------------------------------------------------------------------------------


@action(5.0)
def new_device_app(world: World, dice: random.Random) -> None:
    """An app appears whose pods have devices each, or share them."""
    cluster = world.cluster
    apps = [
        each
        for each in cluster.controllers.values()
        if each.wanted and "devices" in each.template["metadata"].get("labels", {})
    ]
    if len(apps) >= MOST_APPS:
        dice.choice(apps).wanted = dice.choice((0, 1))
        return
    name = f"gpus-{len(cluster.controllers)}"
    spec = objects.pod_spec(dice, OWN)
    claim = name if dice.random() < 0.3 else "{pod}"
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    labels = {"app": name, "devices": str(dice.choice((1, 1, 2)))}
    controller = Controller(
        name,
        dice.choice(objects.NAMESPACES),
        dice.choice((1, 2, 3)),
        {"metadata": {"labels": labels}, "spec": spec},
        names_stay=dice.random() < 0.5,
    )
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@action(1.5)
def delete_device_claim(world: World, dice: random.Random) -> None:
    """A claim is deleted; it goes when nobody has reserved it any more."""
    etcd = world.servers.etcd
    keys = list(etcd.objects["resourceclaims"])
    if keys:
        world.servers.delete("resourceclaims", dice.choice(keys))


@action(1.5)
def change_slice(world: World, dice: random.Random) -> None:
    """A node has more devices, fewer, or none."""
    devices = world.extras["devices"]
    assert isinstance(devices, Devices)
    nodes = list(world.servers.etcd.objects["nodes"])
    if nodes:
        devices._publish(dice.choice(nodes)[1], dice.choice((0, 1, 2, 4)))


@action(1.0)
def change_device_claim(world: World, dice: random.Random) -> None:
    """Somebody else changes claims, so that our writes conflict."""
    etcd = world.servers.etcd
    for key in list(etcd.objects["resourceclaims"]):
        if dice.random() < 0.5:
            note = {"note": str(dice.random())}
            etcd.edit(
                "resourceclaims",
                key,
                lambda claim, note=note: claim["metadata"].setdefault("labels", {}).update(note),
            )


def _is_claim_write(replica: str, request: Request) -> bool:
    return request.resource == "resourceclaims" and request.is_write


@action(2.0)
def claim_writes_fail(world: World, dice: random.Random) -> None:
    """Writes of claims fail, before or after their effect."""
    fate, how = dice.choice(
        (
            (Fate(False, INTERNAL), "500, no effect"),
            (Fate(problem=INTERNAL), "500 after the effect"),
            (Fate(False, CONFLICT), "409"),
            (Fate(reset=True), "reset after the effect"),
            (Fate(False, hangs=True), "no answer, no effect"),
            (Fate(hangs=True), "no answer after the effect"),
        )
    )
    until_s = world.simulation.now_s + dice.choice((0.5, 2.0, 8.0))
    share = dice.choice((0.3, 1.0))
    label = f"write of a claim of devices: {how}"
    world.troubles.active.append(Trouble(label, share, until_s, _is_claim_write, fate))

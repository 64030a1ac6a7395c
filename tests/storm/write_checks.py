"""What is written is true: checked when a write has been carried out, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World


class WriteChecks:
    """Checks of what replicas write about pods."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._simulation = world.simulation
        self._bound_by: dict[str, str] = {}

    def refused(self, replica: Replica, request: Request) -> None:
        """I7: a pod behind a gate is not tried, and so not bound."""
        if request.verb == "bind":
            stored = self._world.servers.etcd.find("pods", request.key)
            meant = ((request.body or {}).get("metadata") or {}).get("uid")
            if stored is None or stored.data["metadata"]["uid"] != meant:
                return
            if stored.data["spec"].get("schedulingGates"):
                self._simulation.broken("I7", f"{replica.name} binds {request.name}: it is gated")

    def written(self, replica: Replica, request: Request) -> None:
        """Take in a write that was carried out."""
        if request.resource == "events":
            self._event(replica, request)
        elif request.resource == "pods":
            self._about_pod(replica, request)

    def _event(self, replica: Replica, request: Request) -> None:
        """I7: of a pod that waits nobody says that it is bound."""
        body = request.body
        if request.verb != "create" or body.get("reason") != "Scheduled":
            return
        about = body["regarding"]
        stored = self._world.servers.etcd.find("pods", (about["namespace"], about["name"]))
        if stored is None or stored.data["metadata"]["uid"] != about["uid"]:
            return
        if not stored.data["spec"].get("nodeName"):
            self._simulation.broken("I7", f"{replica.name} says of {about['name']}: Scheduled")

    def _about_pod(self, replica: Replica, request: Request) -> None:
        stored = self._world.servers.etcd.find("pods", request.key)
        if stored is None:
            return  # deleted by this
        uid = stored.data["metadata"]["uid"]
        meant = self._world.invariants.requests.meant.get((replica.name, request.verb, request.key))
        if meant != uid:
            # I1: a request about a pod is about no other one of its name.
            self._simulation.broken("I1", f"{replica.name} sends {request}, and means {meant}")
        if request.verb == "bind":
            self._bound_by[uid] = replica.name
            if not replica.is_ready or not all(each.has_synced for each in replica.informers()):
                self._simulation.broken("I2", f"{replica.name} binds before it knows everything")
        elif self._bound_by.get(uid) == replica.name and _is_unscheduled(request):
            # I7: of a pod that is bound nobody says that it waits.
            self._simulation.broken("I7", f"{replica.name}: {request.name} is unschedulable")


def _is_unscheduled(request: Request) -> bool:
    conditions: Any = ()
    if request.verb == "status":
        conditions = request.body.get("status", {}).get("conditions") or ()
    told = {(each.get("type"), each.get("status")) for each in conditions}
    return ("PodScheduled", "False") in told

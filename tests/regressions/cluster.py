"""The API server's side of a scenario: objects, requests that can be held back, and watches.

A change is told to the watches only when somebody takes it from them, so a scenario decides when
the scheduler hears of what, and what it never hears of.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from cache.objects import Pod
from scheduler import kinds
from scheduler.client.codec import Decoder
from scheduler.client.errors import ApiError
from scheduler.informers.watch_events import EventType
from tests.fakes.api_objects import RESOURCES, ApiProblemError, ObjectLog, merge
from tests.fakes.refusals import lost
from tests.fakes.refusals import refusal as refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.kinds import ResourceKind, WatchedKind
    from tests.fakes.api_objects import Change, JsonObject

GRACE_S = 30.0
"""How long a pod that runs may take to end: the API server's default."""

NAMESPACE = "default"

KINDS: tuple[WatchedKind[Any], ...] = (
    kinds.NAMESPACES,
    kinds.SERVICES,
    kinds.REPLICA_SETS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.STORAGE_CLASSES,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.X_POD_GROUPS,
    kinds.NODES,
    kinds.PODS,
)
"""What the cluster has and its watches tell, in the order in which they are heard."""

_DECODERS: dict[str, Decoder[Any]] = {kind.resource: Decoder(kind.struct) for kind in KINDS}
_VERBS = ("binds", "statuses", "deletes", "events", "volumes", "connections")


class Cluster:
    """Pods, nodes and all else, and the requests that a scheduler makes about them.

    Parameters
    ----------
    wall_clock
        Seconds since the epoch.

    Attributes
    ----------
    binds, deletes
        Name of the pod (and of the node) of every request, in order.

    Notes
    -----
    *Concurrency*: confined to the loop.
    """

    def __init__(self, wall_clock: Callable[[], float]) -> None:
        self._wall_clock = wall_clock
        self._log = ObjectLog(self._changed)
        self._made: Counter[str] = Counter()
        self._namespaces: dict[tuple[str, str], str] = {}
        self._untold: dict[str, deque[tuple[EventType, Any]]] = {
            resource: deque() for resource in _DECODERS
        }
        self._held_watches: set[str] = set()
        self._held: dict[str, set[str]] = {verb: set() for verb in _VERBS}
        self._gates: list[tuple[str, asyncio.Future[int]]] = []
        self._refusals: dict[str, deque[tuple[int, int]]] = {verb: deque() for verb in _VERBS}
        self._always_refused: dict[str, dict[str, int]] = {verb: {} for verb in _VERBS}
        self._lost_answers: set[str] = set()
        self._saved_version = 0
        self.binds: list[tuple[str, str]] = []
        self.deletes: list[str] = []

    # --- what others do -----------------------------------------------------------------------

    def create(self, resource: str, name: str, obj: JsonObject) -> None:
        """Create an object; the second one of its name gets the UID ``name#2``."""
        self._made[f"{resource}/{name}"] += 1
        count = self._made[f"{resource}/{name}"]
        uid = name if count == 1 else f"{name}#{count}"
        obj.setdefault("metadata", {}).update(name=name, uid=uid)
        self._namespaces[resource, name] = obj["metadata"].get("namespace", NAMESPACE)
        self._log.create(resource, obj)

    def exists(self, resource: str, name: str) -> bool:
        """Tell whether there is an object of that name."""
        return any(each["metadata"]["name"] == name for each in self._log.objects(resource))

    def change(self, resource: str, name: str, patch: JsonObject) -> None:
        """Merge a patch into an object."""
        self._log.edit(resource, self._key(resource, name), lambda obj: merge(obj, patch))

    def remove(self, resource: str, name: str) -> None:
        """Let an object be gone at once."""
        self._log.delete(resource, self._key(resource, name))

    def ask_to_go(self, name: str) -> None:
        """Delete a pod as a user does: one that runs, or has a finalizer, stays for a while."""
        pod = self._log.get("pods", self._key("pods", name))
        metadata = pod["metadata"]
        if not pod["spec"].get("nodeName") and not metadata.get("finalizers"):
            self.remove("pods", name)
        elif "deletionTimestamp" not in metadata:
            until = datetime.fromtimestamp(self._wall_clock() + GRACE_S, UTC)
            stamp = until.strftime("%Y-%m-%dT%H:%M:%SZ")
            self.change("pods", name, {"metadata": {"deletionTimestamp": stamp}})

    def raw(self, resource: str, name: str) -> JsonObject:
        """Return an object as it is stored."""
        return self._log.get(resource, self._key(resource, name))

    def pods(self) -> list[JsonObject]:
        """Return all pods as they are stored."""
        return self.all_raw("pods")

    def all_raw(self, resource: str) -> list[JsonObject]:
        """Return all objects of a resource as they are stored."""
        return self._log.objects(resource)

    @property
    def version(self) -> str:
        """The version of the last change."""
        return str(self._log.version)

    def objects(self, resource: str) -> list[Any]:
        """Return all objects of a resource as the scheduler reads them."""
        decode = _DECODERS[resource].decode
        return [decode(msgspec.json.encode(each)) for each in self._log.objects(resource)]

    def save(self) -> None:
        """Make the backup that :meth:`restore` goes back to."""
        self._saved_version = self._log.version

    def restore(self) -> None:
        """Go back to the backup: nothing since then has ever been."""
        self._log.rewind(self._saved_version)
        for untold in self._untold.values():
            untold.clear()

    # --- the watches --------------------------------------------------------------------------

    def _changed(self, resource: str, change: Change) -> None:
        obj = _DECODERS[resource].decode(msgspec.json.encode(change.obj))
        self._untold[resource].append((EventType(change.type), obj))

    def hold_watch(self, resource: str) -> None:
        """Keep what changes back."""
        self._held_watches.add(resource)

    def release_watch(self, resource: str) -> None:
        """Tell everything that was kept back, and what comes."""
        self._held_watches.discard(resource)

    def lose_events(self, resource: str) -> None:
        """Forget what was kept back: nobody will ever be told."""
        self._untold[resource].clear()

    def take_events(self, resource: str) -> list[tuple[EventType, Any]]:
        """Return what the watch tells now."""
        if resource in self._held_watches:
            return []
        events = list(self._untold[resource])
        self._untold[resource].clear()
        return events

    # --- faults -------------------------------------------------------------------------------

    def hold(self, verb: str, name: str = "") -> None:
        """Let requests wait before they are taken up: all of a kind, or those about one pod."""
        self._held[verb].add(name)

    def release(self, verb: str, refusal: int = 0) -> None:
        """Take up the requests that wait, and those to come; or refuse the former."""
        self._held[verb].clear()
        for waiting_verb, gate in self._gates:
            if waiting_verb == verb and not gate.done():
                gate.set_result(refusal)

    def accept_all(self) -> None:
        """Refuse no request any more."""
        for refusals in self._refusals.values():
            refusals.clear()

    def refuse_next(self, verb: str, status: int, retry_after_s: int = 0) -> None:
        """Refuse one request with an HTTP status, and maybe a Retry-After."""
        self._refusals[verb].append((status, retry_after_s))

    def refuse(self, verb: str, name: str, status: int) -> None:
        """Refuse all requests about a pod with an HTTP status; 0 for no longer."""
        self._always_refused[verb][name] = status

    def lose_answers(self, name: str) -> None:
        """Carry out all bindings of a pod, and answer none of them."""
        self._lost_answers.add(name)

    async def _take_up(self, verb: str, name: str) -> None:
        refusal = retry_after_s = 0
        await asyncio.sleep(0)
        if self._held[verb] & {name, ""}:
            gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._gates.append((verb, gate))
            refusal = await gate
        elif self._refusals[verb]:
            refusal, retry_after_s = self._refusals[verb].popleft()
        refusal = refusal or self._always_refused[verb].get(name, 0)
        if refusal:
            details = {"retryAfterSeconds": retry_after_s} if retry_after_s else None
            message = "as the scenario wants it"
            raise refused("POST", refusal, message, reason="Refused", details=details)

    # --- the scheduler's requests -------------------------------------------------------------

    async def bind_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        *,
        resource_version: str = "",
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Bind a pod as kube-apiserver does, once there is a connection."""
        if self._held["connections"]:
            await self._take_up("connections", name)
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent: it is not wanted any more")
        self.binds.append((uid, node_name))
        await self._take_up("binds", name)
        pod = self._get(name)
        problem = ""
        if pod["metadata"]["uid"] != uid:
            problem = "another UID"
        elif "deletionTimestamp" in pod["metadata"]:
            problem = "is being deleted"
        elif pod["spec"].get("nodeName"):
            problem = "is assigned already"
        elif pod["spec"].get("schedulingGates"):
            problem = "has scheduling gates"
        if problem:
            raise ApiError(409, "Conflict", f"pod {name} {problem}")
        self.assign(name, node_name)
        if name in self._lost_answers:
            raise lost("POST")

    def assign(self, name: str, node_name: str) -> None:
        """Bind a pod, whoever asks."""
        now = datetime.fromtimestamp(self._wall_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        status = {"nominatedNodeName": None, "conditions": [scheduled]}
        self.change("pods", name, {"spec": {"nodeName": node_name}, "status": status})

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod as it is stored."""
        await asyncio.sleep(0)
        return self.pod(namespace, name)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod as it is stored."""
        if not self.exists("pods", name):
            return None
        return Decoder(Pod).decode(msgspec.json.encode(self.raw("pods", name)))

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        """Change a pod's status."""
        await self._take_up("statuses", name)
        pod = self._get(name)
        metadata = pod["metadata"]
        if metadata["uid"] != uid:
            raise ApiError(422, "Invalid", "metadata.uid: field is immutable")
        if resource_version not in ("", metadata["resourceVersion"]):
            raise ApiError(409, "Conflict", f"pod {name} has been modified")
        if patch.get("nominatedNodeName") and pod["spec"].get("nodeName"):
            raise ApiError(422, "Invalid", "status.nominatedNodeName: the pod is bound already")
        self.change("pods", name, {"status": dict(patch)})

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Ask for a pod's deletion."""
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent: it is not wanted any more")
        self.deletes.append(uid)
        await self._take_up("deletes", name)
        if self._get(name)["metadata"]["uid"] != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition is another one")
        self.ask_to_go(name)

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> object:
        """Take an Event; nobody reads it."""
        await self._take_up("events", body["regarding"]["name"])
        return body["metadata"]["name"]

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Take a change of an Event, which is named after its pod."""
        await self._take_up("events", name.rpartition(".")[0])

    async def get_object(self, kind: ResourceKind[Any], namespace: str, name: str) -> Any:
        """Return an object as it is stored."""
        await asyncio.sleep(0)
        if not self.exists(kind.name, name):
            return None
        return _DECODERS[kind.name].decode(msgspec.json.encode(self.raw(kind.name, name)))

    async def patch_object(
        self, kind: ResourceKind[Any], namespace: str, name: str, patch: Mapping[str, Any]
    ) -> Any:
        """Change an object, if it is still the one that was read."""
        await self._take_up("volumes", name)
        stored = self._get(name, kind.name)["metadata"]
        for field in ("uid", "resourceVersion"):
            if patch["metadata"].get(field, stored[field]) != stored[field]:
                raise ApiError(409, "Conflict", f"{kind.name} {name} has been modified")
        self.change(kind.name, name, _without_version(patch))
        return await self.get_object(kind, namespace, name)

    def _get(self, name: str, resource: str = "pods") -> JsonObject:
        try:
            return self.raw(resource, name)
        except ApiProblemError as problem:
            raise ApiError(problem.status, problem.reason, problem.message) from None

    def _key(self, resource: str, name: str) -> tuple[str, str]:
        if not RESOURCES[resource].namespaced:
            return "", name
        return self._namespaces.get((resource, name), NAMESPACE), name


def _without_version(patch: Mapping[str, Any]) -> JsonObject:
    metadata = {key: value for key, value in patch["metadata"].items() if key != "resourceVersion"}
    return {**patch, "metadata": metadata}

"""What the fake API server knows: objects, one version counter and the log of every change.

Nothing is ever forgotten, so that any past state can be served again; :meth:`ObjectLog.compact`
only moves the mark below which a watch may not start. Stored objects are never changed in place.

Concurrency: loop-confined, like the server that owns it.
"""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JsonObject: TypeAlias = "dict[str, Any]"
Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

CREATED_AT: Final = "2026-01-01T00:00:00Z"

MERGE_KEYS: Final = {"conditions": "type", "reservedFor": "uid"}
"""Lists that a strategic merge patch merges, and the field that names an item of each.

*Source*: patchMergeKey in the types of core/v1 and resource/v1; others are replaced here.
"""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that the server serves."""

    name: str
    prefix: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """``v1``, or group and version."""
        return self.prefix.removeprefix("/apis/").removeprefix("/api/")


RESOURCES: Final[Mapping[str, Resource]] = {
    resource.name: resource
    for resource in (
        Resource("pods", "/api/v1", "Pod", namespaced=True),
        Resource("nodes", "/api/v1", "Node", namespaced=False),
        Resource("namespaces", "/api/v1", "Namespace", namespaced=False),
        Resource("services", "/api/v1", "Service", namespaced=True),
        Resource("replicationcontrollers", "/api/v1", "ReplicationController", namespaced=True),
        Resource("persistentvolumes", "/api/v1", "PersistentVolume", namespaced=False),
        Resource("persistentvolumeclaims", "/api/v1", "PersistentVolumeClaim", namespaced=True),
        Resource("replicasets", "/apis/apps/v1", "ReplicaSet", namespaced=True),
        Resource("statefulsets", "/apis/apps/v1", "StatefulSet", namespaced=True),
        Resource("storageclasses", "/apis/storage.k8s.io/v1", "StorageClass", namespaced=False),
        Resource("csinodes", "/apis/storage.k8s.io/v1", "CSINode", namespaced=False),
        Resource("csidrivers", "/apis/storage.k8s.io/v1", "CSIDriver", namespaced=False),
        Resource(
            "csistoragecapacities",
            "/apis/storage.k8s.io/v1",
            "CSIStorageCapacity",
            namespaced=True,
        ),
        Resource("poddisruptionbudgets", "/apis/policy/v1", "PodDisruptionBudget", namespaced=True),
        Resource("events", "/apis/events.k8s.io/v1", "Event", namespaced=True),
        Resource("leases", "/apis/coordination.k8s.io/v1", "Lease", namespaced=True),
        Resource("podgroups", "/apis/scheduling.x-k8s.io/v1alpha1", "PodGroup", namespaced=True),
        Resource(
            "schedulingprofiles",
            "/apis/scheduling.berth.dev/v1alpha1",
            "SchedulingProfile",
            namespaced=False,
        ),
    )
}


def discovery(path: str) -> JsonObject | None:
    """Return what the server says of its groups, or of a group's resources; None elsewhere."""
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions: dict[str, JsonObject] = {}
        for each in RESOURCES.values():
            if "/" in each.api_version:
                group, _, version = each.api_version.partition("/")
                versions[group] = {"groupVersion": each.api_version, "version": version}
        groups = [
            {"name": group, "versions": [version], "preferredVersion": version}
            for group, version in versions.items()
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    resources = [
        {
            "name": each.name,
            "singularName": each.kind.lower(),
            "kind": each.kind,
            "namespaced": each.namespaced,
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }
        for each in RESOURCES.values()
        if each.prefix == path
    ]
    return {"kind": "APIResourceList", "resources": resources} if resources else None


class ApiProblemError(Exception):
    """A request that the server refuses, as the Status it answers with."""

    def __init__(
        self, status: int, reason: str, message: str, *, retry_after_s: int | None = None
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    def body(self) -> JsonObject:
        """Return the Status object."""
        details = {} if self.retry_after_s is None else {"retryAfterSeconds": self.retry_after_s}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "reason": self.reason,
            "message": self.message,
            "details": details,
            "code": self.status,
        }


@dataclass(slots=True)
class Change:
    """One entry of the log.

    Attributes
    ----------
    obj
        The new state; for a deletion the last state, with the deletion's version.
    old
        The state before; None for a creation.
    dropped
        No watch is told: a lost event.
    """

    version: int
    type: str
    obj: JsonObject
    old: JsonObject | None
    dropped: bool = False
    _line: bytes = field(default=b"", repr=False)

    def line(self) -> bytes:
        """Return the event as a line of a watch, encoded once for all watchers."""
        if not self._line:
            self._line = watch_line(self.type, self.obj)
        return self._line


def watch_line(event_type: str, obj: JsonObject) -> bytes:
    """Return one line of a watch."""
    return msgspec.json.encode({"type": event_type, "object": obj}) + b"\n"


def key_of(obj: JsonObject) -> Key:
    """Return namespace and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def merge(target: JsonObject, patch: JsonObject, *, strategic: bool = True) -> None:
    """Merge `patch` into `target`: None removes; with `strategic`, some lists merge by a key."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(name), dict):
                target[name] = {}
            merge(target[name], value, strategic=strategic)
        elif strategic and name in MERGE_KEYS:
            target[name] = _merged_list(target.get(name) or [], value, MERGE_KEYS[name])
        else:
            target[name] = value


def _merged_list(items: list[JsonObject], patch: list[JsonObject], by: str) -> list[JsonObject]:
    merged = {item[by]: item for item in items}
    for item in patch:
        if item.get("$patch") == "delete":
            merged.pop(item[by], None)
        else:
            merged[item[by]] = {**merged.get(item[by], {}), **item}
    return list(merged.values())


class ObjectLog:
    """Objects of all resources under one version counter, with their whole history.

    Parameters
    ----------
    on_change
        Told of each change (resource, change) when it has happened.
    """

    def __init__(self, on_change: Callable[[str, Change], None]) -> None:
        self._on_change = on_change
        self.version = 1
        self.compacted_version = 0
        self._changes: dict[str, list[Change]] = {name: [] for name in RESOURCES}
        self._objects: dict[str, dict[Key, JsonObject]] = {name: {} for name in RESOURCES}

    def get(self, resource: str, key: Key) -> JsonObject:
        """Return an object; raises ApiProblemError 404."""
        try:
            return self._objects[resource][key]
        except KeyError:
            raise ApiProblemError(404, "NotFound", f'{resource} "{key[1]}" not found') from None

    def objects(self, resource: str, *, at: int | None = None) -> list[JsonObject]:
        """Return all objects sorted by key, now or as they were at version `at`."""
        state = self._objects[resource]
        if at is not None and at < self.version:
            state = {}
            for change in self._changes[resource]:
                if change.version > at:
                    break
                if change.type == "DELETED":
                    state.pop(key_of(change.obj), None)
                else:
                    state[key_of(change.obj)] = change.obj
        return [state[key] for key in sorted(state)]

    def changes(self, resource: str) -> list[Change]:
        """Return the live log of one resource, oldest first."""
        return self._changes[resource]

    def create(self, resource: str, obj: JsonObject) -> JsonObject:
        """Add an object; raises ApiProblemError 409 when the name is taken."""
        description = RESOURCES[resource]
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        if "name" not in metadata and "generateName" in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        if description.namespaced:
            metadata.setdefault("namespace", "default")
        else:
            metadata.pop("namespace", None)
        key = key_of(obj)
        if key in self._objects[resource]:
            raise ApiProblemError(409, "AlreadyExists", f'{resource} "{key[1]}" already exists')
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", CREATED_AT)
        obj.setdefault("kind", description.kind)
        obj.setdefault("apiVersion", description.api_version)
        return self._append(resource, "ADDED", obj, None)

    def update(self, resource: str, obj: JsonObject) -> JsonObject:
        """Replace an object; raises ApiProblemError 404, or 409 for an old version."""
        obj = copy.deepcopy(obj)
        if RESOURCES[resource].namespaced:
            obj["metadata"].setdefault("namespace", "default")
        old = self.get(resource, key_of(obj))
        metadata, old_metadata = obj["metadata"], old["metadata"]
        for name in ("uid", "resourceVersion"):
            if metadata.setdefault(name, old_metadata[name]) != old_metadata[name]:
                raise ApiProblemError(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {resource} "{metadata["name"]}": '
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again",
                )
        metadata.setdefault("creationTimestamp", old_metadata["creationTimestamp"])
        return self._append(resource, "MODIFIED", obj, old)

    def edit(self, resource: str, key: Key, edit: Callable[[JsonObject], None]) -> JsonObject:
        """Replace an object by what `edit` makes of a copy; raises ApiProblemError 404.

        As on the real server, an edit that changes nothing makes no new version.
        """
        old = self.get(resource, key)
        obj = copy.deepcopy(old)
        edit(obj)
        if obj == old:
            return old
        return self._append(resource, "MODIFIED", obj, old)

    def delete(self, resource: str, key: Key) -> JsonObject:
        """Remove an object; raises ApiProblemError 404."""
        old = self.get(resource, key)
        return self._append(resource, "DELETED", copy.deepcopy(old), old)

    def compact(self) -> None:
        """Let no watch start before the present version, and no list continue from before it."""
        self.compacted_version = self.version

    def rewind(self, version: int) -> None:
        """Go back to `version`, as an etcd restored from a backup does."""
        for resource, changes in self._changes.items():
            self._objects[resource] = {
                key_of(obj): obj for obj in self.objects(resource, at=version)
            }
            changes[:] = [change for change in changes if change.version <= version]
        self.version = version
        self.compacted_version = min(self.compacted_version, version)

    def _append(
        self, resource: str, event_type: str, obj: JsonObject, old: JsonObject | None
    ) -> JsonObject:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        change = Change(self.version, event_type, obj, old)
        self._changes[resource].append(change)
        if event_type == "DELETED":
            del self._objects[resource][key_of(obj)]
        else:
            self._objects[resource][key_of(obj)] = obj
        self._on_change(resource, change)
        return obj

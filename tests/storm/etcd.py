"""What the cluster has: objects under one version counter, and every change since a compaction.

Stored objects are never changed in place; each is encoded once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.fakes.api_objects import RESOURCES, ApiProblemError, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

_MORE: Final = (
    Resource("volumeattachments", "/apis/storage.k8s.io/v1", "VolumeAttachment", namespaced=False),
    Resource("deviceclasses", "/apis/resource.k8s.io/v1", "DeviceClass", namespaced=False),
    Resource("resourceslices", "/apis/resource.k8s.io/v1", "ResourceSlice", namespaced=False),
    Resource("resourceclaims", "/apis/resource.k8s.io/v1", "ResourceClaim", namespaced=True),
)

ALL: Final[Mapping[str, Resource]] = {**RESOURCES, **{each.name: each for each in _MORE}}

RECENT: Final = 150

_decode = msgspec.json.decode
_encode = msgspec.json.encode


@dataclass(slots=True)
class Stored:
    """An object as it is stored."""

    data: dict[str, Any]
    raw: bytes
    version: int

    def copy(self) -> dict[str, Any]:
        """Return the object, to be changed."""
        copied: dict[str, Any] = _decode(self.raw)
        return copied


@dataclass(slots=True)
class Change:
    """One change.

    Attributes
    ----------
    type
        ``ADDED``, ``MODIFIED`` or ``DELETED``.
    stored
        The new state; of a deletion the last one, with the deletion's version.
    """

    version: int
    type: str
    key: Key
    stored: Stored
    line: bytes


def conflict(resource: str, name: str, why: str) -> ApiProblemError:
    """Return a refusal for what has changed meanwhile."""
    return ApiProblemError(
        409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    )


class Etcd:
    """All objects.

    Parameters
    ----------
    on_change
        Called with the resource of each change.
    stamp
        Returns the time for ``creationTimestamp``.
    """

    def __init__(self, on_change: Callable[[str, Change], None], stamp: Callable[[], str]) -> None:
        self._on_change = on_change
        self._stamp = stamp
        self.version = 1
        self.compacted = 1
        self.objects: dict[str, dict[Key, Stored]] = {name: {} for name in ALL}
        self.changes: dict[str, list[Change]] = {name: [] for name in ALL}
        self.recent: dict[str, deque[Change]] = {name: deque(maxlen=RECENT) for name in ALL}
        """The last changes, which API servers still have after a compaction."""
        self.lost: dict[str, int] = dict.fromkeys(ALL, 0)
        """Version of the last change of each resource that a compaction has taken away."""
        self._made = 0

    def get(self, resource: str, key: Key) -> Stored:
        """Return an object; raises ApiProblemError 404."""
        stored = self.objects[resource].get(key)
        if stored is None:
            raise ApiProblemError(404, "NotFound", f'{resource} "{key[1]}" not found')
        return stored

    def find(self, resource: str, key: Key) -> Stored | None:
        """Return an object, or None."""
        return self.objects[resource].get(key)

    def create(self, resource: str, obj: dict[str, Any]) -> Stored:
        """Add an object; raises ApiProblemError 409 when the name is taken."""
        description = ALL[resource]
        metadata = obj["metadata"]
        if description.namespaced:
            metadata.setdefault("namespace", "default")
        self._made += 1
        if "name" not in metadata:
            metadata["name"] = f"{metadata['generateName']}{self._made:x}"
        key = (metadata.get("namespace", ""), metadata["name"])
        if key in self.objects[resource]:
            raise ApiProblemError(409, "AlreadyExists", f'{resource} "{key[1]}" already exists')
        metadata["uid"] = f"{description.kind.lower()}-{self._made:08x}"
        metadata["creationTimestamp"] = self._stamp()
        obj["kind"], obj["apiVersion"] = description.kind, description.api_version
        return self._append(resource, "ADDED", key, obj)

    def replace(self, resource: str, key: Key, obj: dict[str, Any]) -> Stored:
        """Replace an object; one that is equal stays as it is."""
        old = self.get(resource, key)
        obj["metadata"]["resourceVersion"] = old.data["metadata"]["resourceVersion"]
        if obj == old.data:
            return old
        return self._append(resource, "MODIFIED", key, obj)

    def edit(self, resource: str, key: Key, edit: Callable[[dict[str, Any]], object]) -> Stored:
        """Replace an object by what `edit` makes of a copy; raises ApiProblemError 404."""
        obj = self.get(resource, key).copy()
        edit(obj)
        return self.replace(resource, key, obj)

    def delete(self, resource: str, key: Key) -> Stored:
        """Remove an object; raises ApiProblemError 404."""
        return self._append(resource, "DELETED", key, self.get(resource, key).copy())

    def compact(self) -> None:
        """Forget all changes so far."""
        self.compacted = self.version
        for resource, changes in self.changes.items():
            if changes:
                self.lost[resource] = changes[-1].version
                changes.clear()

    def _append(self, resource: str, kind: str, key: Key, obj: dict[str, Any]) -> Stored:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        raw = _encode(obj)
        stored = Stored(obj, raw, self.version)
        if kind == "DELETED":
            del self.objects[resource][key]
        else:
            self.objects[resource][key] = stored
        if resource == "events":
            return stored  # nobody watches them
        line = b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)
        change = Change(self.version, kind, key, stored, line)
        self.changes[resource].append(change)
        self.recent[resource].append(change)
        self._on_change(resource, change)
        return stored

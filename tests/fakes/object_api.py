"""The API server's side of objects that are read, patched and watched, in memory.

Objects are JSON, as on the wire: fields that nobody here knows stay. What is written is told to
the watchers only when the test lets the watch go on.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from scheduler.client.codec import Decoder
from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.kinds import ResourceKind

T = TypeVar("T", bound=msgspec.Struct)


class FakeObjectApi:
    """Some objects of some kinds, with resourceVersions.

    Attributes
    ----------
    faults
        For each PATCH, in order: an error that it fails with before it is carried out; a pair of
        an error and True for one that is carried out all the same; or None.
    patches
        Kind, namespace, name and body of every PATCH.
    requests
        Verb, kind (with the subresource) and name of every write.
    patched
        Set at each PATCH that was carried out.
    """

    def __init__(self) -> None:
        self.faults: deque[ApiError | tuple[ApiError, bool] | None] = deque()
        self.patches: list[tuple[str, str, str, Mapping[str, Any]]] = []
        self.patched = asyncio.Event()
        self.requests: list[tuple[str, str, str]] = []
        self.pod_statuses: list[tuple[str, Mapping[str, Any]]] = []
        self._objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._version = 100
        self._watches: dict[str, tuple[ResourceKind[Any], Callable[[Any, Any], None]]] = {}
        self._seen: dict[tuple[str, str, str], Any] = {}
        self._held: deque[tuple[str, str, str]] | None = None

    # --- the cluster --------------------------------------------------------------------------

    def put(self, kind: ResourceKind[T], namespace: str, name: str, obj: dict[str, Any]) -> None:
        """Create or replace an object, as another client of the API does."""
        self._version += 1
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        metadata |= {"name": name, "resourceVersion": str(self._version)}
        metadata.setdefault("uid", f"uid-{name}")
        if namespace:
            metadata["namespace"] = namespace
        self._objects[(kind.name, namespace, name)] = obj
        self._tell((kind.name, namespace, name))

    def change(self, kind: ResourceKind[T], namespace: str, name: str, patch: Any) -> None:
        """Merge a patch into an object, as another client of the API does."""
        self.put(kind, namespace, name, _merged(self.raw(kind, namespace, name), patch))

    def delete(self, kind: ResourceKind[T], namespace: str, name: str) -> None:
        """Delete an object."""
        del self._objects[(kind.name, namespace, name)]
        self._tell((kind.name, namespace, name))

    def raw(self, kind: ResourceKind[T], namespace: str, name: str) -> dict[str, Any]:
        """Return an object with all its fields."""
        return self._objects[(kind.name, namespace, name)]

    # --- the watch ----------------------------------------------------------------------------

    def watch(self, kind: ResourceKind[T], take: Callable[[T | None, T | None], None]) -> None:
        """Tell ``take`` of every change of a kind, old and new."""
        self._watches[kind.name] = (kind, take)

    def hold_watches(self) -> None:
        """Keep changes back until :meth:`release_watches`."""
        self._held = deque()

    def release_watches(self) -> None:
        """Tell all changes that were kept back."""
        held, self._held = self._held or (), None
        for key in held:
            self._tell(key)

    def _tell(self, key: tuple[str, str, str]) -> None:
        if self._held is not None:
            self._held.append(key)
            return
        watched = self._watches.get(key[0])
        if watched is None:
            return
        kind, take = watched
        raw = self._objects.get(key)
        new = None if raw is None else Decoder(kind.struct).decode(msgspec.json.encode(raw))
        old = self._seen.pop(key, None)
        if new is not None:
            self._seen[key] = new
        if old is not None or new is not None:
            take(old, new)

    # --- the client's side --------------------------------------------------------------------

    async def get_object(self, kind: ResourceKind[T], namespace: str, name: str) -> T | None:
        await asyncio.sleep(0)
        raw = self._objects.get((kind.name, namespace, name))
        return None if raw is None else Decoder(kind.struct).decode(msgspec.json.encode(raw))

    async def patch_object(
        self,
        kind: ResourceKind[T],
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        strategic: bool = False,
    ) -> T:
        self.patches.append((kind.name, namespace, name, patch))
        fault = await self._begun("PATCH", kind, subresource, name)
        key = (kind.name, namespace, name)
        raw = self._objects.get(key)
        if raw is None:
            raise ApiError(404, "NotFound", f'{kind.name} "{name}" not found')
        wanted = patch["metadata"].get("resourceVersion", raw["metadata"]["resourceVersion"])
        if wanted != raw["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        if kind.name == "resourceclaims":
            kept = {"metadata", "status"} if subresource else patch.keys() - {"status"}
            patch = {part: value for part, value in patch.items() if part in kept}
        merged = _merged(raw, _without_directives(raw, patch) if strategic else patch)
        if merged != raw:
            self.put(kind, namespace, name, merged)
        self.patched.set()
        if fault is not None:
            raise fault[0]
        return Decoder(kind.struct).decode(msgspec.json.encode(self._objects[key]))

    async def create_object(
        self, kind: ResourceKind[T], namespace: str, body: Mapping[str, Any]
    ) -> T:
        name = body["metadata"]["name"]
        fault = await self._begun("POST", kind, "", name)
        key = (kind.name, namespace, name)
        if key in self._objects:
            raise ApiError(409, "AlreadyExists", f'{kind.name} "{name}" already exists')
        self.put(kind, namespace, name, dict(body))
        if fault is not None:
            raise fault[0]
        return Decoder(kind.struct).decode(msgspec.json.encode(self._objects[key]))

    async def delete_object(
        self, kind: ResourceKind[T], namespace: str, name: str, uid: str
    ) -> None:
        fault = await self._begun("DELETE", kind, "", name)
        raw = self._objects.get((kind.name, namespace, name))
        if raw is None:
            raise ApiError(404, "NotFound", f'{kind.name} "{name}" not found')
        if raw["metadata"]["uid"] != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition differs")
        self.delete(kind, namespace, name)
        if fault is not None:
            raise fault[0]

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: Mapping[str, Any]
    ) -> None:
        await asyncio.sleep(0)
        self.requests.append(("PATCH", "pods/status", name))
        self.pod_statuses.append((uid, patch))

    async def _begun(
        self, verb: str, kind: ResourceKind[T], subresource: str, name: str
    ) -> tuple[ApiError, bool] | None:
        """Note a write; raise its error if it is not carried out, else return its fault."""
        await asyncio.sleep(0)
        path = f"{kind.name}/{subresource}" if subresource else kind.name
        self.requests.append((verb, path, name))
        fault = self.faults.popleft() if self.faults else None
        if isinstance(fault, ApiError):
            raise fault
        return fault


def _without_directives(raw: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a merge patch that does what a strategic one does.

    Items of lists are deleted by UID, and conditions are merged by type.
    """
    plain: dict[str, Any] = {}
    for key, value in patch.items():
        held = raw.get(key) if isinstance(raw, dict) else None
        if isinstance(value, dict):
            plain[key] = _without_directives(held or {}, value)
        elif isinstance(value, list) and all("type" in item for item in value):
            by_type = {item["type"]: item for item in held or ()}
            for item in value:
                by_type[item["type"]] = {**by_type.get(item["type"], {}), **item}
            plain[key] = list(by_type.values())
        elif isinstance(value, list):
            gone = {item["uid"] for item in value if item.get("$patch") == "delete"}
            plain[key] = [item for item in held or () if item["uid"] not in gone] or None
        else:
            plain[key] = value
    return plain


def _merged(target: Any, patch: Any) -> Any:
    """Return a JSON merge patch (RFC 7386) applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged

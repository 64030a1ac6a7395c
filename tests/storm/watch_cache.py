"""What a simulated API server keeps for each resource and watch, and what it says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.api_objects import ApiProblemError, watch_line
from tests.storm.etcd import ALL, Change, Key, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storm.network import Connection
    from tests.storm.requests import Request


@dataclass(slots=True, eq=False)
class Watch:
    """A watch of one replica.

    Attributes
    ----------
    position
        Version up to which it has been told of changes.
    drop
        Events that it will not be told of: types.
    deaf_until_s
        Until when it is told of nothing, and never of what happens meanwhile.
    """

    connection: Connection
    resource: str
    position: int
    drop: list[str] = field(default_factory=list)
    deaf_until_s: float = 0.0
    is_over: bool = False


@dataclass(slots=True)
class ResourceCache:
    """What one server knows of one resource."""

    objects: dict[Key, Stored] = field(default_factory=dict)
    position: int = 1
    is_expecting: bool = False
    watches: list[Watch] = field(default_factory=list)
    waiting: list[tuple[int, float, Callable[[bool], None]]] = field(default_factory=list)


def version_of(change: Change) -> int:
    """Return the version of a change."""
    return change.version


def selects(request: Request, key: Key) -> bool:
    """Return whether a request is about an object."""
    if request.namespace and key[0] != request.namespace:
        return False
    selector = request.query.get("fieldSelector", "")
    return not selector or selector == f"metadata.name={key[1]}"


def too_large(wanted: int, current: int) -> ApiProblemError:
    """Return the refusal of a version that is not reached yet."""
    return ApiProblemError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        retry_after_s=1,
    )


def bookmark(resource: str, version: int, *, is_end: bool = False) -> bytes:
    """Return the line of a bookmark."""
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if is_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    description = ALL[resource]
    obj: dict[str, Any] = {
        "kind": description.kind,
        "apiVersion": description.api_version,
        "metadata": metadata,
    }
    if resource == "pods":
        obj |= {"spec": {"containers": None}, "status": {}}
    return watch_line("BOOKMARK", obj)

"""Provide read-only access to the objects that the watches have received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Node, Pod
    from scheduler.informers.informer import Informer

T_co = TypeVar("T_co", covariant=True)


class WatchedObjects(Protocol[T_co]):
    """The latest versions of the objects of a kind that their watch brought. Any thread."""

    def get(self, namespace: str, name: str) -> T_co | None:
        """Return the one of this name, or None."""
        ...

    def get_by_uid(self, uid: str) -> T_co | None:
        """Return the one with this UID, or None."""
        ...

    def list(self) -> Sequence[T_co]:
        """Return all of them."""
        ...

    def staleness_s(self, now: float) -> float:
        """Return the seconds since the watch last said anything."""
        ...


class Watched(Protocol):
    """What the watches know: the objects themselves."""

    @property
    def pods(self) -> WatchedObjects[Pod]:
        """Pods."""

    @property
    def nodes(self) -> WatchedObjects[Node]:
        """Nodes."""

    @property
    def all(self) -> Sequence[Informer[Any]]:
        """Each informer once."""

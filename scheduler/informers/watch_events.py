"""Define the events of a watch, one struct for each type of event.

*Concurrency*: immutable.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from scheduler.client.codec import ObjectIdentity

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import PodMeta


class ObjectMetadata(Protocol):
    """The part of an object's metadata that list and watch live by.

    Namespaced objects have a ``namespace`` besides.
    """

    @property
    def name(self) -> str:
        """Unique in the namespace at any one time."""

    @property
    def uid(self) -> str:
        """Unique for ever."""

    @property
    def resource_version(self) -> str:
        """Grows with each change."""


class ApiObject(Protocol):
    """Anything that can be listed and watched."""

    @property
    def metadata(self) -> ObjectMetadata:
        """Who the object is."""


T = TypeVar("T", bound=ApiObject)
T_co = TypeVar("T_co", bound=ApiObject, covariant=True)


class ObjectKind(Protocol[T_co]):
    """What an informer must know of a kind: :class:`~scheduler.kinds.ResourceKind` does."""

    @property
    def name(self) -> str:
        """The resource's name: ``pods``."""

    @property
    def path(self) -> str:
        """Of the list over all namespaces."""

    @property
    def struct(self) -> type[T_co]:
        """What its objects are decoded to: a :class:`msgspec.Struct`."""

    @property
    def label_selector(self) -> str:
        """Which objects the API server sends; empty for all."""

    @property
    def unreadable(self) -> Callable[[PodMeta, str], T_co] | None:
        """Returns what stands for an object that cannot be decoded; None where nothing does."""


def namespace_of(obj: ApiObject) -> str:
    """Return the object's namespace, empty for a cluster-scoped one."""
    namespace: str = getattr(obj.metadata, "namespace", "")
    return namespace


class EventType(enum.Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class ObjectEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object came, changed or went; for DELETED, `object` is its last state."""

    type: EventType
    object: T


class BookmarkEvent(msgspec.Struct, frozen=True, gc=False):
    """All changes up to `resource_version` have been sent.

    With `initial_events_end`, all objects that existed have been sent, too.
    """

    resource_version: str
    initial_events_end: bool


class ErrorEvent(msgspec.Struct, frozen=True, gc=False):
    """The server ends the watch, with a Status; a `code` of 0 means that it gave none."""

    code: int
    reason: str
    message: str
    retry_after_s: float | None


class UnreadableEvent(msgspec.Struct, frozen=True, gc=False):
    """A line that costs itself and nothing else.

    Attributes
    ----------
    type
        None when not even that could be read: it may have been anything.
    identity
        With a uid; None when it could not be told which object it was about.
    problem
        For the log: what is wrong and, where that is known, at which path.
    """

    type: EventType | None
    identity: ObjectIdentity | None
    problem: str


WatchEvent: TypeAlias = ObjectEvent[T] | BookmarkEvent | ErrorEvent | UnreadableEvent

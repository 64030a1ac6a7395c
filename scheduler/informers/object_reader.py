"""Decode the bytes of one object into what an informer stores, or report why that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, cast

from cache.objects import ApiStruct, PodMeta
from scheduler.client.codec import Decoder, ObjectIdentity, UndecodableObjectError
from scheduler.informers.watch_events import ObjectKind, T, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec


class _MetadataOnly(ApiStruct, frozen=True):
    metadata: PodMeta = PodMeta()


_METADATA_ONLY: Final = Decoder(_MetadataOnly)

_PROBLEM_LIMIT: Final = 300
"""Characters of a problem that are kept: it may quote what somebody put into an object."""


class UnreadableObjectError(Exception):
    """An object cannot be kept.

    Attributes
    ----------
    identity
        Which object it is; None when that cannot be told.
    problem
        What is wrong, at most a few hundred characters.
    """

    def __init__(self, identity: ObjectIdentity, problem: str) -> None:
        super().__init__(identity, problem)
        self.identity = identity if identity.uid else None
        self.problem = shorten(problem)


class ObjectReader(Generic[T]):
    """Decode objects of one kind and trim them.

    Parameters
    ----------
    kind
        What to decode.
    transform
        Makes of an object what shall be kept of it; must leave name, namespace, uid and
        resourceVersion as they are.

    Attributes
    ----------
    struct
        What objects are decoded to.

    *Concurrency*: not thread-safe.
    """

    def __init__(self, kind: ObjectKind[T], transform: Callable[[T], T] | None = None) -> None:
        # No type can say both "a Struct" and "has metadata".
        self.struct = cast("type[Any]", kind.struct)
        self._decode = Decoder(self.struct).decode
        self._unreadable = kind.unreadable
        self._transform = transform

    def read(self, raw: bytes | msgspec.Raw) -> T:
        """Return the object.

        Raises
        ------
        UnreadableObjectError
            It does not decode and nothing can stand for it, `transform` fails on it, or it has no
            uid or name.
        """
        try:
            obj: T = self._decode(raw)
        except UndecodableObjectError as error:
            problem = shorten(f"{error.path}: {error.why}" if error.path else error.why)
            stand_in = self._stand_in(raw, problem)
            if stand_in is None:
                raise UnreadableObjectError(error.identity, problem) from error
            obj = stand_in
        return self.accept(obj)

    def _stand_in(self, raw: bytes | msgspec.Raw, problem: str) -> T | None:
        """Return what stands for an object that cannot be decoded, if its metadata can be."""
        if self._unreadable is None:
            return None
        try:
            return self._unreadable(_METADATA_ONLY.decode(raw).metadata, problem)
        except UndecodableObjectError:
            return None

    def accept(self, obj: T) -> T:
        """Return what is kept of an object that decoded; raises like `read`."""
        metadata = obj.metadata
        if not metadata.uid or not metadata.name:
            raise UnreadableObjectError(_identity_of(obj), "metadata has no uid or no name")
        if self._transform is not None:
            try:
                return self._transform(obj)
            except Exception as error:
                problem = f"transform: {type(error).__name__}: {error}"
                raise UnreadableObjectError(_identity_of(obj), problem) from error
        return obj


def shorten(text: str) -> str:
    """Return `text`, cut to what a log line can bear."""
    return text if len(text) <= _PROBLEM_LIMIT else text[:_PROBLEM_LIMIT] + "..."


def _identity_of(obj: T) -> ObjectIdentity:
    metadata = obj.metadata
    return ObjectIdentity(namespace_of(obj), metadata.name, metadata.uid, metadata.resource_version)

"""Objects as the API has them, overlaid with the changes that pending writes are expected to cause.

An assumption holds until the API reports a newer version of the object. It can therefore only be
made for the version that the API has. An object that the API returns for a write needs no
assumption: the watch delivers it.

*Source*: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go (1.36).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from cache.change_journal import ChangeJournal
from cache.resource_versions import INCOMPARABLE, parse_resource_version

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from cache.locks import MakeLock
    from cache.objects import PodMeta


class HasMeta(Protocol):
    """An object of the API."""

    @property
    def metadata(self) -> PodMeta:
        """The metadata that identifies the object."""


T = TypeVar("T", bound=HasMeta)
K = TypeVar("K", bound="Hashable")


class AssumeError(Exception):
    """An object cannot be assumed: it is gone, or the API has another version of it."""


class AssumeCache(Generic[K, T]):
    """The latest view of all objects of one kind.

    Parameters
    ----------
    kind
        The name of the objects in messages: ``persistentvolumes``.
    key
        Returns the key of an object.
    index
        Returns the value by which :meth:`by_index` finds an object; called with the latest view.
    make_lock
        Creates the lock.

    Notes
    -----
    *Concurrency*: thread-safe. Listeners are called on the thread that changed the object, after
    the change and without the lock.

    Invariant: an assumed object has the resourceVersion of the API's.
    """

    def __init__(
        self,
        kind: str,
        key: Callable[[T], K],
        index: Callable[[T], Hashable] | None = None,
        make_lock: MakeLock = threading.Lock,
    ) -> None:
        self.kind = kind
        self._key = key
        self._index = index
        self._journal: ChangeJournal[K] = ChangeJournal()
        self._latest_journal: ChangeJournal[K] = ChangeJournal()
        self._lock = make_lock()
        self._api: dict[K, T] = {}
        self._assumed: dict[K, T] = {}
        self._by_index: dict[Hashable, dict[K, T]] = {}
        self._listeners: dict[K, list[Callable[[], None]]] = {}

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: K) -> T | None:
        """Return the latest view of an object: the assumed version, else the API's version."""
        with self._lock:
            return self._assumed.get(key) or self._api.get(key)

    def get_api(self, key: K) -> T | None:
        """Return the API's version of an object, or None."""
        return self._api.get(key)

    @property
    def api_version(self) -> int:
        """Grows with every change of what :meth:`get_api` returns."""
        return self._journal.version

    def api_changes(self, since: int) -> tuple[int, frozenset[K] | None]:
        """Return the current :attr:`api_version`, and the keys changed in the API after ``since``.

        The keys are None when ``since`` is too long ago.

        *Cost*: proportional to the changes since.
        """
        with self._lock:
            return self._journal.version, self._journal.since(since)

    @property
    def version(self) -> int:
        """Grows with every change of what :meth:`get` and :meth:`by_index` return."""
        return self._latest_journal.version

    def changes(self, since: int) -> tuple[int, frozenset[K] | None]:
        """Return the current :attr:`version`, and the keys whose view changed after ``since``.

        The keys are None when ``since`` is too long ago.

        *Cost*: proportional to the changes since.
        """
        with self._lock:
            return self._latest_journal.version, self._latest_journal.since(since)

    def by_index(self, value: Hashable) -> tuple[T, ...]:
        """Return the latest view of the objects whose index is ``value``, the oldest entry first.

        *Cost*: proportional to what is returned.
        """
        with self._lock:
            held = self._by_index.get(value)
            return () if held is None else tuple(held.values())

    # --- what the watch says ------------------------------------------------------------------

    def changed(self, old: T | None, new: T | None, *, restored: bool = False) -> bool:
        """Store an object from the watch; ``new`` is None for a deleted one.

        An assumption about it ends, unless the watch repeats the known version. A
        version older than the known one is ignored.

        Parameters
        ----------
        restored
            Whether the API has gone back in time, as it does when etcd is restored: ``new`` is
            taken over whatever its version, and what was assumed ends.

        Returns
        -------
        Whether the change was applied.
        """
        subject = new if new is not None else old
        if subject is None:
            return False
        key = self._key(subject)
        with self._lock:
            known = self._api.get(key)
            if new is None:
                if known is None:
                    return False
                self._unindex_locked(key)
                del self._api[key]
                self._assumed.pop(key, None)
            else:
                if known is not None and not (restored or _supersedes(new, known)):
                    return False
                if known is not None:
                    self._unindex_locked(key)
                    # After a restore a version may come again with another content.
                    if restored or _version(known) != _version(new):
                        self._assumed.pop(key, None)
                self._api[key] = new
                self._index_locked(key)
            self._latest_journal.record(key)
            self._journal.record(key)
            listeners = tuple(self._listeners.get(key, ()))
        for listener in listeners:
            listener()
        return True

    # --- what we assume -----------------------------------------------------------------------

    def assume(self, obj: T) -> None:
        """Show ``obj`` in place of the API's version, from which it was made.

        Raises
        ------
        AssumeError
            When the object is gone or the API has another version of it.
        """
        key = self._key(obj)
        with self._lock:
            known = self._api.get(key)
            if known is None:
                raise AssumeError(f'{self.kind} "{_text(key)}" not found')
            stored, wanted = _version(known), _version(obj)
            if stored != wanted:
                raise AssumeError(
                    f'"{_text(key)}" is out of sync (stored: {stored}, assume: {wanted})'
                )
            self._unindex_locked(key)
            self._assumed[key] = obj
            self._index_locked(key)
            self._latest_journal.record(key)

    def restore(self, obj: T) -> None:
        """Show the API's version again, if the assumption was made from the version of ``obj``."""
        key = self._key(obj)
        with self._lock:
            assumed = self._assumed.get(key)
            if assumed is None or _version(assumed) != _version(obj):
                return
            self._unindex_locked(key)
            del self._assumed[key]
            self._index_locked(key)
            self._latest_journal.record(key)

    # --- who waits ----------------------------------------------------------------------------

    def listen(self, key: K, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of the API's object under ``key``."""
        with self._lock:
            self._listeners.setdefault(key, []).append(listener)

    def unlisten(self, key: K, listener: Callable[[], None]) -> None:
        """Undo one :meth:`listen`; without one this has no effect."""
        with self._lock:
            listeners = self._listeners.get(key, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(key, None)

    # --- index --------------------------------------------------------------------------------

    def _index_locked(self, key: K) -> None:
        if self._index is not None:
            latest = self._assumed.get(key) or self._api[key]
            self._by_index.setdefault(self._index(latest), {})[key] = latest

    def _unindex_locked(self, key: K) -> None:
        if self._index is not None:
            value = self._index(self._assumed.get(key) or self._api[key])
            held = self._by_index[value]
            del held[key]
            if not held:
                del self._by_index[value]


def _version(obj: HasMeta) -> str:
    return obj.metadata.resource_version


def _supersedes(new: HasMeta, known: HasMeta) -> bool:
    """Return whether ``new`` is not older; versions that are not numbers are always accepted."""
    number = parse_resource_version(_version(new))
    if number == INCOMPARABLE:
        return True
    return number >= parse_resource_version(_version(known))


def _text(key: object) -> str:
    return "/".join(key) if isinstance(key, tuple) else str(key)

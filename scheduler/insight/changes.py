"""Collects the changes of all informers' stores since the last question, for the insight worker.

While nobody asks, each batch of deltas costs one comparison. With the first question, all objects
are due; afterwards those that have changed. They are encoded in small slices, so that the I/O loop
does other work in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scheduler.insight.messages import KINDS, objects_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scheduler.informers import Informer
    from scheduler.informers.store import Delta

SLICE: Final = 100
"""Objects in one frame: about 0.1 ms of encoding, 1 ms for the largest pods."""


class StoreChanges:
    """The changes that the worker does not know yet.

    Parameters
    ----------
    informers
        Returns the present informers. One that appears later is followed from the next slice on.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, informers: Callable[[], Sequence[Informer[Any]]]) -> None:
        self._informers = informers
        self._followed: dict[str, Informer[Any]] = {}
        self._is_active = False
        self._lists: list[tuple[str, list[Any]]] = []
        self._changed: dict[str, dict[str, Any]] = {}

    def follow(self) -> None:
        """Follow all present informers that are not followed yet."""
        for informer in self._informers():
            name = informer.kind.name
            if name in KINDS and self._followed.get(name) is not informer:
                self._followed[name] = informer
                informer.add_handler(self._handler(name))

    def begin(self) -> None:
        """Make all objects due: for a worker that knows nothing."""
        self.follow()
        self._is_active = True
        self._changed = {}
        self._lists = [
            (name, list(self._followed[name].list())) for name in KINDS if name in self._followed
        ]

    def end(self) -> None:
        """Collect nothing until the next :meth:`begin`."""
        self._is_active = False
        self._changed, self._lists = {}, []

    def includes(self, kind: str, uid: str) -> bool:
        """Return whether a change of an object is due."""
        return uid in self._changed.get(kind, ())

    def slices(self) -> Iterator[bytes]:
        """Yield frames until nothing is due; the stores may change between two of them.

        When it ends, what was yielded so far equals the stores at that moment.
        """
        self.follow()
        while self._lists:
            name, objects = self._lists[0]
            informer, due = self._followed[name], objects[-SLICE:]
            del objects[-SLICE:]
            if not objects:
                del self._lists[0]
            # What has changed meanwhile is due by itself.
            changed = self._changed.get(name, {})
            present = [
                each
                for each in due
                if each.metadata.uid not in changed
                and informer.get_by_uid(each.metadata.uid) is each
                and type(each) is KINDS[name].struct
            ]
            if present:
                yield objects_frame(name, present, ())
        while self._changed:
            name = next(each for each in KINDS if each in self._changed)
            changes = self._changed[name]
            # One that cannot be read counts as gone, as for the commands that read a dump. What is
            # gone goes first: a new object may have the name of an old one.
            struct = KINDS[name].struct
            gone = [uid for uid, each in changes.items() if type(each) is not struct]
            for uid in gone:
                del changes[uid]
            due = [changes.popitem()[1] for _ in range(min(SLICE, len(changes)))]
            if not changes:
                del self._changed[name]
            yield objects_frame(name, due, gone)

    def _handler(self, name: str) -> Callable[[Sequence[Delta[Any]]], None]:
        def collect(deltas: Sequence[Delta[Any]]) -> None:
            if not self._is_active:
                return
            changes = self._changed.setdefault(name, {})
            for delta in deltas:
                obj = delta.old if delta.new is None else delta.new
                if obj is not None:
                    changes[obj.metadata.uid] = delta.new

        return collect

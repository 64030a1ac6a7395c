"""A mapping of the pods of one node that is cheap to copy for any number of pods.

Each change of a node makes the snapshot copy it. For the usual hundred pods a dict is copied in a
microsecond or two. A virtual node that represents a whole cluster, or a simulated one, has tens of
thousands of pods, and copying a dict of them would use most of the scheduler's time.
"""

from __future__ import annotations

from collections.abc import ItemsView, MutableMapping, ValuesView
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cache.pod_info import PodInfo

CHUNK: Final = 256
"""Pods that a change of one of them copies at most."""

MANY: Final = 2 * CHUNK
"""From so many pods on this is the better mapping; below, a dict."""


class _Values(ValuesView["PodInfo"]):
    _mapping: ManyPods

    def __iter__(self) -> Iterator[PodInfo]:
        return chain.from_iterable(chunk.values() for chunk in self._mapping.chunks)


class _Items(ItemsView[str, "PodInfo"]):
    _mapping: ManyPods

    def __iter__(self) -> Iterator[tuple[str, PodInfo]]:
        return chain.from_iterable(chunk.items() for chunk in self._mapping.chunks)


class ManyPods(MutableMapping[str, "PodInfo"]):
    """Pods by UID in order of arrival, in chunks that copies share until one of them changes.

    Notes
    -----
    *Concurrency*: none of its own. Copies are independent: one thread may read a copy while
    another changes the original.

    *Cost*: :meth:`copy` a pointer for each :data:`CHUNK` pods; a change the copy of one chunk;
    a look-up one probe for each chunk at most, newest first.
    """

    __slots__ = ("_length", "_owned", "chunks")

    def __init__(self, pods: Mapping[str, PodInfo]) -> None:
        self.chunks: list[dict[str, PodInfo]] = []
        """To be read only: copies may share them."""
        self._owned: list[bool] = []
        self._length = 0
        for uid, info in pods.items():
            self[uid] = info

    def copy(self) -> ManyPods:
        """Return a mapping of the same pods that changes independently."""
        twin = ManyPods.__new__(ManyPods)
        twin.chunks = self.chunks.copy()
        self._owned = [False] * len(self.chunks)
        twin._owned = self._owned.copy()
        twin._length = self._length
        return twin

    def values(self) -> ValuesView[PodInfo]:
        """Return the pods, without a lookup for each."""
        return _Values(self)

    def items(self) -> ItemsView[str, PodInfo]:
        """Return UIDs and pods, without a lookup for each."""
        return _Items(self)

    def __getitem__(self, uid: str) -> PodInfo:
        for chunk in reversed(self.chunks):
            info = chunk.get(uid)
            if info is not None:
                return info
        raise KeyError(uid)

    def __contains__(self, uid: object) -> bool:
        return any(uid in chunk for chunk in reversed(self.chunks))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.chunks)

    def __len__(self) -> int:
        return self._length

    def __setitem__(self, uid: str, info: PodInfo) -> None:
        index = self._index(uid)
        if index is None:
            self._length += 1
            index = len(self.chunks) - 1
            if index < 0 or len(self.chunks[index]) >= CHUNK:
                self.chunks.append({uid: info})
                self._owned.append(True)
                return
        self._own(index)[uid] = info

    def __delitem__(self, uid: str) -> None:
        index = self._index(uid)
        if index is None:
            raise KeyError(uid)
        del self._own(index)[uid]
        self._length -= 1
        if not self.chunks[index]:
            del self.chunks[index], self._owned[index]
        elif self._length < len(self.chunks) * CHUNK // 4 and self._length >= CHUNK:
            twin = ManyPods(self)
            self.chunks, self._owned = twin.chunks, twin._owned

    def _index(self, uid: str) -> int | None:
        for index in range(len(self.chunks) - 1, -1, -1):
            if uid in self.chunks[index]:
                return index
        return None

    def _own(self, index: int) -> dict[str, PodInfo]:
        """Return the chunk in a form that no copy shares."""
        if not self._owned[index]:
            self.chunks[index] = self.chunks[index].copy()
            self._owned[index] = True
        return self.chunks[index]

"""Reference counts of keys: a key exists for as long as it has a holder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class RefCounts(dict[str, int]):
    """Counts by key, all above 0.

    Notes
    -----
    *Concurrency*: not thread-safe; guarded by its owner.
    """

    def replace(
        self, before: Mapping[str, object], after: Mapping[str, object]
    ) -> tuple[Collection[str], Collection[str]]:
        """Replace the keys of a holder by its new ones.

        Returns
        -------
        The keys that had no holder before, and those that have no holder any more.

        *Cost*: a microsecond for a holder whose keys stay the same.
        """
        old, new = before.keys(), after.keys()
        if old == new:
            return (), ()
        return self.add(new - old), self.remove(old - new)

    def add(self, keys: Iterable[str]) -> list[str]:
        """Count one more holder of distinct keys, and return those that had no holder before."""
        first = []
        for key in keys:
            count = self.get(key)
            if count is None:
                self[key] = 1
                first.append(key)
            else:
                self[key] = count + 1
        return first

    def remove(self, keys: Iterable[str]) -> list[str]:
        """Count one holder less of distinct keys, and return those that have no holder any more."""
        last = []
        for key in keys:
            count = self[key]
            if count == 1:
                del self[key]
                last.append(key)
            else:
                self[key] = count - 1
        return last

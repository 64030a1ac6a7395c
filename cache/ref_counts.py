"""How many hold each of some keys: a key is known for as long as somebody has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class RefCounts(dict[str, int]):
    """Counts by key, all above 0.

    Notes
    -----
    *Concurrency*: not thread-safe; guarded by its owner.
    """

    def replace(
        self, before: Mapping[str, object], after: Mapping[str, object]
    ) -> tuple[Collection[str], Collection[str]]:
        """Count a holder's keys out and its new ones in.

        Returns
        -------
        The keys that nobody had before, and those that nobody has any more.

        *Cost*: a microsecond for a holder whose keys stay the same.
        """
        old, new = before.keys(), after.keys()
        if old == new:
            return (), ()
        first, last = [], []
        for key in new - old:
            count = self.get(key, 0)
            self[key] = count + 1
            if not count:
                first.append(key)
        for key in old - new:
            if self[key] == 1:
                del self[key]
                last.append(key)
            else:
                self[key] -= 1
        return first, last

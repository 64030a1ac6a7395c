"""Track namespaces in which writes keep failing: there each write is sent once.

A webhook that a tenant has broken rejects every write of that namespace. Retrying each of them
would keep the workers from the writes of other namespaces. So once a write was abandoned after all
its attempts, the next ones get a single attempt, until one is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scheduler.client.errors import ApiError

_MAX_NAMESPACES: Final = 10_000


class FailingNamespaces:
    """The namespaces whose last write was given up after all its attempts.

    Notes
    -----
    *Concurrency*: confined to the loop.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def tries(self, namespace: str, usual: int) -> int:
        """Return how many attempts a write in a namespace gets."""
        return 1 if namespace in self._names else usual

    def __contains__(self, namespace: str) -> bool:
        """Tell whether writes fail there."""
        return namespace in self._names

    def timed_out(self, namespace: str) -> None:
        """Take note that a write failed after so long that a second one is too many."""
        self._add(namespace)

    def gave_up(self, namespace: str, error: ApiError) -> None:
        """Take note that a write was given up after all its attempts.

        Only an answer of the API server counts: that nobody answers is about no namespace.
        """
        if error.is_explained:
            self._add(namespace)

    def accepted(self, namespace: str) -> None:
        """Take note that a write was accepted."""
        self._names.discard(namespace)

    def _add(self, namespace: str) -> None:
        if len(self._names) >= _MAX_NAMESPACES:
            self._names.clear()  # most are gone long since
        self._names.add(namespace)

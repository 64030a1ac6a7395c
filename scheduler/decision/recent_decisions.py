"""Keep the outcomes of recent attempts for questions: those of each pod, and all in their order.

Whoever reports an outcome adds it, from any thread, at the price of one small object. The I/O loop
collects the new ones a few times a second, numbers them, and drops the oldest beyond the limits.
Outcomes of pods that are placed are kept apart, so that a busy hour does not push out why other
pods have waited for days.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM: Final = 4_096
"""The number of outcomes that can be read in their order."""

PLACED_BYTES: Final = 4 << 20
REFUSED_BYTES: Final = 16 << 20
"""The size of the outcomes that are kept by pod: of pods that are placed, and of all others."""

OF_ONE_POD: Final = 5
"""The number of outcomes that are kept for each pod."""

MESSAGE_LENGTH: Final = 1_024
"""The limit of a message in characters: that of an Event's note."""

_NEW: Final = 4_096
"""The number of outcomes that may wait to be collected; beyond it the oldest are lost."""

_RECORD_BYTES: Final = 512
"""The size of an outcome without its message, as measured: strings are shared with the pod."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How one attempt ended.

    Parameters
    ----------
    seq
        Its number in the order of collection; numbers have no gaps while a process leads.
    time
        Seconds since the epoch.
    pod
        ``namespace/name``; empty if the attempt was that of a group.
    node
        Where the pod was bound; empty if it was not.
    message
        Why it was not bound; empty if it was.
    plugins
        The plugins that rejected it.
    score
        The total score of the node; None when a single feasible node needed none.
    runner_up, runner_up_score
        The second best node and its total score; None where the decision did not look for it. A
        node with a higher score than ``node`` was passed over for the sake of other schedulers:
        see :mod:`scheduler.cycle.soft_reserve`.
    duration_ms
        From the queue to the outcome; None where that was not measured.
    attempts
        The number of attempts so far.
    group
        The group of pods, ``namespace/name``, if the attempt was that of a group.
    """

    seq: int
    time: float
    pod: str
    uid: str
    profile: str
    node: str = ""
    message: str = ""
    plugins: tuple[str, ...] = ()
    score: int | None = None
    runner_up: str | None = None
    runner_up_score: int | None = None
    duration_ms: float | None = None
    attempts: int = 0
    group: str = ""

    @property
    def namespace(self) -> str:
        """The namespace of the pod or of the group."""
        return (self.pod or self.group).partition("/")[0]

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return _RECORD_BYTES + len(self.message)


_RunnerUp: TypeAlias = tuple[str, int] | None
_New: TypeAlias = tuple[
    float, str, str, str, str, str, Collection[str], int | None, _RunnerUp, float | None, int, str
]
"""What was added: an :class:`Outcome` from ``time`` on, with the duration in seconds, and the
runner-up as name and score."""


def _outcome(seq: int, new: _New) -> Outcome:
    (
        time_s,
        pod,
        uid,
        profile,
        node,
        message,
        plugins,
        score,
        second,
        duration_s,
        attempts,
        group,
    ) = new
    if len(message) > MESSAGE_LENGTH:
        message = message[: MESSAGE_LENGTH - 1] + "…"
    return Outcome(
        seq,
        time_s,
        pod,
        uid,
        profile,
        node,
        message,
        tuple(sorted(plugins)),
        score,
        None if second is None else second[0],
        None if second is None else second[1],
        None if duration_s is None else round(duration_s * 1000, 3),
        attempts,
        group,
    )


class RecentDecisions:
    """Stores the outcomes of recent attempts.

    Parameters
    ----------
    clock
        Seconds since the epoch.

    Notes
    -----
    *Concurrency*: :meth:`add` and :meth:`of_pod` from any thread, everything else on the I/O loop.

    *Cost*: :meth:`add` about a microsecond. Memory: :data:`PLACED_BYTES`,
    :data:`REFUSED_BYTES`, and what :data:`STREAM` and the uncollected outcomes take.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # A deque is appended to atomically, and drops its oldest value when it is full.
        self._new: deque[_New] = deque(maxlen=_NEW)
        self._stream: deque[Outcome] = deque(maxlen=STREAM)
        self._refused = _ByPod(REFUSED_BYTES)
        self._placed = _ByPod(PLACED_BYTES)
        self.last = 0
        """The number of the newest outcome."""

    def add(
        self,
        pod: str,
        uid: str,
        profile: str,
        *,
        node: str = "",
        message: str = "",
        plugins: Collection[str] = (),
        score: int | None = None,
        runner_up: tuple[str, int] | None = None,
        duration_s: float | None = None,
        attempts: int = 0,
        group: str = "",
    ) -> None:
        """Add the outcome of an attempt; the parameters are those of :class:`Outcome`.

        ``runner_up`` is a node with its score.
        """
        # As plain as can be: this runs on the scheduling thread.
        self._new.append(
            (
                self._clock(),
                pod,
                uid,
                profile,
                node,
                message,
                plugins,
                score,
                runner_up,
                duration_s,
                attempts,
                group,
            )
        )

    def collect(self) -> None:
        """Take over what was added since the last call. *Cost*: 5 us for each outcome."""
        new = self._new
        while new:
            self.last += 1
            outcome = _outcome(self.last, new.popleft())
            self._stream.append(outcome)
            key = outcome.pod or f"group {outcome.group}"
            if outcome.node:
                self._placed.put(key, [*self._refused.pop(key), outcome])
            else:
                self._refused.put(key, [*self._placed.pop(key), outcome])

    def after(self, seq: int, limit: int) -> list[Outcome]:
        """Return the outcomes after a number in their order, the oldest first, at most ``limit``.

        ``seq`` 0 stands for the newest ``limit`` outcomes.
        """
        stream = self._stream
        first = self.last - len(stream) + 1
        start = len(stream) - limit if seq == 0 else seq + 1 - first
        start = max(start, 0)
        return list(islice(stream, start, start + limit))

    def of_pod(self, pod: str, group: str = "") -> list[Outcome]:
        """Return the last outcomes of a pod and of its group, the newest first."""
        found = [*self._refused.get(pod), *self._placed.get(pod)]
        if group:
            found += self._refused.get(f"group {group}") + self._placed.get(f"group {group}")
        return sorted(found, key=lambda outcome: -outcome.seq)

    def sizes(self) -> dict[str, int]:
        """Return the number of outcomes in each table."""
        return {
            "new": len(self._new),
            "stream": len(self._stream),
            "refused_pods": len(self._refused),
            "placed_pods": len(self._placed),
        }


class _ByPod:
    """The last outcomes by pod, up to a number of bytes; the quietest pod is dropped first."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._pods: OrderedDict[str, list[Outcome]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, key: str) -> list[Outcome]:
        """Return the outcomes of a pod, the oldest first."""
        return self._pods.get(key, [])

    def pop(self, key: str) -> list[Outcome]:
        """Remove and return the outcomes of a pod."""
        outcomes = self._pods.pop(key, [])
        self._bytes -= _size_bytes(outcomes)
        return outcomes

    def put(self, key: str, outcomes: list[Outcome]) -> None:
        """Append outcomes to those of a pod, and drop the oldest beyond the limits."""
        kept = (self.pop(key) + outcomes)[-OF_ONE_POD:]
        self._pods[key] = kept
        self._bytes += _size_bytes(kept)
        while self._bytes > self._limit_bytes:
            _, dropped = self._pods.popitem(last=False)
            self._bytes -= _size_bytes(dropped)


def _size_bytes(outcomes: list[Outcome]) -> int:
    return sum(outcome.size_bytes for outcome in outcomes)

"""One thread of control, virtual time, and a seed that decides who goes on.

Everything that can go on at a moment (the event loops of all replicas, their threads) is in one
list; a seeded choice takes the next one, and what it does until it stops is one step. Whatever
happens by itself (an answer arrives, a timer ends, a kubelet acts) is called when its time has
come. Time passes a little with each step, and jumps to the next happening when nobody can go on.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

STEP_S: Final = 20e-6
"""What a step takes; close to what a callback of the loop takes on a real machine."""

REMEMBERED: Final = 400
"""Lines of the trace that are kept for the report of a failure."""


class Runnable(Protocol):
    """Whoever can go on."""

    name: str

    def step(self) -> None:
        """Go on until the next place where somebody else may."""
        ...


class InvariantError(Exception):
    """A promise was broken.

    Attributes
    ----------
    invariant
        Its number, such as ``I4``.
    """

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant


class Simulation:
    """Time, and who goes on.

    Parameters
    ----------
    seed
        Decides everything.
    interleave
        Probability that a thread stops at a lock, so that somebody else goes on; 0 for threads
        that stop only where they wait.

    Attributes
    ----------
    now_s
        Seconds since the beginning.
    steps
        How many there were.
    counts
        How often what happened: faults, and places of the code that were reached.
    problems
        Promises that were broken where nobody could raise.
    """

    def __init__(self, seed: int, *, interleave: float = 0.0) -> None:
        self.seed = seed
        self.interleave = interleave
        self.order = random.Random(f"{seed}/order")
        self.now_s = 0.0
        self.steps = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[InvariantError] = []
        self.each_step: list[Callable[[], None]] = []
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0
        self._runnable: list[Runnable] = []
        self._trace = 0
        self._said: deque[tuple[float, str]] = deque(maxlen=REMEMBERED)

    def rng(self, what: str) -> random.Random:
        """Return random numbers of their own for something, so that others do not shift them."""
        return random.Random(f"{self.seed}/{what}")

    # --- what has happened --------------------------------------------------------------------

    def note(self, what: str) -> None:
        """Put a line into the trace: its hash tells one history from another."""
        self._trace = zlib.crc32(what.encode(), self._trace)
        self._said.append((self.now_s, what))

    @property
    def trace_hash(self) -> str:
        """A digest of everything that was noted, and of who went on when."""
        return f"{self._trace:08x}"

    def last(self, count: int) -> list[str]:
        """Return the last things that were noted, as text."""
        return [f"{at_s:12.6f} {what}" for at_s, what in list(self._said)[-count:] if count]

    def broken(self, invariant: str, message: str) -> None:
        """Have the run end with a broken promise, from wherever it is seen."""
        self.note(f"BROKEN {invariant}: {message}")
        self.problems.append(InvariantError(invariant, message))

    # --- time ---------------------------------------------------------------------------------

    def at(self, at_s: float, call: Callable[[], object]) -> None:
        """Have something called at a time; what is called first at one time was asked for first."""
        self._number += 1
        heapq.heappush(self._heap, (at_s, self._number, call))

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Have something called after a while."""
        self.at(self.now_s + delay_s, call)

    # --- who can go on ------------------------------------------------------------------------

    def add(self, one: Runnable) -> None:
        """Let somebody go on when chosen; they are not in the list yet."""
        self._runnable.append(one)

    def remove(self, one: Runnable) -> None:
        """Choose somebody no more."""
        self._runnable.remove(one)

    def run(self, until_s: float) -> None:
        """Go on until a time.

        Raises
        ------
        InvariantError
            A promise was broken.
        """
        heap, runnable, choose = self._heap, self._runnable, self.order.random
        problems = self.problems
        while True:
            now_s = self.now_s
            while heap and heap[0][0] <= now_s:
                heapq.heappop(heap)[2]()
            if problems:
                raise problems[0]
            if now_s >= until_s:
                return
            if runnable:
                count = len(runnable)
                one = runnable[0] if count == 1 else runnable[int(choose() * count)]
                self.took(one.name)
                one.step()
                for check in self.each_step:
                    check()
            else:
                self.now_s = min(heap[0][0], until_s) if heap else until_s

    def took(self, name: str) -> None:
        """Count a step of somebody."""
        self.steps += 1
        self.now_s += STEP_S
        self._trace = zlib.crc32(name.encode(), self._trace)

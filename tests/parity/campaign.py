"""A campaign: random comparisons from a seed on, one after another, and what is told of them.

Whoever asks says what a case is and how it is judged; drawing, shrinking, counting, the command
line and its report are the same for all.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.parity.dice import Dice, smallest

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from tests.parity.vocabulary import Json


class DifferenceError(AssertionError):
    """The two sides disagree on a case; the message holds the smallest one that was found."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is drawn, and how it is judged.

    Parameters
    ----------
    draws
        Each draw gives some cases.
    chunk
        Draws of one run of hypothesis, which remembers all that it has drawn.
    counted
        The key under which ``judge`` counts each case.
    judge
        Returns what differs in the answers to a case, and counts what it reached.
    """

    draws: SearchStrategy[list[Json]]
    chunk: int
    counted: str
    judge: Callable[[Json, Counter[Any]], list[str]]

    def run(
        self, count: int, first_seed: int, progress: Callable[[int], None] = lambda done: None
    ) -> Counter[Any]:
        """Compare at least ``count`` fresh cases; return what they reached, and how often.

        The same ``first_seed`` gives the same cases.

        Raises
        ------
        DifferenceError
            With the seed of the chunk, the shrunk case and what differs.
        """
        counts: Counter[Any] = Counter()
        chunk_seed = first_seed
        while counts[self.counted] < count:
            self._compare_chunk(chunk_seed, counts)
            chunk_seed += 1
            progress(counts[self.counted])
        return counts

    def _compare_chunk(self, chunk_seed: int, counts: Counter[Any]) -> None:
        @seed(chunk_seed)
        @settings(
            max_examples=self.chunk,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(self.draws)
        def same_answers(asked: list[Json]) -> None:
            for case in asked:
                found = self.judge(case, counts)
                if found:
                    lines = "\n  ".join(found)
                    raise DifferenceError(f"seed {chunk_seed}\n  {lines}\n{json.dumps(case)}")

        same_answers()


_ASKED_AGAIN = 3


@dataclass(frozen=True, slots=True)
class SeededCampaign:
    """As :class:`Campaign`, for cases that are drawn from dice.

    Parameters
    ----------
    draws
        Returns the cases of one draw.
    counted, judge
        As of a campaign.
    """

    draws: Callable[[Dice], list[Json]]
    counted: str
    judge: Callable[[Json, Counter[Any]], list[str]]

    def run(
        self, count: int, first_seed: int, progress: Callable[[int], None] = lambda done: None
    ) -> Counter[Any]:
        """As :meth:`Campaign.run`; a draw has a seed of its own."""
        counts: Counter[Any] = Counter()
        draw_seed = first_seed
        while counts[self.counted] < count:
            for case in self.draws(Dice(draw_seed)):
                if found := self.judge(case, counts):
                    self._tell(draw_seed, case, found)
            draw_seed += 1
            progress(counts[self.counted])
        return counts

    def _tell(self, draw_seed: int, case: Json, found: list[str]) -> NoReturn:
        """Raise the difference, with as small a case as can be found."""

        def differs(smaller: Json) -> bool:
            """Report whether a case differs always, not by chance."""
            return all(self.judge(smaller, Counter()) for _ in range(_ASKED_AGAIN))

        if differs(case):
            case = smallest(case, differs)
            found = self.judge(case, Counter())
        lines = "\n  ".join(found)
        raise DifferenceError(f"seed {draw_seed}\n  {lines}\n{json.dumps(case)}")


@dataclass(frozen=True, slots=True)
class Report:
    """What a command tells of its campaign.

    Parameters
    ----------
    counted
        What its cases are called, and the key under which they are counted.
    enough
        So many of them have to reach everything; unless told otherwise, so many are compared.
    step
        So many between two lines of progress.
    """

    counted: str
    enough: int
    step: int

    def tell(
        self,
        parser: ArgumentParser,
        subject: Callable[[Namespace], str],
        compare: Callable[[Namespace, int, Callable[[int], None]], Counter[Any]],
        missing: Callable[[Namespace, Counter[Any]], list[str]],
    ) -> int:
        """Read the command line, compare, and report.

        Parameters
        ----------
        parser
            Of whatever else the command takes.
        subject
            Says what is compared.
        compare
            Does so, from a seed on, and tells how far it is.
        missing
            Says what was reached too seldom.

        Returns
        -------
        The exit status: 1 when anything differs or is not reached.
        """
        parser.add_argument("--cases", type=int, default=self.enough, metavar="N")
        earlier = f"of an earlier run, to see the same {self.counted}"
        parser.add_argument("--seed", type=int, help=earlier)
        options = parser.parse_args()
        first_seed = random.randrange(10**9) if options.seed is None else options.seed
        print(f"comparing {options.cases} {subject(options)}, seed {first_seed}", flush=True)
        try:
            counts = compare(options, first_seed, self._progress(options.cases))
        except DifferenceError as error:
            print(f"DIFFERENT\n{error}")
            return 1
        for reached, times in sorted(counts.items()):
            print(f"  {times:7} {reached}")
        print(f"no difference in {counts[self.counted]} {self.counted}, seed {first_seed}")
        lacking = missing(options, counts) if options.cases >= self.enough else []
        for line in lacking:
            print(line)
        return 1 if lacking else 0

    def _progress(self, wanted: int) -> Callable[[int], None]:
        started, told = time.monotonic(), 0

        def progress(done: int) -> None:
            nonlocal told
            if done - told >= self.step or done >= wanted:
                told = done
                seconds = time.monotonic() - started
                print(f"  {done} {self.counted}, {seconds:.0f} s", flush=True)

        return progress

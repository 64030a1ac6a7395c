"""Compares many random cases, and shrinks the first one that differs."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.parity.branches import branches_of
from tests.parity.cases import QUESTIONS_OF
from tests.parity.comparison import GUARD, differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.parity.branches import Branch
    from tests.parity.processes import Pair
    from tests.parity.vocabulary import Json

CHUNK = 100
"""Clusters of one run of hypothesis, which remembers all that it has drawn."""


CASES = "cases"


class DifferenceError(AssertionError):
    """Oracle and berth disagree on a case; the message holds the smallest one that was found."""


def compare(
    pair: Pair,
    count: int,
    first_seed: int,
    progress: Callable[[int], None] = lambda done: None,
    kind: str = "verdicts",
) -> Counter[Branch]:
    """Compare at least ``count`` fresh cases of a kind; return how many reached each branch.

    The same ``first_seed`` gives the same cases. The key ``CASES`` holds their number.

    Raises
    ------
    DifferenceError
        With the seed of the chunk, the shrunk case and what differs.
    """
    counts: Counter[Branch] = Counter()
    chunk_seed = first_seed
    while counts[CASES] < count:
        _compare_chunk(pair, kind, chunk_seed, counts)
        chunk_seed += 1
        progress(counts[CASES])
    return counts


def _has_nominated_pods(question: Json) -> bool:
    return any(
        each["kind"] == "Pod" and "nominatedNodeName" in each["status"]
        for each in question["objects"]
    )


def _compare_chunk(pair: Pair, kind: str, chunk_seed: int, counts: Counter[Branch]) -> None:
    @seed(chunk_seed)
    @settings(
        max_examples=CHUNK,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(QUESTIONS_OF[kind])
    def same_verdicts(asked: list[Json]) -> None:
        for question in asked:
            oracle, berth = pair.ask(question)
            counts[CASES] += 1
            counts.update(branches_of(question, oracle))
            if _has_nominated_pods(question) and berth.get("preemption"):
                # Berth may tell fewer reasons of a node that is full without its nominated pods.
                berth["preemption"].pop("message", None)
            found = differences(oracle, berth)
            if GUARD in json.dumps(berth):
                found.append(f"{GUARD} answers: the case asks for what berth does not know yet")
            if found:
                lines = "\n  ".join(found)
                raise DifferenceError(f"seed {chunk_seed}\n  {lines}\n{json.dumps(question)}")

    same_verdicts()

"""Compares many random cases, and shrinks the first one that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.parity.branches import branches_of
from tests.parity.campaign import Campaign, SeededCampaign
from tests.parity.cases import DEVICES, QUESTIONS_OF
from tests.parity.comparison import differences
from tests.parity.device_pods import about_devices

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.parity.branches import Branch
    from tests.parity.processes import Pair
    from tests.parity.vocabulary import Json

CHUNK = 100
"""Clusters of one run of hypothesis."""

CASES = "cases"


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

    def judge(question: Json, counts: Counter[Branch]) -> list[str]:
        return _differences(pair, question, counts)

    if kind == DEVICES:
        return SeededCampaign(about_devices, CASES, judge).run(count, first_seed, progress)
    return Campaign(QUESTIONS_OF[kind], CHUNK, CASES, judge).run(count, first_seed, progress)


def _has_nominated_pods(question: Json) -> bool:
    return any(
        each["kind"] == "Pod" and "nominatedNodeName" in each.get("status", ())
        for each in question["objects"]
    )


def _differences(pair: Pair, question: Json, counts: Counter[Branch]) -> list[str]:
    oracle, berth = pair.ask(question)
    counts[CASES] += 1
    counts.update(branches_of(question, oracle))
    if _has_nominated_pods(question) and berth.get("preemption"):
        # Berth may tell fewer reasons of a node that is full without its nominated pods.
        berth["preemption"].pop("message", None)
    return differences(oracle, berth)

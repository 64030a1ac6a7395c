"""What the rounds add up to, and how they are shown."""

from __future__ import annotations

import pytest

from tests.neighbours import page
from tests.neighbours.cluster import FIRST, SECOND, seeds
from tests.neighbours.collisions import Collision
from tests.neighbours.contenders import GUARDED, KUBE_SCHEDULERS
from tests.neighbours.results import Results, Round, party_of, summary


def made(contender: str, seed: int, rejections: int) -> Round:
    arrivals = [(float(n), "") for n in range(1, 101)]
    arrivals += [(1.0, "OutOfcpu")] * rejections
    party = party_of(pods=100, arrivals=arrivals, given_up=0, binds=len(arrivals), cpu_s=2.0)
    first = party_of(pods=100, arrivals=arrivals[:100], given_up=0, binds=100, cpu_s=2.0)
    return Round(
        contender=contender,
        seed=seed,
        nodes=5,
        pods=100,
        session=0,
        load=(0.0, 1.0),
        created_s=1.0,
        parties={FIRST: first, SECOND: party},
        collisions=[
            Collision(f"p{n}", "n", "OutOfcpu", SECOND, FIRST, float(n - 1), 2.0)
            for n in range(rejections)
        ],
        lag_ms=(1.0, 2.0, 3.0, 4.0),
    )


def test_rate_is_that_of_most_pods():
    party = made(GUARDED, 1, 3).parties[SECOND]

    assert (party.running, party.rejections, party.binds) == (100, 3, 103)
    assert (party.most_s, party.all_s, party.pods_per_s) == (95.0, 100.0, 1.0)


def test_summary_adds_up_the_rounds():
    found = summary([made(GUARDED, 1, 3), made(GUARDED, 2, 1)], SECOND)

    assert found.rejected == {"OutOfcpu": 4}
    assert found.by_round == [3, 1]
    assert found.gaps_ms == [-1.0, -1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        pytest.param(1, "10% of the second kube-scheduler's 10: at most 10%", id="kept"),
        pytest.param(2, "20% of the second kube-scheduler's 10: more than 10%", id="not kept"),
    ],
)
def test_verdict(ours, words):
    results = Results(rounds=[made(KUBE_SCHEDULERS, 1, 10), made(GUARDED, 1, ours)])

    assert words in page.verdict(results, GUARDED)


def test_no_verdict_from_different_numbers_of_rounds():
    rounds = [made(KUBE_SCHEDULERS, 1, 10), made(KUBE_SCHEDULERS, 2, 10), made(GUARDED, 1, 0)]

    assert page.verdict(Results(rounds=rounds), GUARDED).startswith("no verdict")


def test_file_of_figures_is_read_as_it_was_written(tmp_path):
    results = Results(rounds=[made(GUARDED, 2, 1), made(KUBE_SCHEDULERS, 2, 4)])
    results.save(tmp_path / "figures.json")

    assert Results.load(tmp_path / "figures.json") == results


def test_same_round_counts_once():
    results = Results(rounds=[made(GUARDED, 2, 1)])
    results.put(made(GUARDED, 2, 5))

    assert [x.parties[SECOND].rejections for x in results.of(GUARDED)] == [5]


def test_page_has_a_row_for_each_scheduler_of_each_pair():
    results = Results(rounds=[made(GUARDED, 2, 1), made(KUBE_SCHEDULERS, 2, 4)])

    (_, rows), *_ = page.tables(results)

    assert [row[:2] for row in rows[1:]] == [
        [KUBE_SCHEDULERS, FIRST],
        [KUBE_SCHEDULERS, SECOND],
        [GUARDED, FIRST],
        [GUARDED, SECOND],
    ]


def test_seeds_are_numbers_and_ranges():
    assert seeds("1-3,7") == [1, 2, 3, 7]

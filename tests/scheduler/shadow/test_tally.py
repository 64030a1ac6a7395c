from __future__ import annotations

from functools import partial

import msgspec
import pytest

from scheduler.runtime import judgement
from scheduler.shadow.comparison import CHOICE
from scheduler.shadow.report import ShadowReport
from scheduler.shadow.tally import MAX_ALIKE, MAX_FAILURE_LENGTH, MAX_SAMPLES, Tally
from tests.builders import pod
from tests.scheduler.shadow.policies import Only, Points, nodes, policy

judge = partial(judgement.judge, scored_from=CHOICE)

BLANK = ShadowReport(scheduler_name="berth", live="file@1", shadow="new@1", wanted=100)


def tally_of(live, shadow, *, times: int = 1) -> Tally:
    tally, snapshot, info = Tally(BLANK), nodes("a", "b"), pod("web").info()
    for _ in range(times):
        ours, theirs = judge(live, snapshot, info), judge(shadow, snapshot, info)
        chosen = ours.best_rows()
        tally.compare(info.key, ours, theirs, int(chosen[0]) if len(chosen) else None)
    return tally


def test_at_first_it_says_who_and_counts_nothing():
    assert Tally(BLANK).report() == BLANK


def test_of_changed_winners_a_few_are_told():
    report = tally_of(policy(Points(a=1)), policy(Points(b=1)), times=30).report()
    assert report.changed_winners == 30
    assert len(report.winner_samples) == MAX_SAMPLES


def test_of_one_refusal_fewer_are_told():
    report = tally_of(policy(), policy(Only("a")), times=30).report()
    assert report.changed_feasibility == 30
    assert len(report.feasibility_samples) == MAX_ALIKE


def test_influence_is_the_average_of_the_decisions_with_a_choice():
    snapshot, info, tally = nodes("a", "b"), pod("web").info(), Tally(BLANK)
    live = judge(policy(Only("a")), snapshot, info)
    for points in (Points(a=4), Points(), Points(b=2)):
        tally.compare(info.key, live, judge(policy(points), snapshot, info), 0)
    tally.compare(info.key, live, judge(policy(Only("a"), Points(a=9)), snapshot, info), 0)
    (influence,) = tally.report().shadow_influence
    assert (influence.decisions, influence.changes, influence.spread) == (3, 0.3333, 2.0)


def test_plugins_that_change_most_come_first():
    report = tally_of(policy(), policy(Points("Weak", b=1), Points("Strong", a=9))).report()
    assert [each.plugin for each in report.shadow_influence] == ["Strong", "Weak"]


def test_a_failure_that_tells_a_story_is_cut():
    tally = Tally(BLANK)
    tally.fail("x" * 10_000)
    assert len(tally.report().failure) == MAX_FAILURE_LENGTH


def test_the_first_failure_is_the_one_that_is_told():
    tally = Tally(BLANK)
    tally.fail("first")
    tally.fail("second")
    assert (tally.report().failure, tally.report().failures) == ("first", 2)


def test_what_is_passed_over_is_no_comparison():
    tally = Tally(BLANK)
    tally.pass_over("budget")
    assert (tally.report().passed.budget, tally.compared) == (1, 0)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(BLANK, id="blank"),
        pytest.param(tally_of(policy(Points(a=1)), policy(Only("b"))).report(), id="full"),
    ],
)
def test_a_report_survives_its_json_form(report):
    assert msgspec.json.decode(msgspec.json.encode(report), type=ShadowReport) == report


def test_a_report_that_is_none_names_the_bad_value():
    broken = msgspec.json.encode(BLANK).replace(b'"budget":0', b'"budget":"none"')
    with pytest.raises(msgspec.ValidationError, match=r"\$\.passed\.budget"):
        msgspec.json.decode(broken, type=ShadowReport)


def test_a_report_fits_into_a_status():
    report = tally_of(
        policy(*(Points(f"Plugin{n}", a=n) for n in range(30))),
        policy(Only("b"), *(Points(f"Plugin{n}", b=n) for n in range(30))),
        times=50,
    ).report()
    assert len(msgspec.json.encode(report)) < 16_384

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision.decision import Scores
from scheduler.runtime import judgement
from scheduler.shadow.comparison import (
    CHOICE,
    compare,
    feasibility_samples,
    influences,
    winner_sample,
)
from tests.builders import pod
from tests.scheduler.shadow.policies import Only, Points, nodes, policy

judge = partial(judgement.judge, scored_from=CHOICE)


def scores(**weighted: list[int]) -> Scores:
    columns = {name: np.array(column, dtype=np.int64) for name, column in weighted.items()}
    total = np.sum(list(columns.values()), axis=0)
    return Scores(np.arange(len(total)), columns, total)


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        pytest.param(scores(Fit=[10, 0], Image=[0, 5]), {"Fit": 1.0, "Image": 0.0}, id="outvoted"),
        pytest.param(scores(Fit=[10, 0], Image=[1, 0]), {"Fit": 0.0, "Image": 0.0}, id="agreed"),
        pytest.param(scores(Fit=[7, 7], Image=[1, 0]), {"Fit": 0.0, "Image": 0.5}, id="a tie"),
        pytest.param(scores(Fit=[3, 3, 0, 0]), {"Fit": 0.5}, id="alone"),
        pytest.param(scores(Fit=[4, 4], Image=[2, 2]), {"Fit": 0.0, "Image": 0.0}, id="flat"),
    ],
)
def test_how_probable_another_winner_is_without_a_plugin(given, changes):
    assert {name: each.changes for name, each in influences(given).items()} == changes


def test_the_spread_is_between_best_and_worst_node():
    assert influences(scores(Fit=[10, 3, 4]))["Fit"].spread == 7


def test_where_nothing_was_scored_nobody_has_influence():
    assert influences(None) == {}


@given(
    columns=st.integers(1, 6).flatmap(
        lambda n: st.dictionaries(
            st.sampled_from(["A", "B", "C"]),
            st.lists(st.integers(0, 4), min_size=n, max_size=n),
            min_size=1,
        )
    )
)
def test_influence_is_the_share_of_picks_that_would_not_have_won(columns):
    kept = scores(**columns)
    won = {row for row, total in enumerate(kept.total) if total == kept.total.max()}
    for name, influence in influences(kept).items():
        others = [sum(columns[n][row] for n in columns if n != name) for row in kept.rows]
        picks = [row for row, total in enumerate(others) if total == max(others)]
        lost = [row for row in picks if row not in won]
        assert influence.changes == pytest.approx(len(lost) / len(picks))


@pytest.mark.parametrize(
    ("shadow", "changed"),
    [
        pytest.param(policy(Points(a=5)), False, id="the best node"),
        pytest.param(policy(), False, id="one of equals"),
        pytest.param(policy(Points(b=5)), True, id="another is better"),
        pytest.param(policy(Only("b")), True, id="not feasible"),
        pytest.param(policy(Only()), False, id="the shadow has no winner"),
    ],
)
def test_a_winner_is_changed_if_it_is_none_of_the_shadows_best(shadow, changed):
    snapshot, info = nodes("a", "b"), pod().info()
    live = judge(policy(Points(a=1)), snapshot, info)
    assert compare(live, judge(shadow, snapshot, info), 0).winner_changed is changed


def test_a_pod_that_went_nowhere_has_no_changed_winner():
    snapshot, info = nodes("a"), pod().info()
    live = judge(policy(Only()), snapshot, info)
    assert not compare(live, judge(policy(), snapshot, info), None).winner_changed


def test_feasible_nodes_are_lost_and_gained():
    snapshot, info = nodes("a", "b", "c"), pod().info()
    live = judge(policy(Only("a", "b")), snapshot, info)
    found = compare(live, judge(policy(Only("b", "c")), snapshot, info), 0)
    assert (found.nodes_lost, found.nodes_gained) == (1, 1)


def test_a_changed_winner_is_told_with_who_made_the_difference():
    snapshot, info = nodes("a", "b"), pod("web").info()
    shadow = policy(Points("Cost", a=1, b=9), Points("Image", a=2))
    sample = winner_sample("default/web", judge(shadow, snapshot, info), 0)
    assert (sample.live, sample.shadow, sample.lead, sample.decisive) == ("a", "b", 6, "Cost")


def test_a_live_choice_that_the_shadow_does_not_allow_has_no_points():
    sample = winner_sample(
        "default/web", judge(policy(Only("b")), nodes("a", "b"), pod().info()), 0
    )
    assert (sample.shadow, sample.lead, sample.decisive) == ("b", None, "")


def test_a_lost_and_a_gained_node_are_told_with_the_reason():
    snapshot, info = nodes("a", "b"), pod("web").info()
    live = judge(policy(Only("a", why="too dear")), snapshot, info)
    shadow = judge(policy(Only("b", why="too slow")), snapshot, info)
    found = feasibility_samples("default/web", live, shadow)
    assert [(each.allowed_by, each.node, each.plugin, each.reason) for each in found] == [
        ("live", "a", "Only", "too slow"),
        ("shadow", "b", "Only", "too dear"),
    ]

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.config.file_profile import PluginEntry, PluginSet
from scheduler.config.plugin_sets import PluginOrder, merge_plugin_set, order_plugins

if TYPE_CHECKING:
    from collections.abc import Mapping

POINTS = ("queueSort", "filter", "score", "bind")
SERVES = {
    "Sort": frozenset({"queueSort"}),
    "Fit": frozenset({"filter", "score"}),
    "Taint": frozenset({"filter", "score"}),
    "Image": frozenset({"score"}),
    "Bind": frozenset({"bind"}),
    "Mine": frozenset({"filter", "score"}),
    "Absent": frozenset[str](),
}


def entries(*each: str | tuple[str, int]) -> tuple[PluginEntry, ...]:
    return tuple(PluginEntry(e) if isinstance(e, str) else PluginEntry(*e) for e in each)


DEFAULT = PluginSet(entries("Sort", ("Taint", 3), ("Fit", 2), "Absent", ("Image", 1), "Bind"))


def order(sets: Mapping[str, PluginSet]) -> PluginOrder:
    return order_plugins(sets, POINTS, lambda name: SERVES[name], DEFAULT)


def enabled(*each: str | tuple[str, int], disabled: tuple[str, ...] = ()) -> PluginSet:
    return PluginSet(entries(*each), entries(*disabled))


def disabled(*names: str) -> PluginSet:
    return enabled(disabled=names)


@pytest.mark.parametrize(
    ("custom", "merged"),
    [
        pytest.param(PluginSet(), DEFAULT.enabled, id="nothing"),
        pytest.param(
            disabled("Taint", "Absent"),
            entries("Sort", ("Fit", 2), ("Image", 1), "Bind"),
            id="disabled-ones-go",
        ),
        pytest.param(disabled("*"), (), id="all-go"),
        pytest.param(disabled("Unheard"), DEFAULT.enabled, id="unknown-ones-do-not-matter"),
        pytest.param(
            enabled(("Fit", 9)),
            entries("Sort", ("Taint", 3), ("Fit", 9), "Absent", ("Image", 1), "Bind"),
            id="replaced-in-place",
        ),
        pytest.param(
            enabled("Mine", "Fit"),
            entries("Sort", ("Taint", 3), "Fit", "Absent", ("Image", 1), "Bind", "Mine"),
            id="new-ones-behind-and-no-weight-inherited",
        ),
        pytest.param(
            enabled(("Fit", 9), disabled=("Fit",)),
            entries("Sort", ("Taint", 3), "Absent", ("Image", 1), "Bind", ("Fit", 9)),
            id="disabled-and-enabled-moves-behind",
        ),
        pytest.param(
            enabled("Mine", "Sort", disabled=("*",)), entries("Mine", "Sort"), id="only-these"
        ),
    ],
)
def test_a_set_is_laid_over_the_defaults(
    custom: PluginSet, merged: tuple[PluginEntry, ...]
) -> None:
    assert merge_plugin_set(DEFAULT, custom).enabled == merged


def test_what_the_defaults_disable_stays_disabled() -> None:
    assert merge_plugin_set(disabled("A"), disabled("B")).disabled == entries("B", "A")


@pytest.mark.parametrize(
    ("sets", "point", "names"),
    [
        pytest.param({}, "filter", ("Taint", "Fit"), id="defaults"),
        pytest.param(
            {"filter": enabled("Fit")}, "filter", ("Fit", "Taint"), id="placed-anew-comes-first"
        ),
        pytest.param(
            {"filter": enabled("Mine", "Fit")},
            "filter",
            ("Fit", "Taint", "Mine"),
            id="only-here-comes-last",
        ),
        pytest.param({"filter": disabled("Taint")}, "filter", ("Fit",), id="disabled-here"),
        pytest.param(
            {"filter": disabled("Taint")}, "score", ("Taint", "Fit", "Image"), id="only-there"
        ),
        pytest.param({"filter": disabled("*")}, "filter", (), id="all-disabled-here"),
        pytest.param(
            {"filter": enabled("Mine", "Fit", disabled=("*",))},
            "filter",
            ("Mine", "Fit"),
            id="only-these-in-their-order",
        ),
        pytest.param(
            {"filter": enabled("Taint", disabled=("Taint",))},
            "filter",
            ("Fit", "Taint"),
            id="disabled-and-enabled-here-moves-behind",
        ),
        pytest.param(
            {"multiPoint": disabled("Taint"), "filter": enabled("Taint")},
            "filter",
            ("Fit", "Taint"),
            id="a-point-goes-before-multiPoint",
        ),
        pytest.param(
            {"multiPoint": disabled("Taint"), "filter": enabled("Taint")},
            "score",
            ("Fit", "Image"),
            id="but-only-there",
        ),
        pytest.param(
            {"multiPoint": enabled("Mine")}, "filter", ("Taint", "Fit", "Mine"), id="spread-behind"
        ),
        pytest.param(
            {"multiPoint": enabled("Mine"), "filter": disabled("Mine")},
            "filter",
            ("Taint", "Fit"),
            id="spread-but-not-here",
        ),
    ],
)
def test_plugins_run_in_order(
    sets: dict[str, PluginSet], point: str, names: tuple[str, ...]
) -> None:
    assert order(sets).points[point] == names


@pytest.mark.parametrize(
    ("sets", "weights"),
    [
        pytest.param({}, {"Taint": 3, "Fit": 2, "Image": 1}, id="defaults"),
        pytest.param(
            {"score": enabled(("Fit", 7))}, {"Taint": 3, "Fit": 7, "Image": 1}, id="at-score"
        ),
        pytest.param(
            {"multiPoint": enabled(("Fit", 7))},
            {"Taint": 3, "Fit": 7, "Image": 1},
            id="at-multiPoint",
        ),
        pytest.param(
            {"score": enabled(("Fit", 5)), "multiPoint": enabled(("Fit", 7))},
            {"Taint": 3, "Fit": 5, "Image": 1},
            id="score-goes-before-multiPoint",
        ),
        pytest.param(
            {"score": enabled("Fit"), "multiPoint": enabled(("Fit", 7), "Taint")},
            {"Taint": 1, "Fit": 1, "Image": 1},
            id="none-given-means-one",
        ),
        pytest.param(
            {"score": enabled(("Fit", 0))}, {"Taint": 3, "Fit": 1, "Image": 1}, id="zero-means-one"
        ),
        pytest.param(
            {"score": disabled("Fit", "Image")}, {"Taint": 3}, id="only-of-plugins-that-score"
        ),
        pytest.param(
            {"filter": enabled(("Fit", 9))}, {"Taint": 3, "Fit": 2, "Image": 1}, id="else"
        ),
    ],
)
def test_weights(sets: dict[str, PluginSet], weights: dict[str, int]) -> None:
    assert dict(order(sets).score_weights) == weights


some_names = st.lists(st.sampled_from(sorted(SERVES)), unique=True, max_size=4)
some_sets = st.builds(
    lambda on, off: enabled(*on, disabled=tuple(off)),
    some_names,
    st.lists(st.sampled_from([*sorted(SERVES), "*"]), max_size=3),
)


@given(multi_point=some_sets, filters=some_sets)
def test_a_plugin_runs_once_and_only_where_it_serves(
    multi_point: PluginSet, filters: PluginSet
) -> None:
    filters = PluginSet(
        tuple(entry for entry in filters.enabled if "filter" in SERVES[entry.name]),
        filters.disabled,
    )
    for point, names in order({"multiPoint": multi_point, "filter": filters}).points.items():
        assert len(set(names)) == len(names)
        assert all(point in SERVES[name] for name in names)


@given(multi_point=some_sets, filters=some_sets)
def test_what_a_point_enables_runs_there(multi_point: PluginSet, filters: PluginSet) -> None:
    wanted = {entry.name for entry in filters.enabled if "filter" in SERVES[entry.name]}
    assert wanted <= set(order({"multiPoint": multi_point, "filter": filters}).points["filter"])


@given(multi_point=some_sets, filters=some_sets)
def test_what_a_point_disables_runs_there_only_if_it_enables_it(
    multi_point: PluginSet, filters: PluginSet
) -> None:
    running = set(order({"multiPoint": multi_point, "filter": filters}).points["filter"])
    wanted = {entry.name for entry in filters.enabled}
    assert not {name for name in running - wanted if filters.disables(name)}

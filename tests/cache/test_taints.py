from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import Taint, Toleration
from cache.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    ToleratedTaints,
    find_untolerated,
    tolerates,
)
from tests import strategies

TAINT = Taint(key="dedicated", value="a", effect=NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("dedicated", "Equal", "a", NO_SCHEDULE), True, id="equal"),
        pytest.param(Toleration("dedicated", "", "a", NO_SCHEDULE), True, id="equal by default"),
        pytest.param(Toleration("dedicated", "Equal", "b"), False, id="other value"),
        pytest.param(Toleration("gpu", "Equal", "a"), False, id="other key"),
        pytest.param(Toleration("dedicated", "Equal", "a", NO_EXECUTE), False, id="other effect"),
        pytest.param(Toleration("dedicated", "Equal", "a"), True, id="any effect"),
        pytest.param(Toleration("dedicated", "Exists"), True, id="any value"),
        pytest.param(Toleration("dedicated", "Exists", "b"), True, id="value beside Exists"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("", "Exists", effect=NO_EXECUTE), False, id="all of an effect"),
        pytest.param(Toleration("", "", "a"), True, id="any key with the same value"),
        pytest.param(Toleration("dedicated", "In", "a"), False, id="unknown operator"),
        pytest.param(Toleration(), False, id="empty toleration, taint with a value"),
    ],
)
def test_a_toleration_covers_taints_by_key_value_and_effect(
    toleration: Toleration, expected: bool
) -> None:
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize("operator", ["Lt", "Gt"])
def test_numeric_tolerations_cover_nothing(operator: str) -> None:
    taint = Taint(key="sla", value="5", effect=NO_SCHEDULE)
    assert not any(tolerates(Toleration("sla", operator, value), taint) for value in "456")


@pytest.mark.parametrize(
    ("effects", "tolerations", "expected"),
    [
        pytest.param({NO_SCHEDULE, NO_EXECUTE}, (), 1, id="the first one that counts"),
        pytest.param({PREFER_NO_SCHEDULE}, (), 0, id="another effect counts"),
        pytest.param({NO_SCHEDULE, NO_EXECUTE}, (Toleration("b", "Exists"),), 2, id="the next"),
        pytest.param({NO_SCHEDULE, NO_EXECUTE}, (Toleration("", "Exists"),), None, id="none"),
        pytest.param(set(), (), None, id="no effect counts"),
    ],
)
def test_the_first_taint_that_counts_and_is_not_tolerated_is_found(
    effects: set[str], tolerations: tuple[Toleration, ...], expected: int | None
) -> None:
    taints = (
        Taint("a", effect=PREFER_NO_SCHEDULE),
        Taint("b", effect=NO_SCHEDULE),
        Taint("c", effect=NO_EXECUTE),
    )
    found = find_untolerated(taints, tolerations, effects)
    assert found == (None if expected is None else taints[expected])


@settings(deadline=None)
@given(
    st.lists(strategies.taints(), max_size=3),
    st.lists(strategies.tolerations(), max_size=3),
    strategies.tolerations(),
)
def test_one_more_toleration_never_makes_a_node_worse(
    taints: list[Taint], tolerations: list[Toleration], another: Toleration
) -> None:
    effects = {NO_SCHEDULE, NO_EXECUTE}
    if find_untolerated(taints, tolerations, effects) is None:
        assert find_untolerated(taints, [*tolerations, another], effects) is None


@given(tolerations=st.lists(strategies.tolerations(), max_size=8), taint=strategies.taints())
def test_what_many_tolerations_cover_is_what_each_of_them_covers(
    tolerations: list[Toleration], taint: Taint
) -> None:
    expected = any(tolerates(each, taint) for each in tolerations)
    assert (taint in ToleratedTaints(tolerations)) == expected

"""Plain values behave like frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cache.value import Value


class Placed(Value, frozen=True):
    """A value."""

    node: str
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """Another class with the same fields."""

    node: str
    pods: tuple[str, ...] = ()


def test_a_value_is_equal_to_another_with_the_same_fields() -> None:
    assert Placed("n1", ("a",)) == Placed("n1", pods=("a",))
    assert Placed("n1") != Placed("n2")
    assert Placed("n1") != Other("n1")


def test_equal_values_are_one_key() -> None:
    assert len({Placed("n1"), Placed("n1"), Placed("n2")}) == 2


def test_a_value_cannot_be_changed() -> None:
    placed = Placed("n1")
    with pytest.raises(AttributeError):
        placed.node = "n2"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        placed.more = 1  # type: ignore[attr-defined]


def test_a_value_is_shown_as_a_dataclass_is() -> None:
    assert repr(Placed("n1", ("a",))) == repr(Other("n1", ("a",))).replace("Other", "Placed")

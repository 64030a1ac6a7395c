from __future__ import annotations

import pytest

from scheduler.config import ConfigError, Mistake
from scheduler.config.config_error import child, did_you_mean, item, shown


def test_one_mistake_is_one_line() -> None:
    assert str(ConfigError("a.b", "is bad")) == "a.b: is bad"


def test_the_source_comes_first() -> None:
    assert str(ConfigError("a", "is bad", source="f.yaml")) == "f.yaml: a: is bad"


def test_a_mistake_of_the_whole_file_has_no_path() -> None:
    assert str(ConfigError("", "is empty", source="f.yaml")) == "f.yaml: is empty"


def test_several_mistakes_are_counted_and_listed() -> None:
    error = ConfigError.of([Mistake("a", "is bad"), Mistake("b", "is worse")], "f.yaml")
    assert str(error) == "f.yaml: 2 mistakes:\n  a: is bad\n  b: is worse"
    assert (error.path, error.why) == ("a", "is bad")


def test_a_message_is_not_endless() -> None:
    error = ConfigError.of([Mistake(f"a[{n}]", "is bad") for n in range(20_000)])
    assert str(error).endswith("a[49]: is bad\n  ... and 19950 more")
    assert len(error.mistakes) == 20_000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(child("", "profiles"), "profiles", id="top"),
        pytest.param(child("a", "b"), "a.b", id="field"),
        pytest.param(item("a", 3), "a[3]", id="item"),
        pytest.param(child("a", "example.com/x"), "a[example.com/x]", id="key-with-dots"),
        pytest.param(child("a", "k" * 500), "a." + "k" * 80, id="endless-key"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="true"),
        pytest.param(1.5, "1.5", id="number"),
        pytest.param("a\nb", "'a\\nb'", id="text-on-one-line"),
        pytest.param("x" * 100_000, repr("x" * 80 + "..."), id="endless-text"),
        pytest.param([1], "a list", id="list"),
        pytest.param({}, "a mapping", id="mapping"),
    ],
)
def test_values_are_shown_on_one_short_line(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("schedulername", "; did you mean schedulerName?", id="other-case"),
        pytest.param("schedulersName", "; did you mean schedulerName?", id="a-letter-more"),
        pytest.param("colour", "", id="nothing-near"),
    ],
)
def test_the_nearest_name_is_offered(name: str, hint: str) -> None:
    assert did_you_mean(name, ["plugins", "schedulerName"]) == hint

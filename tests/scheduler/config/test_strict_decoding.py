from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from plugins.framework.go_duration import GoDuration
from scheduler.config.strict_decoding import decode


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1


class Open(msgspec.Struct, frozen=True):
    name: str = ""


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    on_time: GoDuration = GoDuration(5)
    items: tuple[Inner, ...] = ()
    by_name: dict[str, int] = {}
    flag: bool | None = None
    rate: float = 1.0
    secret: bytes = b""
    big: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    inner: Inner | None = None
    either: int | str = 0
    open: Open = Open()
    raw: object = None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({}, Outer(), id="nothing"),
        pytest.param({"onTime": "1m"}, Outer(on_time=GoDuration(60 * 10**9)), id="duration"),
        pytest.param({"onTime": None, "items": None, "rate": None}, Outer(), id="nulls"),
        pytest.param({"big": 7.0}, Outer(big=7), id="whole-number-written-as-a-float"),
        pytest.param({"rate": 7}, Outer(rate=7.0), id="float-written-as-an-integer"),
        pytest.param({"secret": "aG\nk=\n"}, Outer(secret=b"hi"), id="base64-over-lines"),
        pytest.param({"items": [{"name": "a"}]}, Outer(items=(Inner("a"),)), id="list"),
        pytest.param({"inner": {"name": "a", "weight": None}}, Outer(inner=Inner("a")), id="inner"),
        pytest.param({"byName": {"a": 1}}, Outer(by_name={"a": 1}), id="mapping"),
        pytest.param({"either": "x"}, Outer(either="x"), id="choice"),
        pytest.param({"open": {"name": "a", "x": 1}}, Outer(open=Open("a")), id="lenient-struct"),
        pytest.param({"raw": {"a": [None]}}, Outer(raw={"a": [None]}), id="anything"),
    ],
)
def test_data_becomes_a_struct(data: Any, expected: Outer) -> None:
    assert decode(data, Outer, "") == (expected, [])


@pytest.mark.parametrize(
    ("data", "mistake"),
    [
        pytest.param([], "must be a mapping, not a list", id="no-mapping"),
        pytest.param({"on_time": "1m"}, "on_time: unknown field; did you mean onTime?", id="name"),
        pytest.param({"colour": 1}, "colour: unknown field", id="unknown"),
        pytest.param({"onTime": 5}, "onTime: must be a duration like '1m30s', not 5", id="no-text"),
        pytest.param(
            {"onTime": "5"},
            "onTime: '5' lacks a unit; a duration is written like '1m30s'",
            id="dur",
        ),
        pytest.param({"items": {}}, "items: must be a list, not a mapping", id="no-list"),
        pytest.param({"items": "ab"}, "items: must be a list, not 'ab'", id="text-is-no-list"),
        pytest.param({"items": [None]}, "items[0]: must be a mapping, not null", id="null-in-list"),
        pytest.param({"items": [{}]}, "items[0].name: is required", id="required"),
        pytest.param({"items": [{"name": None}]}, "items[0].name: is required", id="required-null"),
        pytest.param({"inner": {"name": 1}}, "inner.name: must be text, not 1", id="no-name"),
        pytest.param({"flag": "yes"}, "flag: must be true or false, not 'yes'", id="no-boolean"),
        pytest.param({"flag": 1}, "flag: must be true or false, not 1", id="one-is-not-true"),
        pytest.param({"big": True}, "big: must be a whole number, not true", id="true-is-not-one"),
        pytest.param({"big": 1.5}, "big: must be a whole number, not 1.5", id="fraction"),
        pytest.param({"big": "1"}, "big: must be a whole number, not '1'", id="text-is-no-number"),
        pytest.param({"rate": "x"}, "rate: must be a number, not 'x'", id="no-number"),
        pytest.param({"big": -1}, "big: must be at least 0, not -1", id="below-an-open-range"),
        pytest.param(
            {"inner": {"name": "a", "weight": 101}},
            "inner.weight: must be from 1 to 100, not 101",
            id="out-of-range",
        ),
        pytest.param({"secret": "a b"}, "secret: is not base64", id="no-base64"),
        pytest.param({"secret": 1}, "secret: must be text in base64, not 1", id="bytes-no-text"),
        pytest.param(
            {"byName": {"x.y": "a"}}, "byName[x.y]: must be a whole number, not 'a'", id="m"
        ),
        pytest.param({"either": []}, "either: Expected `int | str`, got `array`", id="choice"),
    ],
)
def test_a_mistake_is_named_with_its_path(data: Any, mistake: str) -> None:
    value, mistakes = decode(data, Outer, "")
    assert value is None
    assert [str(each) for each in mistakes] == [mistake]


def test_paths_start_where_the_data_stands() -> None:
    _, mistakes = decode({"items": [{}], "either": []}, Outer, "a.args")
    assert [each.path for each in mistakes] == ["a.args.items[0].name"]
    _, mistakes = decode({"either": []}, Outer, "a.args")
    assert [each.path for each in mistakes] == ["a.args.either"]


def test_all_mistakes_are_found() -> None:
    data = {"items": [{"weight": 0}, {"name": "a", "colour": 1}], "flag": 1, "x": 1}
    _, mistakes = decode(data, Outer, "")
    assert [each.path for each in mistakes] == [
        "items[0].weight",
        "items[0].name",
        "items[1].colour",
        "flag",
        "x",
    ]

from __future__ import annotations

import msgspec

from cache.device_objects import Device
from cache.shared_values import SharedValues


def decoded(json: bytes) -> Device:
    return msgspec.json.decode(json, type=Device)


def test_equal_values_become_one() -> None:
    values: SharedValues[list[int]] = SharedValues()
    first, second = [1], [1]
    assert values.share("a", first) is first
    assert values.share("a", second) is first


def test_only_so_many_values_are_kept() -> None:
    values: SharedValues[int] = SharedValues(most=10)
    for number in range(1000):
        values.share(number, number)
    assert len(values) <= 20


def test_a_value_in_use_stays() -> None:
    values: SharedValues[object] = SharedValues(most=10)
    kept = values.share("kept", object())
    for number in range(1000):
        values.share(number, number)
        assert values.share("kept", object()) is kept


def test_devices_share_equal_attributes_and_capacities() -> None:
    json = (
        b'{"name": "%s", "attributes": {"model": {"string": "a"}, "uuid": {"string": "%s"}},'
        b' "capacity": {"memory": {"value": "1Gi"}}}'
    )
    one, other, third = (
        decoded(json % each) for each in [(b"a", b"1"), (b"b", b"2"), (b"c", b"1")]
    )
    assert one.capacity is other.capacity
    assert one.attributes is third.attributes
    assert one.attributes["model"] is other.attributes["model"]
    assert one.attributes["uuid"] != other.attributes["uuid"]


def test_one_and_true_stay_what_they_are() -> None:
    number = decoded(b'{"attributes": {"x": {"int": 1}}}')
    flag = decoded(b'{"attributes": {"x": {"bool": true}}}')
    assert number.attributes["x"].int_value == 1
    assert flag.attributes["x"].int_value is None


def test_a_capacity_keeps_its_text() -> None:
    texts = [
        str(decoded(b'{"capacity": {"m": {"value": %s}}}' % value).capacity["m"].value)
        for value in (b"1", b"1.0", b'"1"')
    ]
    assert texts == ["1", "1.0", "1"]

"""What expressions read of a device, and that nothing else decides."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cache.device_objects import Device
from plugins.cel import CompileError, DeviceView, EvaluationError, compile_expression
from plugins.dynamic_resources.pooled_device import PooledDevice
from tests.device_builders import resource_slice
from tests.parity.cel_cases import devices, expressions

if TYPE_CHECKING:
    from plugins.cel.program import Program

A = 'device.attributes["a.example.com"]'
C = 'device.capacity["a.example.com"]'


def sizes(*texts: str) -> list[int | None]:
    found = [compile_expression(text).projection for text in texts]
    return [None if each is None else each.size for each in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param('device.driver == "a.example.com"', 0, id="driver"),
        pytest.param("device.allowMultipleAllocations == true", 0, id="shared"),
        pytest.param("true", 0, id="nothing"),
        pytest.param(f'{A}.model == "x"', 1, id="one attribute"),
        pytest.param(f'{A}["model"] == "x" || {A}.model == "y"', 1, id="twice the same"),
        pytest.param(f"has({A}.model)", 1, id="whether it is there"),
        pytest.param(f'{A}.n > 1 && {C}.memory.compareTo(quantity("1Gi")) > 0', 2, id="two"),
        pytest.param(f"[1, 2].exists(n, {A}.n == n)", 1, id="in a loop"),
        pytest.param(f"{A}.?n.orValue(1) == 1", None, id="what may be missing"),
        pytest.param('"a.example.com" in device.attributes', None, id="all domains"),
        pytest.param(f"{A}.exists(name, name == 'n')", None, id="a whole domain"),
        pytest.param(f"cel.bind(mine, {A}, mine.n == 1)", None, id="a domain by another name"),
        pytest.param("cel.bind(device, [1], device[0] == 1)", None, id="another device"),
        pytest.param("[1].all(device, device == 1)", None, id="a loop over devices"),
        pytest.param("device.attributes[device.driver].n == 1", None, id="a computed domain"),
    ],
)
def test_what_an_expression_reads(expression: str, expected: int | None) -> None:
    assert sizes(expression) == [expected]


def test_a_value_that_is_there_under_both_names_is_not_told_apart() -> None:
    projection = compile_expression(f"{A}.n == 1").projection
    assert projection is not None
    attributes: dict[str, Any] = {"n": 1, "a.example.com/n": 2}
    assert projection.key("a.example.com", False, attributes, {}) is None
    assert projection.key("b.example.com", False, attributes, {}) is not None


def test_devices_with_equal_keys_have_equal_results() -> None:
    random = Random(16)
    compared = 0
    for _ in range(250):
        try:
            program = compile_expression(str(expressions(random)))
        except CompileError:
            continue
        if program.projection is None:
            continue
        one, other = devices(random), devices(random)
        for field in ("attributes", "capacity"):
            names = {**one[field], **other[field]}
            for name in names:
                changed = {**one, field: {**one[field]}}
                changed[field].pop(name, None)
                if name in other[field] and random.random() < 0.7:
                    changed[field][name] = other[field][name]
                if key(program, changed) == key(program, one) is not None:
                    compared += 1
                    assert answer(program, changed) == answer(program, one), program.text
    assert compared > 100


def pooled(json: dict[str, Any]) -> PooledDevice:
    fields = ("attributes", "capacity", "allowMultipleAllocations")
    device = msgspec.convert({"name": "d", **{f: json[f] for f in fields if f in json}}, Device)
    published = resource_slice("s", driver=json["driver"]).build()
    return PooledDevice(published, device)


def key(program: Program, json: dict[str, Any]) -> object:
    device = pooled(json)
    if program.projection is None or not device.is_well_formed:
        return None
    known = device.device
    return program.projection.key(
        device.id.driver, device.is_shared, known.attributes, known.capacity
    )


def answer(program: Program, json: dict[str, Any]) -> object:
    device = pooled(json)
    view: DeviceView = device.view
    try:
        return program.matches(view)
    except EvaluationError as error:
        return str(error)

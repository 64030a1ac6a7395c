"""Selectors, as kube-scheduler compiles and evaluates them."""

from __future__ import annotations

import pytest

from cache.device_objects import DeviceAttribute
from plugins.cel import CompileError, DeviceView, EvaluationError, compile_expression

DRIVER = "d.example.com"


def device(**changes: object) -> DeviceView:
    """Return a device with an attribute of each type and a capacity."""
    attributes = {
        "model": DeviceAttribute(string_value="a100"),
        "numa": DeviceAttribute(int_value=1),
        "ok": DeviceAttribute(bool_value=True),
        "version": DeviceAttribute(version_value="1.2.3"),
        "other.example.com/model": DeviceAttribute(string_value="other"),
    }
    given = {"driver": DRIVER, "attributes": attributes, "capacity": {"memory": "80Gi"}} | changes
    return DeviceView(**given)  # type: ignore[arg-type]


MINE = f'device.attributes["{DRIVER}"]'
MEMORY = f'device.capacity["{DRIVER}"].memory'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(f'device.driver == "{DRIVER}"', True, id="driver"),
        pytest.param('device.driver == "e"', False, id="another-driver"),
        pytest.param(f'{MINE}.model == "a100"', True, id="string"),
        pytest.param(f"{MINE}.numa == 1", True, id="int"),
        pytest.param(f"{MINE}.ok", True, id="bool"),
        pytest.param(f'{MINE}.version.isGreaterThan(semver("1.2.0"))', True, id="version"),
        pytest.param('device.attributes["other.example.com"].model == "other"', True, id="domain"),
        pytest.param(f'{MEMORY}.compareTo(quantity("40Gi")) > 0', True, id="quantity"),
        pytest.param(f'{MEMORY} == quantity("80Gi")', True, id="quantities-equal"),
        pytest.param("device.allowMultipleAllocations", False, id="not-shared"),
        pytest.param("has(device.attributes.unknown)", True, id="has-finds-any-domain"),
        pytest.param('"unknown" in device.attributes', False, id="in-does-not"),
        pytest.param('"x" in device.attributes["unknown"]', False, id="unknown-domain-is-empty"),
        pytest.param(f"has({MINE}.none) && {MINE}.none == 1", False, id="guard"),
        pytest.param(f'{MINE}.none == 1 || {MINE}.model == "a100"', True, id="or-absorbs"),
        pytest.param(f"{MINE}.?none.orValue(7) == 7", True, id="optional"),
        pytest.param(f"cel.bind(mine, {MINE}, mine.ok && mine.numa == 1)", True, id="bind"),
        pytest.param(f"{MINE}.numa == 1.0", True, id="numbers-of-any-type"),
        pytest.param(f"{MINE}.ok == 1", False, id="bool-is-no-number"),
    ],
)
def test_a_selector_says_whether_the_device_matches(expression: str, expected: bool) -> None:
    assert compile_expression(expression).matches(device()) is expected


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        pytest.param(f"{MINE}.none", "no such key: none", id="missing"),
        pytest.param('device.attributes["x"].none', "no such key: none", id="missing-in-unknown"),
        pytest.param(f'{MINE}.version == "1.2.3"', "no such overload", id="version-and-string"),
        pytest.param(f"1 / ({MINE}.numa - 1) == 1", "division by zero", id="division"),
        pytest.param(
            f"{MINE}.numa",
            "CEL result of type int could not be converted to bool: "
            "unsupported type conversion from 'int' to bool",
            id="result-is-no-bool",
        ),
        pytest.param(
            "lists.range(1000).all(x, lists.range(1000).all(y, x >= 0 && y >= 0))",
            "operation cancelled: actual cost limit exceeded",
            id="budget",
        ),
    ],
)
def test_an_evaluation_fails_with_the_text_of_kube_scheduler(expression: str, error: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        compile_expression(expression).matches(device())
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        pytest.param(
            "devices.driver",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices' "
            "(in container '')\n | devices.driver\n | ^",
            id="undeclared",
        ),
        pytest.param(
            "device.drivers == 'a'",
            "compilation failed: ERROR: <input>:1:7: undefined field 'drivers'\n"
            " | device.drivers == 'a'\n | ......^",
            id="undefined-field",
        ),
        pytest.param(
            "device.driver == 1",
            "compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_' "
            "applied to '(string, int)'\n | device.driver == 1\n | ..............^",
            id="no-overload",
        ),
        pytest.param(
            "device.driver",
            "must evaluate to bool or the unknown type, not string",
            id="result-is-a-string",
        ),
    ],
)
def test_what_does_not_compile_has_the_text_of_kube_scheduler(expression: str, error: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_expression(expression)
    assert str(raised.value) == error


def test_an_attribute_that_is_no_version_makes_every_evaluation_fail() -> None:
    broken = device(attributes={"v": DeviceAttribute(version_value="one")})
    with pytest.raises(EvaluationError, match=r"^attribute v: parse semantic version: No Major"):
        compile_expression("true").matches(broken)


def test_equal_devices_have_equal_views() -> None:
    assert device() == device()
    assert hash(device()) == hash(device())


def test_a_number_and_a_truth_value_are_different_attributes() -> None:
    number = device(attributes={"a": DeviceAttribute(int_value=1)})
    assert number != device(attributes={"a": DeviceAttribute(bool_value=True)})

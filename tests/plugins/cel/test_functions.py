"""Functions and operators of the language, one by one."""

from __future__ import annotations

import pytest

from plugins.cel import CompileError, DeviceView, EvaluationError, compile_expression
from tests.plugins.cel.cel_rows import BAD, ERRORS, TRUE

NO_DEVICE = DeviceView("d.example.com", {}, {})


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(each, id=f"{name}-{i}")
        for name, some in TRUE.items()
        for i, each in enumerate(some)
    ],
)
def test_an_expression_is_true(expression: str) -> None:
    assert compile_expression(expression).matches(NO_DEVICE)


@pytest.mark.parametrize(("expression", "error"), ERRORS)
def test_a_wrong_call_fails_with_the_text_of_kube_scheduler(expression: str, error: str) -> None:
    program = compile_expression(expression)
    with pytest.raises(EvaluationError) as raised:
        program.matches(NO_DEVICE)
    assert str(raised.value) == error


@pytest.mark.parametrize("expression", BAD)
def test_what_is_no_selector_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_expression(expression)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ("device.driver == 'd.example.com'", 4),
        ("has(device.attributes.a)", 2),
        ("'a' in device.attributes", 3),
        ("1 in [1, 2, 3]", 0),
        ("[1, 2, 3] == [1, 2, 3]", 1),
        ("[device.driver] == ['a']", 13),
        ("{'a': device.driver}.a == ''", 34),
        ("true ? true : device.driver == ''", 0),
        ("[1, 2].all(x, x > 0)", 11),
        ("[1, 2].map(x, x).size() == 2", 29),
        ("cel.bind(d, device.driver, d == d)", 6),
        ("'aaaaaaaaaaa'.contains('a')", 2),
        ("'aaaaaaaaaaa'.matches('a')", 2),
        ("lists.range(100).size() == 100", 113),
        ("[3, 1, 2].sort() == [1, 2, 3]", 30),
        ("quantity('1') == quantity('1')", 3),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", 3),
        ("format.dns1123Label().validate('a').hasValue()", 10),
        ("device.attributes.a.?b.orValue(false)", 3),
    ],
)
def test_an_evaluation_costs_what_it_costs_kube_scheduler(expression: str, cost: int) -> None:
    assert compile_expression(expression).evaluate(NO_DEVICE)[1] == cost

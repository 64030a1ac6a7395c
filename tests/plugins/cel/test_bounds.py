"""Whatever the text, an expression has an answer, in bounded time and memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.device_objects import DeviceAttribute
from plugins.cel import (
    COST_LIMIT_EXCEEDED,
    CompileError,
    DeviceView,
    EvaluationError,
    compile_expression,
)
from tests.plugins.cel.cel_rows import BAD, ERRORS, TRUE

DEVICE = DeviceView(
    "d.example.com",
    {"model": DeviceAttribute(string_value="a100"), "numa": DeviceAttribute(int_value=1)},
    {"memory": "80Gi"},
)
GOOD = [each for some in TRUE.values() for each in some] + [text for text, _ in ERRORS]
WORDS = [
    *"()[]{}.,?:+-*/%!<>",
    *("&&", "||", "==", "!=", "<=", ">=", " in ", "true", "false", "null", "1", "2u", "1.5", "'a'"),
    *("b'a'", "x", "device", "driver", "attributes", "capacity", "has(", "cel.bind(", ".all(x,"),
    *(".map(x,", ".exists(x,", ".size()", "size(", "dyn(", "quantity('1')", "[?", ".?", "r'\\'"),
    *(
        "optional.none()",
        ".orValue(",
        ".format([",
        "'%s'",
        "matches(",
        "\n",
        "'''",
        "0x",
        "\\",
        "@",
    ),
]


def answer(text: str) -> bool | str:
    """Return what the expression says of the device, or its error."""
    try:
        return compile_expression(text).matches(DEVICE)
    except (CompileError, EvaluationError) as error:
        return str(error)


@given(st.text(st.characters(max_codepoint=0x2FFF), max_size=100))
def test_any_text_has_an_answer(text: str) -> None:
    answer(text)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_row_of_words_has_an_answer(words: list[str]) -> None:
    answer("".join(words))


@given(st.sampled_from(GOOD + BAD), st.integers(0, 200), st.integers(0, 5), st.text(max_size=3))
def test_any_expression_with_a_change_has_an_answer(
    text: str, start: int, length: int, instead: str
) -> None:
    answer(text[:start] + instead + text[start + length :])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 5000 + "true" + ")" * 5000, id="parentheses"),
        pytest.param("[" * 5000 + "]" * 5000, id="lists"),
        pytest.param("{1:" * 3000 + "1" + "}" * 3000, id="maps"),
        pytest.param("!" * 10000 + "true", id="not"),
        pytest.param("-" * 10000 + "1 == 1", id="minus"),
        pytest.param("1" + "+1" * 5000 + " > 0", id="sum"),
        pytest.param("device" + ".a" * 5000, id="fields"),
        pytest.param("device" + "[0]" * 3000, id="indices"),
        pytest.param("''" + ".trim()" * 1400 + " == ''", id="methods"),
        pytest.param("true ? true : " * 700 + "true", id="ternaries"),
        pytest.param("[1].all(x, " * 900 + "true" + ")" * 900, id="loops"),
        pytest.param("cel.bind(a, 1, " * 600 + "true" + ")" * 600, id="bindings"),
        pytest.param("optional.of(1)" + ".optMap(x, x)" * 700 + " == optional.of(1)", id="optMap"),
        pytest.param("size(" * 2000 + "''" + ")" * 2000 + " == 0", id="calls"),
        pytest.param("dyn(" * 2000 + "true" + ")" * 2000, id="conversions"),
        pytest.param("true" + " && true" * 1200, id="and"),
        pytest.param("true == " * 1200 + "true", id="relations"),
        pytest.param("'" + "a" * 10000, id="open-string"),
        pytest.param("'''" + "\\n" * 5000, id="open-long-string"),
        pytest.param("[" + "1," * 5000 + "] == []", id="long-list"),
        pytest.param("9" * 10000 + " == 1", id="long-number"),
        pytest.param("1e" + "9" * 9000 + " == 1.0", id="long-exponent"),
        pytest.param("a" * 20000, id="too-long"),
    ],
)
def test_a_deep_or_long_expression_has_an_answer(text: str) -> None:
    before = sys.getrecursionlimit()
    answer(text)
    assert sys.getrecursionlimit() == before


def test_a_long_chain_of_conditions_is_no_deep_tree() -> None:
    assert answer(" && ".join(["device.driver != ''"] * 400)) is True


def doubled(first: str, step: str, times: int, last: str) -> str:
    """Return an expression that applies ``step`` to what it has, time after time."""
    text = f"cel.bind(a0, {first}, "
    for index in range(times):
        text += f"cel.bind(a{index + 1}, {step.replace('#', f'a{index}')}, "
    return text + last.replace("#", f"a{times}") + ")" * (times + 1)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(doubled("'aaaaaaaaaa'", "# + #", 40, "# == ''"), id="strings"),
        pytest.param(doubled("b'aaaaaaaaaa'", "# + #", 40, "# == b''"), id="bytes"),
        pytest.param(doubled("[1, 2]", "# + #", 40, "#.size() == 0"), id="lists"),
        pytest.param(doubled("'aa'", "#.replace('a', 'aaaaaaaa')", 20, "# == ''"), id="replace"),
        pytest.param(doubled("'aa'", "'%s%s%s'.format([#, #, #])", 40, "# == ''"), id="format"),
        pytest.param(doubled("'aa'", "[#, #, #].join(#)", 20, "# == ''"), id="join"),
        pytest.param(doubled("[1, 2]", "[#, #]", 30, "# == #"), id="equal"),
        pytest.param(doubled("[1, 2]", "[#, #]", 30, "#.indexOf([]) == 0"), id="index"),
        pytest.param(doubled("[1, 2]", "[#, #]", 30, "'%s'.format([#]) == ''"), id="print"),
        pytest.param("lists.range(9000000000000000000).size() == 1", id="range"),
        pytest.param("lists.range(3000).distinct().size() == 1", id="distinct"),
        pytest.param("lists.range(5000).sort().size() == 1", id="sort"),
        pytest.param("sets.contains(lists.range(2000), lists.range(2000))", id="sets"),
        pytest.param("'%.999999999f'.format([1.0]) == ''", id="precision"),
        pytest.param(
            "cel.bind(r, lists.range(9000), r.exists(x, r.filter(y, false).size() > 0))",
            id="free-loops",
        ),
        pytest.param(
            "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))", id="nested-loops"
        ),
    ],
)
def test_what_grows_without_end_runs_out_of_its_budget(text: str) -> None:
    assert answer(text) == COST_LIMIT_EXCEEDED


def test_targets_that_macros_use_twice_are_compiled_once() -> None:
    text = "optional.of(1)" + ".optMap(x, x)" * 40 + " == optional.of(1)"
    assert answer(text) == COST_LIMIT_EXCEEDED


def test_nothing_absorbs_the_end_of_the_budget() -> None:
    assert answer("lists.range(9000000).size() == 1 || true") == COST_LIMIT_EXCEEDED
    assert answer("true || lists.range(9000000).size() == 1") is True


def test_a_pattern_made_to_explode_does_not() -> None:
    text = "a" * 4000
    assert answer(f"'{text}'.matches('(a+)+(a+)+(a|aa)*b$')") is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quantity('1e2000000000').isInteger()", "unable to parse quantity's suffix"),
        (
            "quantity('1e-2000000000') == quantity('1e2000000000')",
            "unable to parse quantity's suffix",
        ),
    ],
)
def test_an_exponent_that_cannot_be_computed_is_refused(text: str, expected: str) -> None:
    assert answer(text) == expected

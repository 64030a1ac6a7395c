from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from cache.label_selectors import (
    EVERYTHING,
    GT,
    LT,
    NOTHING,
    NodeTermSelector,
    Requirement,
    Selector,
    compile_label_selector,
    compile_node_selector,
    compile_node_selector_term,
    parse_int64,
    selector_of_labels,
)
from cache.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from cache.resources import MalformedObjectError
from tests import strategies

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = None


def expression(text: str) -> NodeSelectorRequirement:
    """``key operator value,value`` as a requirement."""
    key, operator, *values = text.split(" ")
    return NodeSelectorRequirement(key, operator, tuple(values[0].split(",")) if values else ())


def term(*expressions: str, fields: tuple[str, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple(map(expression, expressions)),
        match_fields=tuple(map(expression, fields)),
    )


def label_expression(text: str) -> LabelSelectorRequirement:
    found = expression(text)
    return LabelSelectorRequirement(found.key, found.operator, found.values)


# --- requirements -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "matching", "failing"),
    [
        pytest.param("k In a,b", ["a", "b"], ["c", "", MISSING], id="In"),
        pytest.param("k NotIn a,b", ["c", "", MISSING], ["a", "b"], id="NotIn"),
        pytest.param("k Exists", ["a", ""], [MISSING], id="Exists"),
        pytest.param("k DoesNotExist", [MISSING], ["a", ""], id="DoesNotExist"),
        pytest.param("k Gt 5", ["6", "10", "06", "+6"], ["5", "4", "-6"], id="Gt"),
        pytest.param("k Lt 5", ["4", "-6", "0004"], ["5", "10"], id="Lt"),
        pytest.param(
            "k Gt 0",
            ["9223372036854775807"],
            [MISSING, "", "a", "1.5", " 1", "1_0", "0x1", "9223372036854775808"],
            id="Gt of no integer",
        ),
        pytest.param(
            "k Lt 0",
            ["-9223372036854775808"],
            [MISSING, "", "a", "-1.5", "-", "-9223372036854775809"],
            id="Lt of no integer",
        ),
    ],
)
def test_a_requirement_looks_at_one_value(
    text: str, matching: list[str | None], failing: list[str | None]
) -> None:
    (requirement,) = compile_node_selector_term(term(text)).requirements
    assert [requirement.matches_value(value) for value in matching] == [True] * len(matching)
    assert [requirement.matches_value(value) for value in failing] == [False] * len(failing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-007", -7, id="sign and zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="largest"),
        pytest.param("9223372036854775808", None, id="too large"),
        pytest.param("-9223372036854775808", -(2**63), id="smallest"),
        pytest.param("9" * 100_000, None, id="much too large"),
        pytest.param("\u0661", None, id="digit of another script"),
        pytest.param("1\n", None, id="line feed"),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, expected: int | None) -> None:
    assert parse_int64(text) == expected


def test_bounds_are_equal_by_their_number() -> None:
    one = compile_node_selector_term(term("k Gt 05"))
    assert one == compile_node_selector_term(term("k Gt 5"))
    assert hash(one) == hash(compile_node_selector_term(term("k Gt 5")))


# --- label selectors --------------------------------------------------------------------------


def test_no_selector_selects_nothing() -> None:
    selector = compile_label_selector(None)
    assert selector == NOTHING
    assert selector.nothing
    assert not selector.empty
    assert not selector.matches({})


def test_an_empty_selector_selects_everything() -> None:
    selector = compile_label_selector(LabelSelector())
    assert selector == EVERYTHING
    assert selector.empty
    assert selector.matches({})


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param({"a": "1"}, {"a": "1", "b": "2"}, True, id="label"),
        pytest.param({"a": "1"}, {"a": "2"}, False, id="other value"),
        pytest.param({"a": ""}, {}, False, id="an empty value is not a missing label"),
        pytest.param({"a": "1", "b": "2"}, {"a": "1"}, False, id="one of two labels"),
    ],
)
def test_all_labels_of_a_selector_must_match(
    selector: Mapping[str, str], labels: Mapping[str, str], expected: bool
) -> None:
    assert compile_label_selector(LabelSelector(match_labels=selector)).matches(labels) is expected
    assert selector_of_labels(selector).matches(labels) is expected


def test_labels_and_expressions_must_match_both() -> None:
    selector = compile_label_selector(
        LabelSelector(match_labels={"a": "1"}, match_expressions=(label_expression("b NotIn 2,3"),))
    )
    assert selector.matches({"a": "1"})
    assert not selector.matches({"a": "1", "b": "2"})
    assert not selector.matches({"b": "4"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            LabelSelector(match_labels={"a": "1"}),
            LabelSelector(match_expressions=(label_expression("a In 1"),)),
            id="a label and its expression",
        ),
        pytest.param(
            LabelSelector(match_labels={"a": "1", "b": "2"}),
            LabelSelector(match_labels={"b": "2", "a": "1"}),
            id="order of labels",
        ),
        pytest.param(
            LabelSelector(
                match_expressions=(label_expression("a In 1,2"), label_expression("b Exists"))
            ),
            LabelSelector(
                match_expressions=(label_expression("b Exists"), label_expression("a In 2,1,1"))
            ),
            id="order of expressions and values",
        ),
        pytest.param(
            LabelSelector(match_labels={"a": "1"}, match_expressions=(label_expression("a In 1"),)),
            LabelSelector(match_labels={"a": "1"}),
            id="repetition",
        ),
    ],
)
def test_selectors_are_equal_when_their_requirements_are(
    one: LabelSelector, other: LabelSelector
) -> None:
    assert compile_label_selector(one) == compile_label_selector(other)
    assert hash(compile_label_selector(one)) == hash(compile_label_selector(other))


def test_selectors_that_differ_are_not_equal() -> None:
    different = [
        EVERYTHING,
        NOTHING,
        selector_of_labels({"a": "1"}),
        selector_of_labels({"a": "2"}),
        selector_of_labels({"a": "1", "b": "1"}),
    ]
    assert len(set(different)) == len(different)
    assert EVERYTHING != ""


def test_more_requirements_narrow_a_selector_but_leave_nothing_nothing() -> None:
    more = (Requirement("b", "Exists"),)
    narrowed = selector_of_labels({"a": "1"}).with_requirements(more)
    assert narrowed.matches({"a": "1", "b": ""})
    assert not narrowed.matches({"a": "1"})
    assert NOTHING.with_requirements(more) == NOTHING


@pytest.mark.parametrize(
    ("selector", "path"),
    [
        pytest.param(
            LabelSelector(match_labels={"a b": "1"}), "s.matchLabels", id="key of a label"
        ),
        pytest.param(
            LabelSelector(match_labels={"a": "x y"}), "s.matchLabels[a]", id="value of a label"
        ),
        pytest.param(
            LabelSelector(match_labels={"a": "x" * 64}), "s.matchLabels[a]", id="value too long"
        ),
        pytest.param(
            LabelSelector(match_expressions=(label_expression("a In"),)),
            "s.matchExpressions[0].values",
            id="In without values",
        ),
        pytest.param(
            LabelSelector(match_expressions=(label_expression("a Exists 1"),)),
            "s.matchExpressions[0].values",
            id="Exists with values",
        ),
        pytest.param(
            LabelSelector(
                match_expressions=(label_expression("a Exists"), label_expression("a Gt 1"))
            ),
            "s.matchExpressions[1].operator",
            id="Gt is for nodes only",
        ),
        pytest.param(
            LabelSelector(match_expressions=(label_expression("a NotIn 1,-"),)),
            "s.matchExpressions[0].values[1]",
            id="value in an expression",
        ),
        pytest.param(
            LabelSelector(match_expressions=(label_expression("/a Exists"),)),
            "s.matchExpressions[0].key",
            id="key in an expression",
        ),
    ],
)
def test_a_malformed_selector_is_an_error_that_names_its_path(
    selector: LabelSelector, path: str
) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        compile_label_selector(selector, "s")
    assert caught.value.path == path


def test_labels_taken_as_they_are_may_be_no_labels() -> None:
    assert not selector_of_labels({"a": "x y"}).matches({"a": "x"})


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(EVERYTHING, "", id="everything"),
        pytest.param(NOTHING, "<nothing>", id="nothing"),
        pytest.param(
            Selector(
                [
                    Requirement("f", LT, frozenset(["7"])),
                    Requirement("e", GT, frozenset(["6"])),
                    Requirement("d", "DoesNotExist"),
                    Requirement("c", "Exists"),
                    Requirement("b", "NotIn", frozenset(["4", "3"])),
                    Requirement("a", "In", frozenset(["2", "1"])),
                    Requirement("a", "In", frozenset(["1"])),
                ]
            ),
            "a=1,a in (1,2),b notin (3,4),c,!d,e>6,f<7",
            id="every operator",
        ),
    ],
)
def test_a_selector_is_written_as_kubectl_writes_it(selector: Selector, text: str) -> None:
    assert str(selector) == text
    assert repr(selector) == f"Selector({text!r})"


def naive(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """The meaning of a selector, word for word."""
    for key, value in selector.match_labels.items():
        if key not in labels or labels[key] != value:
            return False
    for each in selector.match_expressions:
        holds = {
            "In": each.key in labels and labels[each.key] in each.values,
            "NotIn": each.key not in labels or labels[each.key] not in each.values,
            "Exists": each.key in labels,
            "DoesNotExist": each.key not in labels,
        }
        if not holds[each.operator]:
            return False
    return True


@settings(deadline=None)
@given(strategies.label_selectors(), strategies.labels())
def test_a_compiled_selector_means_what_was_written(
    selector: LabelSelector, labels: Mapping[str, str]
) -> None:
    assert compile_label_selector(selector).matches(labels) == naive(selector, labels)


@settings(deadline=None)
@given(strategies.label_selectors(), strategies.label_selectors(), strategies.labels())
def test_equal_selectors_match_alike(
    one: LabelSelector, other: LabelSelector, labels: Mapping[str, str]
) -> None:
    a, b = compile_label_selector(one), compile_label_selector(other)
    if a == b:
        assert hash(a) == hash(b)
        assert a.matches(labels) == b.matches(labels)


# --- node selectors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(term("zone In a"), True, id="label"),
        pytest.param(term("zone In b"), False, id="other label"),
        pytest.param(term("zone In a", "cores Gt 8"), False, id="all expressions must match"),
        pytest.param(term("zone In a", "cores Gt 7"), True, id="number"),
        pytest.param(term(fields=("metadata.name In n1",)), True, id="name"),
        pytest.param(term(fields=("metadata.name NotIn n1",)), False, id="other names"),
        pytest.param(
            term("zone In a", fields=("metadata.name In n2",)), False, id="labels and name"
        ),
        pytest.param(term(fields=("spec.x In n1",)), False, id="an unknown field is empty"),
        pytest.param(term(fields=("spec.x NotIn n1",)), True, id="an unknown field differs"),
        pytest.param(term(), False, id="an empty term matches nothing"),
    ],
)
def test_a_term_matches_labels_and_name(one: NodeSelectorTerm, expected: bool) -> None:
    compiled = compile_node_selector_term(one)
    assert compiled.errors == ()
    assert compiled.matches({"zone": "a", "cores": "8"}, "n1") is expected


def test_a_term_shows_its_requirements() -> None:
    compiled = compile_node_selector_term(term("zone In a", fields=("metadata.name In n1",)))
    assert compiled.requirements == (Requirement("zone", "In", frozenset({"a"})),)
    assert compiled.field_requirements == (Requirement("metadata.name", "In", frozenset({"n1"})),)
    assert not compiled.empty
    assert not compiled.nothing


@pytest.mark.parametrize(
    ("one", "paths"),
    [
        pytest.param(term("zone Is a"), ["t.matchExpressions[0].operator"], id="operator"),
        pytest.param(term("zone In x_"), ["t.matchExpressions[0].values[0]"], id="value"),
        pytest.param(term("cores Gt 1,2"), ["t.matchExpressions[0].values"], id="two bounds"),
        pytest.param(term("cores Lt x"), ["t.matchExpressions[0].values[0]"], id="no integer"),
        pytest.param(term("cores Gt -1"), ["t.matchExpressions[0].values[0]"], id="sign"),
        pytest.param(
            term(fields=("metadata.name In n1,n2",)), ["t.matchFields[0].values"], id="two names"
        ),
        pytest.param(
            term(fields=("metadata.name Exists",)), ["t.matchFields[0].operator"], id="field exists"
        ),
        pytest.param(
            term("zone In a", "zone In", "/ Exists", fields=("metadata.name In",)),
            [
                "t.matchExpressions[1].values",
                "t.matchExpressions[2].key",
                "t.matchFields[0].values",
            ],
            id="all that is wrong",
        ),
    ],
)
def test_a_malformed_term_tells_its_errors_and_matches_nothing(
    one: NodeSelectorTerm, paths: list[str]
) -> None:
    compiled = compile_node_selector_term(one, "t")
    assert [error.path for error in compiled.errors] == paths
    assert compiled.nothing
    assert not compiled.empty
    assert compiled.requirements == ()
    assert not compiled.matches({"zone": "a", "cores": "1"}, "n1")


def test_a_node_selector_matches_when_any_term_does() -> None:
    selector = compile_node_selector(NodeSelector((term("zone In a"), term("zone In b"))))
    assert selector.matches({"zone": "b"}, "n1")
    assert not selector.matches({"zone": "c"}, "n1")


def test_a_malformed_term_does_not_spoil_the_others() -> None:
    selector = compile_node_selector(NodeSelector((term(), term("zone Is a"), term("zone In b"))))
    assert [error.path for error in selector.errors] == [
        "nodeSelector.nodeSelectorTerms[1].matchExpressions[0].operator"
    ]
    assert selector.matches({"zone": "b"}, "n1")
    assert not selector.matches({"zone": "a"}, "n1")


def test_a_node_selector_without_terms_matches_nothing() -> None:
    selector = compile_node_selector(NodeSelector((term(),)))
    assert selector.terms == ()
    assert not selector.matches({}, "n1")


def test_terms_compare_by_their_requirements() -> None:
    one = compile_node_selector_term(term("a Exists", "b Exists"))
    assert one == compile_node_selector_term(term("b Exists", "a Exists"))
    assert one != compile_node_selector_term(term("b Exists"))
    assert one != "a,b"
    assert NodeTermSelector() != compile_node_selector_term(term(fields=("metadata.name In a",)))
    assert repr(one) == "NodeTermSelector('a, b', errors=0)"


@settings(deadline=None)
@given(strategies.node_selectors(), strategies.labels(), strategies.node_names())
def test_a_term_matches_when_each_of_its_requirements_does(
    selector: NodeSelector, labels: Mapping[str, str], name: str
) -> None:
    compiled = compile_node_selector(selector)
    assert compiled.errors == ()
    assert compiled.matches(labels, name) == any(
        all(each.matches_value(labels.get(each.key)) for each in one.requirements)
        and all(each.matches_value(name) for each in one.field_requirements)
        for one in compiled.terms
    )

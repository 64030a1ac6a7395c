from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.columns import Columns, NodesView
from cache.label_selectors import (
    NodeSelectorMatcher,
    NodeTermSelector,
    Requirement,
    compile_node_selector_term,
    selector_of_labels,
)
from cache.node_info import NodeInfo
from plugins.framework.attempt_budget import UNLIMITED, AttemptBudgetExceededError, ReplayedBudget
from plugins.label_masks import (
    MAX_BY_COLUMN,
    labels_mask,
    requirement_mask,
    requirements_mask,
    term_mask,
    together,
    weights_of_terms,
)
from plugins.required_node_affinity import any_term_mask
from tests import strategies
from tests.builders import names_term, node, requirement, term

if TYPE_CHECKING:
    from cache.objects import Node, NodeSelectorRequirement, NodeSelectorTerm

VALUES = {"absent": None, "empty": "", "five": "5", "nine": "9", "word": "nine", "huge": "9" * 19}


def nodes_by_rank() -> NodesView:
    return NodesView.of(
        [
            (node(name) if value is None else node(name).label("rank", value)).info()
            for name, value in VALUES.items()
        ]
    )


def chosen(mask: object, view: NodesView) -> set[str]:
    return {info.name for info, hit in zip(view.node_infos(), mask, strict=True) if hit}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(requirement("rank", "In", "5"), {"five"}, id="In one"),
        pytest.param(requirement("rank", "In", "5", "nine"), {"five", "word"}, id="In two"),
        pytest.param(requirement("rank", "In", "", "7"), {"empty"}, id="In the empty value"),
        pytest.param(requirement("rank", "In", "7"), set(), id="In a value that nobody has"),
        pytest.param(
            requirement("rank", "In", "5", "9", "nine", "", "7"),
            {"five", "nine", "word", "empty"},
            id="In many",
        ),
        pytest.param(
            requirement("rank", "NotIn", "5", "9"),
            {"absent", "empty", "word", "huge"},
            id="NotIn lets the absent label pass",
        ),
        pytest.param(requirement("rank", "NotIn", "7"), set(VALUES), id="NotIn of nobody"),
        pytest.param(requirement("rank", "Exists"), set(VALUES) - {"absent"}, id="Exists"),
        pytest.param(requirement("rank", "DoesNotExist"), {"absent"}, id="DoesNotExist"),
        pytest.param(requirement("rank", "Gt", "5"), {"nine"}, id="Gt"),
        pytest.param(requirement("rank", "Lt", "9"), {"five"}, id="Lt"),
        pytest.param(requirement("rank", "Lt", "99"), {"five", "nine"}, id="Lt needs a number"),
        pytest.param(requirement("other", "Exists"), set(), id="a label of no node"),
    ],
)
def test_one_requirement(asked: NodeSelectorRequirement, expected: set[str]) -> None:
    view = nodes_by_rank()
    compiled = compile_node_selector_term(term(asked))
    assert not compiled.errors
    assert chosen(requirement_mask(compiled.requirements[0], view), view) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(term(), set(), id="an empty term matches nothing"),
        pytest.param(term(requirement("rank", "Near", "5")), set(), id="nor does a malformed one"),
        pytest.param(
            term(requirement("rank", "Exists"), requirement("rank", "NotIn", "5")),
            {"empty", "nine", "word", "huge"},
            id="all of its requirements",
        ),
        pytest.param(names_term("five"), {"five"}, id="name"),
        pytest.param(names_term("five", "nine"), set(), id="two names at once"),
        pytest.param(names_term("nobody"), set(), id="unknown name"),
        pytest.param(
            term(fields=(requirement("metadata.name", "NotIn", "five"),)),
            set(VALUES) - {"five"},
            id="any other name",
        ),
        pytest.param(
            term(fields=(requirement("spec.other", "In", "five"),)),
            set(),
            id="another field reads as empty",
        ),
        pytest.param(
            term(fields=(requirement("spec.other", "NotIn", "five"),)),
            set(VALUES),
            id="and so is not any value",
        ),
        pytest.param(
            term(
                requirement("rank", "Exists"),
                fields=(requirement("metadata.name", "NotIn", "five"),),
            ),
            set(VALUES) - {"five", "absent"},
            id="labels and fields",
        ),
    ],
)
def test_a_term(asked: NodeSelectorTerm, expected: set[str]) -> None:
    view = nodes_by_rank()
    assert chosen(term_mask(compile_node_selector_term(asked), view), view) == expected


def test_no_requirements_mean_every_node() -> None:
    assert requirements_mask(selector_of_labels({}).requirements, nodes_by_rank()) is None


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown operator Near"):
        requirement_mask(Requirement("rank", "Near", frozenset({"5"})), nodes_by_rank())


@given(
    listed=st.lists(strategies.nodes(), max_size=6, unique_by=lambda each: each.metadata.name),
    asked=strategies.node_selector_terms(),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_term_over_columns_equals_the_term_over_each_node(
    listed: list[Node], asked: NodeSelectorTerm
) -> None:
    infos = []
    for each in listed:
        info = NodeInfo(each.metadata.name)
        info.set_node(each)
        infos.append(info)
    view, compiled = NodesView.of(infos), compile_node_selector_term(asked)
    assert chosen(term_mask(compiled, view), view) == {
        info.name for info in infos if compiled.matches(info.labels, info.name)
    }


def test_masks_follow_changed_labels() -> None:
    columns = Columns()
    asked = compile_node_selector_term(
        term(requirement("rank", "Gt", "1"), requirement("zone", "In", "b"))
    )
    seen = []
    for rank, zone in (("1", "a"), ("2", "b"), ("x", "b"), ("3", "b")):
        columns.put(node("n").label("rank", rank).label("zone", zone).info())
        seen.append(term_mask(asked, NodesView(columns)).tolist())
    assert seen == [[False], [True], [False], [True]]


def test_an_equal_term_is_the_same_term() -> None:
    assert compile_node_selector_term(names_term("a")) == NodeTermSelector(
        (), (Requirement("metadata.name", "In", frozenset({"a"})),)
    )


# --- pods that ask for very much --------------------------------------------------------------


def keyed_nodes(num_keys: int) -> NodesView:
    """Return three nodes with many labels, of which ``b`` has another value for the last key."""
    keys = [f"k{index:04}" for index in range(num_keys)]
    infos = []
    for name in "abc":
        labels = dict.fromkeys(keys, "v") | {"only": name}
        if name == "b":
            labels[keys[-1]] = "other"
        made = node(name).build()
        info = NodeInfo(name)
        info.set_node(replace(made, metadata=replace(made.metadata, labels=labels)))
        infos.append(info)
    return NodesView.of(infos)


def test_a_key_that_no_node_has_costs_no_column() -> None:
    view = keyed_nodes(1)
    absent = {f"absent-{index}": "v" for index in range(40_000)}
    assert chosen(labels_mask(absent, view), view) == set()
    assert chosen(labels_mask({"k0000": "v", **absent}, view), view) == set()
    for operator in ("In", "Exists", "Gt", "NotIn", "DoesNotExist"):
        values = () if operator in ("Exists", "DoesNotExist") else ("1",)
        asked = [requirement(f"absent-{index}", operator, *values) for index in range(3000)]
        compiled = compile_node_selector_term(term(*asked))
        passes = operator in ("NotIn", "DoesNotExist")
        assert chosen(term_mask(compiled, view), view) == (set("abc") if passes else set())
    assert view.columns.labels.num_filled == 0


def test_what_follows_a_label_that_no_node_has_is_not_looked_at() -> None:
    view = keyed_nodes(12)
    wanted = {"only": "nobody"} | {f"k{index:04}": "v" for index in range(11)}
    assert chosen(labels_mask(wanted, view), view) == set()
    compiled = compile_node_selector_term(
        term(
            requirement("a-k", "DoesNotExist"),
            *(requirement(key, "In", "nobody") for key in wanted),
        )
    )
    assert chosen(term_mask(compiled, view), view) == set()
    assert view.columns.labels.num_filled == 2


def test_thousands_of_keys_that_nodes_have_take_a_few_columns() -> None:
    view = keyed_nodes(3000)
    wanted = {f"k{index:04}": "v" for index in range(3000)}
    assert chosen(labels_mask(wanted, view), view) == {"a", "c"}
    asked = [requirement(key, "In", "v", "w") for key in wanted]
    asked += [requirement(key, "NotIn", "w") for key in wanted]
    compiled = compile_node_selector_term(term(*asked, requirement("only", "In", "b", "c")))
    assert chosen(term_mask(compiled, view), view) == {"c"}
    assert view.columns.labels.num_filled <= 2 * MAX_BY_COLUMN


def test_a_budget_that_runs_out_ends_the_look_at_nodes() -> None:
    view = keyed_nodes(100)
    spent = ReplayedBudget(1.0, ran_out_at=MAX_BY_COLUMN)
    with pytest.raises(AttemptBudgetExceededError):
        labels_mask({f"k{index:04}": "v" for index in range(100)}, view, spent)
    many = [(1, compile_node_selector_term(names_term("a")))] * 3
    with pytest.raises(AttemptBudgetExceededError):
        weights_of_terms(many, view, ReplayedBudget(1.0, ran_out_at=1))


@given(
    listed=st.lists(strategies.nodes(), max_size=4, unique_by=lambda each: each.metadata.name),
    asked=st.lists(st.tuples(st.integers(1, 100), strategies.node_selector_terms()), max_size=24),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_weights_of_many_terms_are_those_of_each_term(
    listed: list[Node], asked: list[tuple[int, NodeSelectorTerm]]
) -> None:
    infos = []
    for each in listed:
        info = NodeInfo(each.metadata.name)
        info.set_node(each)
        infos.append(info)
    view = NodesView.of(infos)
    weighted = [(weight, compile_node_selector_term(each)) for weight, each in asked]
    assert weights_of_terms(weighted, view).tolist() == [
        sum(weight for weight, each in weighted if each.matches(info.labels, info.name))
        for info in infos
    ]


@given(
    listed=st.lists(strategies.nodes(), max_size=4, unique_by=lambda each: each.metadata.name),
    asked=st.lists(strategies.node_selector_terms(), min_size=9, max_size=24),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_one_of_many_terms_is_what_one_of_them_says(
    listed: list[Node], asked: list[NodeSelectorTerm]
) -> None:
    infos = []
    for each in listed:
        info = NodeInfo(each.metadata.name)
        info.set_node(each)
        infos.append(info)
    view = NodesView.of(infos)
    matcher = NodeSelectorMatcher(tuple(compile_node_selector_term(each) for each in asked))
    assert chosen(any_term_mask(matcher, view), view) == {
        info.name for info in infos if matcher.matches(info.labels, info.name)
    }


@pytest.mark.parametrize("operator", ["In", "NotIn", "Gt", "Lt", "Exists", "DoesNotExist"])
def test_terms_that_only_ask_for_one_label_are_one_question(operator: str) -> None:
    view = nodes_by_rank()
    values = [() if "Exist" in operator else (str(index),) for index in range(100)]
    terms = [compile_node_selector_term(term(requirement("rank", operator, *v))) for v in values]
    (one,) = together(terms, view, UNLIMITED)
    matcher = NodeSelectorMatcher(tuple(terms))
    assert chosen(term_mask(one, view), view) == {
        info.name for info in view.node_infos() if matcher.matches(info.labels, info.name)
    }


def test_terms_of_labels_that_no_node_has_are_no_question() -> None:
    terms = [compile_node_selector_term(term(requirement(f"k{i}", "Exists"))) for i in range(100)]
    assert together(terms, nodes_by_rank(), UNLIMITED) == []

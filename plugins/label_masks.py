"""Masks of the nodes that satisfy requirements on labels, computed over columns.

A requirement reads one label. Its values are converted to ids of that label's column and compared
there; Gt and Lt compare a column of numbers.

A pod may have thousands of requirements. The evaluation ends at the first one that no node
satisfies, and a key that no node has needs no column.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import ColumnSpec
from cache.label_selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    METADATA_NAME,
    NOT_IN,
    NodeTermSelector,
    Requirement,
    parse_int64,
)
from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray

_FEW: Final = 3
"""Up to here comparing ids one by one is faster than looking them up in a table."""

_SOME: Final = 64
"""Terms between two checks of the budget in pure Python loops."""

FEW_TERMS: Final = 8
"""Up to this many terms each gets its own pass: that is faster than sorting them."""

MAX_BY_COLUMN: Final = 16
"""Requirements of one selector that are evaluated on columns. Real ones have two or three."""

_TRUE_WHEN_ABSENT: Final = (NOT_IN, DOES_NOT_EXIST)

_NO_NUMBER: Final = -(2**63)
"""Stands for a label that is absent or no integer. No label can hold this number: a label's
value does not start with a minus."""


def labels_mask(
    wanted: Mapping[str, str], nodes: NodesView, budget: AttemptBudget = UNLIMITED
) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes that have all of some labels.

    None stands for every node, as it does when there are no labels.

    *Cost*: 40 ns a label up to the first whose key no node has; else as
    :func:`requirements_mask`.
    """
    known = nodes.columns.label_keys
    if any(key not in known for key in wanted):
        return np.zeros(len(nodes), dtype=np.bool_)
    if len(wanted) > MAX_BY_COLUMN:
        rarest = nsmallest(MAX_BY_COLUMN, wanted, key=known.__getitem__)
        mask = labels_mask({key: wanted[key] for key in rarest}, nodes, budget)
        return None if mask is None else _one_by_one(mask, wanted, (), nodes, budget)
    mask = None
    for key, value in wanted.items():
        column, ids = nodes.label(key)
        value_id = column.id_of(value)
        if value_id is None:
            return np.zeros(len(nodes), dtype=np.bool_)
        one: BoolArray = ids == value_id
        if mask is None:
            mask = one
        else:
            mask &= one
            budget.check()
        if len(wanted) > 1 and not mask.any():
            return mask
    return mask


def requirements_mask(
    requirements: Iterable[Requirement], nodes: NodesView, budget: AttemptBudget = UNLIMITED
) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes that satisfy all of the label requirements.

    None stands for every node, as it does when there are no requirements.

    *Cost*: constant where a requirement has a key that no node has; else one or two passes over a
    column for each requirement until no node is left. If there are very many, the last ones are
    checked node by node on the nodes that are left: no other caller needs all these columns.
    """
    known = nodes.columns.label_keys
    asked: list[Requirement] = []
    for requirement in requirements:
        if requirement.key in known:
            asked.append(requirement)
        elif requirement.operator not in _TRUE_WHEN_ABSENT:
            return np.zeros(len(nodes), dtype=np.bool_)
    others: list[Requirement] = []
    if len(asked) > MAX_BY_COLUMN:
        asked.sort(key=lambda each: (each.operator in _TRUE_WHEN_ABSENT, known[each.key]))
        asked, others = asked[:MAX_BY_COLUMN], asked[MAX_BY_COLUMN:]
    mask: BoolArray | None = None
    for requirement in asked:
        one = requirement_mask(requirement, nodes)
        if mask is None:
            mask = one
        else:
            mask = mask & one
            budget.check()
        if len(asked) > 1 and not mask.any():
            return mask
    if mask is None or not others:
        return mask
    return _one_by_one(mask, {}, others, nodes, budget)


def _one_by_one(
    mask: BoolArray,
    wanted: Mapping[str, str],
    requirements: Sequence[Requirement],
    nodes: NodesView,
    budget: AttemptBudget,
) -> BoolArray:
    """Return the nodes of a mask that have some labels and satisfy some requirements."""
    left = mask.copy()
    for index in np.flatnonzero(mask).tolist():
        budget.check()
        labels = nodes.node_info(index).labels
        left[index] = wanted.items() <= labels.items() and all(
            each.matches_value(labels.get(each.key)) for each in requirements
        )
    return left


def term_mask(
    term: NodeTermSelector, nodes: NodesView, budget: AttemptBudget = UNLIMITED
) -> BoolArray:
    """Return bool (n_nodes,): the nodes that satisfy a node selector term, fields included."""
    if term.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = requirements_mask(term.requirements, nodes, budget)
    for requirement in term.field_requirements:
        one = _field_mask(requirement, nodes)
        mask = one if mask is None else mask & one
        if len(term.field_requirements) > 1:
            budget.check()
    return np.ones(len(nodes), dtype=np.bool_) if mask is None else mask


def together(
    terms: Sequence[NodeTermSelector], nodes: NodesView, budget: AttemptBudget
) -> list[NodeTermSelector]:
    """Return fewer terms that together match the same nodes as the given terms.

    Terms with exactly one requirement are merged by key and operator, and terms that no node can
    satisfy are dropped.

    *Cost*: a microsecond for each term.
    """
    known = nodes.columns.label_keys
    others: list[NodeTermSelector] = []
    single: dict[tuple[str, str, bool], set[str]] = {}
    for at, term in enumerate(terms):
        if at % _SOME == _SOME - 1:
            budget.check()
        if term.nothing:
            continue
        conditions = term.requirements or term.field_requirements
        if len(conditions) != 1 or (term.requirements and term.field_requirements):
            others.append(term)
            continue
        (condition,) = conditions
        is_field = not term.requirements
        operator = condition.operator
        if not is_field and condition.key not in known and operator not in _TRUE_WHEN_ABSENT:
            continue
        kind = condition.key, operator, is_field
        values = single.get(kind)
        if values is None:
            single[kind] = set(condition.values)
        elif operator == NOT_IN:
            values &= condition.values
        elif operator == GT:
            single[kind] = {min(values.union(condition.values), key=int)}
        elif operator == LT:
            single[kind] = {max(values.union(condition.values), key=int)}
        else:
            values |= condition.values
    for (key, operator, is_field), values in single.items():
        merged = (Requirement(key, operator, frozenset(values)),)
        others.append(NodeTermSelector((), merged) if is_field else NodeTermSelector(merged))
    return others


def weights_of_terms(
    weighted: Sequence[tuple[int, NodeTermSelector]],
    nodes: NodesView,
    budget: AttemptBudget = UNLIMITED,
) -> IntArray:
    """Return int64 (n_nodes,): the sum of the weights of the terms that each node satisfies.

    *Cost*: a few passes over columns for each term. Of very many terms, those that only compare
    one label cost one pass for each label, and those that only name a node cost no pass.
    """
    total = np.zeros(len(nodes), dtype=np.int64)
    if len(weighted) > FEW_TERMS:
        weighted = _add_single_values(total, weighted, nodes, budget)
    for weight, term in weighted:
        if len(weighted) > 1:
            budget.check()
        total += np.multiply(term_mask(term, nodes, budget), weight, dtype=np.int64)
    return total


def _add_single_values(
    total: IntArray,
    weighted: Sequence[tuple[int, NodeTermSelector]],
    nodes: NodesView,
    budget: AttemptBudget,
) -> list[tuple[int, NodeTermSelector]]:
    """Add the weights of terms that are one ``In`` of a label or a name; return the other terms.

    A term on a label that no node has adds the same weight to all nodes.
    """
    known = nodes.columns.label_keys
    by_key: dict[str, dict[str, int]] = {}
    by_name: dict[str, int] = {}
    everywhere = 0
    others: list[tuple[int, NodeTermSelector]] = []
    for at, (weight, term) in enumerate(weighted):
        if at % _SOME == _SOME - 1:
            budget.check()
        conditions = (*term.requirements, *term.field_requirements)
        if term.nothing or len(conditions) != 1:
            others.append((weight, term))
            continue
        (condition,) = conditions
        if term.requirements and condition.key not in known:
            everywhere += weight if condition.operator in _TRUE_WHEN_ABSENT else 0
            continue
        if condition.operator != IN:
            others.append((weight, term))
            continue
        if term.requirements:
            sums = by_key.setdefault(condition.key, {})
        elif condition.key == METADATA_NAME:
            sums = by_name
        else:
            others.append((weight, term))
            continue
        for value in condition.values:
            sums[value] = sums.get(value, 0) + weight
    total += everywhere
    for key, sums in by_key.items():
        column, ids = nodes.label(key)
        table = np.zeros(len(column.values), dtype=np.int64)
        for value, weight in sums.items():
            value_id = column.id_of(value)
            if value_id is not None:
                table[value_id] = weight
        total += table.take(ids)
    if by_name:
        names = (info.name for info in nodes.node_infos())
        total += np.fromiter((by_name.get(name, 0) for name in names), np.int64, len(nodes))
    return others


def requirement_mask(requirement: Requirement, nodes: NodesView) -> BoolArray:
    """Return bool (n_nodes,): the nodes whose label satisfies the requirement.

    *Cost*: one pass over the label's column for each wanted value, up to a few of them; filling
    the column, proportional to the nodes, at the first use of the label; neither for a key that
    no node has.
    """
    operator = requirement.operator
    if operator in (GT, LT):
        return _number_mask(requirement, nodes)
    column, ids = nodes.label(requirement.key)
    if operator in (EXISTS, DOES_NOT_EXIST):
        present: BoolArray = ids != 0
        return present if operator == EXISTS else ~present
    found = (column.id_of(value) for value in requirement.values)
    wanted = [value_id for value_id in found if value_id is not None]
    if operator == IN:
        return _any_of(ids, wanted, len(column.values))
    if operator == NOT_IN:
        return ~_any_of(ids, wanted, len(column.values))
    raise ValueError(f"unknown operator {operator} in {requirement}")


def _any_of(ids: npt.NDArray[np.int32], wanted: list[int], num_ids: int) -> BoolArray:
    if len(wanted) > _FEW:
        table = np.zeros(num_ids, dtype=np.bool_)
        table[wanted] = True
        return table.take(ids)
    mask: BoolArray = np.zeros(len(ids), dtype=np.bool_) if not wanted else ids == wanted[0]
    for value_id in wanted[1:]:
        mask |= ids == value_id
    return mask


def _number_mask(requirement: Requirement, nodes: NodesView) -> BoolArray:
    key = requirement.key
    if key not in nodes.columns.label_keys:
        return np.zeros(len(nodes), dtype=np.bool_)

    def number(info: NodeInfo) -> int:
        value = info.labels.get(key)
        parsed = None if value is None else parse_int64(value)
        return _NO_NUMBER if parsed is None else parsed

    numbers = nodes.derived(ColumnSpec(("label-number", key), number, np.int64))
    bound = int(next(iter(requirement.values)))
    within: BoolArray = numbers > bound if requirement.operator == GT else numbers < bound
    within &= numbers != _NO_NUMBER
    return within


def _field_mask(requirement: Requirement, nodes: NodesView) -> BoolArray:
    if requirement.key != METADATA_NAME:
        return np.full(len(nodes), requirement.matches_value(""), dtype=np.bool_)
    is_in = requirement.operator == IN
    mask = np.full(len(nodes), not is_in, dtype=np.bool_)
    for name in requirement.values:
        row = nodes.row(name)
        if row is not None:
            mask[row] = is_in
    return mask

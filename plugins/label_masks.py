"""Which nodes satisfy a requirement on their labels: over columns, never node by node.

A requirement looks at one label. Its wanted values are turned into ids of that label's column
and compared there; Gt and Lt compare a column of numbers.
"""

from __future__ import annotations

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
    parse_int64,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.label_selectors import NodeTermSelector, Requirement
    from cache.node_info import NodeInfo
    from plugins.framework.results import BoolArray

_FEW: Final = 3
"""Up to here comparing ids one by one is faster than looking them up in a table."""

_NO_NUMBER: Final = -(2**63)
"""Stands for a label that is absent or no integer. No label can hold this number: a label's
value does not start with a minus."""


def requirements_mask(requirements: Iterable[Requirement], nodes: NodesView) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes that satisfy all of the label requirements.

    None stands for every node, as it does when there are no requirements.
    """
    mask: BoolArray | None = None
    for requirement in requirements:
        one = requirement_mask(requirement, nodes)
        mask = one if mask is None else mask & one
    return mask


def term_mask(term: NodeTermSelector, nodes: NodesView) -> BoolArray:
    """Return bool (n_nodes,): the nodes that satisfy a node selector term, fields included."""
    if term.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = requirements_mask(term.requirements, nodes)
    for requirement in term.field_requirements:
        one = _field_mask(requirement, nodes)
        mask = one if mask is None else mask & one
    return np.ones(len(nodes), dtype=np.bool_) if mask is None else mask


def requirement_mask(requirement: Requirement, nodes: NodesView) -> BoolArray:
    """Return bool (n_nodes,): the nodes whose label satisfies the requirement.

    *Cost*: one pass over the label's column for each wanted value, up to a few of them; filling
    the column, proportional to the nodes, when nobody asked for the label before.
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
    # A field requirement has exactly one value: whoever compiled it made sure.
    if requirement.key != METADATA_NAME:
        return np.full(len(nodes), requirement.matches_value(""), dtype=np.bool_)
    is_in = requirement.operator == IN
    mask = np.full(len(nodes), not is_in, dtype=np.bool_)
    for name in requirement.values:
        row = nodes.row(name)
        if row is not None:
            mask[row] = is_in
    return mask

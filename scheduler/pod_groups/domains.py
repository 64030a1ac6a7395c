"""Topology domains: the sets of nodes with one value of a label, judged all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.resources import is_qualified_name
from cache.value import Value
from scheduler.runtime.judgement import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import numpy.typing as npt

    from cache.columns import Columns
    from cache.pod_group_objects import GroupRules
    from plugins.framework.results import IntArray


class MemberDomain(Value, frozen=True):
    """Where one more member of a group may be placed.

    Parameters
    ----------
    among
        The nodes of the required domain; None for all nodes.
    preferred
        The nodes of the preferred domain; None without one.
    value
        The value of the required topology key; empty without one, and before it is decided.
    reason
        Why the member can be placed nowhere; empty when it can.
    """

    among: Candidates | None = None
    preferred: Candidates | None = None
    value: str = ""
    reason: str = ""


class Grouping:
    """The nodes by their values of one or more label keys.

    Parameters
    ----------
    columns
        The columns of the snapshot.
    keys
        At least one key.

    Attributes
    ----------
    ids
        intp (n_nodes,): the domain of each node; 0 for a node that lacks one of the labels.
    names
        The value of each domain, that of the last key; empty for domain 0.

    Notes
    -----
    Domains are numbered in the order of their first nodes.
    """

    __slots__ = ("ids", "names", "num_nodes")

    def __init__(self, columns: Columns, keys: Sequence[str]) -> None:
        self.num_nodes = len(columns)
        column, ids = columns.labels.get(keys[-1])
        values = column.values
        codes = ids.astype(np.int64)
        for key in keys[:-1]:
            _, others = columns.labels.get(key)
            codes = np.where(
                (codes == 0) | (others == 0), 0, codes + others.astype(np.int64) * len(values)
            )
        codes = np.append(0, codes)
        distinct, first, domains = np.unique(codes, return_index=True, return_inverse=True)
        # By the first node of each, not by the ids of values: these depend on values of the past,
        # which a replay that begins later does not know.
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.ids = place[domains[1:]]
        self.names = [values[int(code) % len(values)] or "" for code in distinct[order]]

    @classmethod
    def whole(cls, columns: Columns) -> Grouping:
        """Return all nodes as one domain without a name."""
        grouping = cls.__new__(cls)
        grouping.num_nodes = len(columns)
        grouping.ids = np.ones(len(columns), dtype=np.intp)
        grouping.names = ["", ""]
        return grouping

    def __len__(self) -> int:
        return len(self.names)

    def sums(self, amounts: IntArray) -> IntArray:
        """Return int64 (n_domains,): the sum of an amount of the nodes, int64 (n_nodes,)."""
        found = np.zeros(len(self.names), dtype=np.int64)
        np.add.at(found, self.ids, amounts)
        return found

    def totals(self, amounts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return float64 (n_domains,): sums that may be beyond 64 bits."""
        found = np.zeros(len(self.names), dtype=np.float64)
        np.add.at(found, self.ids, amounts)
        return found

    def candidates(self, domain: int) -> Candidates:
        """Return the nodes of a domain."""
        return Candidates(np.flatnonzero(self.ids == domain), self.num_nodes)


def key_problem(columns: Columns, key: str, what: str = "topology key") -> str:
    """Return why a label key cannot be one of a topology; empty when it can."""
    if not is_qualified_name(key):
        return f"{what} {_short(key)!r} is not a valid label key"
    if not columns.label_keys.get(key):
        return f"{what} {key!r} is on no node"
    return ""


def domain_of(columns: Columns, rules: GroupRules, node_names: Collection[str]) -> MemberDomain:
    """Return where one more member of a group may be placed.

    Parameters
    ----------
    node_names
        The nodes of its satisfied members. Those that are gone, and those without the label, say
        nothing; where no node says anything, all nodes with the label may do.

    *Cost*: proportional to the nodes, in vector operations.
    """
    preferred, _ = _preferred(columns, rules, node_names)
    key = rules.topology_key
    if not key:
        return MemberDomain(preferred=preferred)
    problem = key_problem(columns, key)
    if problem:
        return MemberDomain(reason=problem)
    values = _values_of(columns, key, node_names)
    if len(values) > 1:
        named = ", ".join(repr(value) for value in values[:_NAMED])
        more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
        why = f"the members that have nodes are in {len(values)} domains of {key!r}: {named}{more}"
        return MemberDomain(reason=why)
    column, ids = columns.labels.get(key)
    if not values:
        return MemberDomain(Candidates(np.flatnonzero(ids), len(columns)), preferred)
    rows = np.flatnonzero(ids == column.id_of(values[0]))
    return MemberDomain(Candidates(rows, len(columns)), preferred, values[0])


_NAMED = 3
_LONGEST = 80


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _values_of(columns: Columns, key: str, node_names: Collection[str]) -> list[str]:
    found = set()
    for name in node_names:
        row = columns.row_of.get(name)
        value = None if row is None else columns.node_infos[row].labels.get(key)
        if value is not None:
            found.add(value)
    return sorted(found)


def _preferred(
    columns: Columns, rules: GroupRules, node_names: Collection[str]
) -> tuple[Candidates | None, str]:
    key = rules.preferred_topology_key
    if not key or key_problem(columns, key):
        return None, ""
    values = _values_of(columns, key, node_names)
    if not values:
        return None, ""
    column, ids = columns.labels.get(key)
    wanted = [found for value in values if (found := column.id_of(value)) is not None]
    return Candidates(np.flatnonzero(np.isin(ids, wanted)), len(columns)), values[0]


def in_order(
    bounds: IntArray, rooms: IntArray, least: int, left: IntArray, pick: Callable[[int], int]
) -> list[int]:
    """Return the domains that may hold enough members, the best first.

    Parameters
    ----------
    bounds
        int64 (n_domains,): the most members that fit.
    rooms
        int64 (n_domains,): members that are nominated for a node there.
    least
        The members that have to fit.
    left
        int64 (n_domains,): what is free.
    pick
        Decides between equals.
    """
    found = [domain for domain in range(1, len(bounds)) if bounds[domain] >= least]
    key = {
        domain: (
            -int(rooms[domain]),
            -int(bounds[domain]),
            int(left[domain]),
            pick(_EQUALS),
        )
        for domain in found
    }
    return sorted(found, key=key.__getitem__)


_EQUALS = 1 << 30

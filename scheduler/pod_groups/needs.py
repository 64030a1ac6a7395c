"""What a group asks for in all, and the checks of it that need no placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.resources import CPU

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import Columns
    from plugins.framework.results import IntArray
    from scheduler.pod_groups.domains import Grouping
    from scheduler.pod_groups.shapes import Shape

_EXACT = float(1 << 62)
_ROUNDING = 1 - 1e-9


def beyond_cluster(columns: Columns, least: Mapping[str, int]) -> str:
    """Return why all nodes together have too little, with both amounts; empty if they have enough.

    Parameters
    ----------
    least
        Amounts by resource name.
    """
    lacks = []
    for name in sorted(least):
        has = _allocatable(columns, name)
        if least[name] > has:
            lacks.append(
                f"{amount_text(name, least[name])} of {name}, all nodes have "
                f"{amount_text(name, has)}"
            )
    return "; ".join(lacks[:_NAMED])


_NAMED = 3


def _allocatable(columns: Columns, name: str) -> int:
    line = columns.resource_row.get(name)
    if line is None:
        return 0
    amounts = columns.allocatable[line]
    if float(amounts.sum(dtype=np.float64)) < _EXACT:
        return int(amounts.sum())
    return sum(amounts.tolist())


def amount_text(name: str, amount: int) -> str:
    """Return an amount as people write it: milli-CPU as CPUs, whole powers of 1024 with a unit."""
    if name == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for unit in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if amount % 1024 or not amount:
            return f"{amount}{unit}"
        amount //= 1024
    return f"{amount}Ei"


def least_requests(shapes: Sequence[Shape], needed: int) -> dict[str, int]:
    """Return what any ``needed`` members ask for at least, by resource name."""
    by_resource: dict[str, list[tuple[int, int]]] = {}
    members = sum(len(shape.members) for shape in shapes)
    for shape in shapes:
        for name, amount in shape.first.requests.items():
            if amount:
                by_resource.setdefault(name, []).append((amount, len(shape.members)))
    least = {}
    for name, amounts in by_resource.items():
        left = needed - (members - sum(count for _, count in amounts))
        total = 0
        for amount, count in sorted(amounts):
            if left <= 0:
                break
            total += amount * min(count, left)
            left -= count
        if total:
            least[name] = total
    return least


def too_small(
    columns: Columns, grouping: Grouping, slots: IntArray, least: Mapping[str, int]
) -> npt.NDArray[np.bool_]:
    """Return bool (n_domains,): the domains where the members ask for more than is free.

    Parameters
    ----------
    slots
        int64 (n_nodes,): 0 where no member fits.
    """
    small = np.zeros(len(grouping), dtype=np.bool_)
    for name, amount in least.items():
        line = columns.resource_row.get(name)
        if line is not None:
            free = grouping.totals(_free(columns, line, slots))
            small |= free < amount * _ROUNDING
    return small


def free_room(
    columns: Columns, grouping: Grouping, slots: IntArray, least: Mapping[str, int]
) -> IntArray:
    """Return int64 (n_domains,): what is free of the resource that is scarcest for the members."""
    scarcest, worst = None, -1.0
    for name, amount in least.items():
        line = columns.resource_row.get(name)
        if line is None:
            continue
        total = float(_free(columns, line, slots).sum())
        share = amount / total if total else float("inf")
        if share > worst:
            scarcest, worst = line, share
    if scarcest is None:
        return grouping.sums(slots)
    return grouping.totals(_free(columns, scarcest, slots)).astype(np.int64)


def _free(columns: Columns, line: int, slots: IntArray) -> npt.NDArray[np.float64]:
    free = columns.allocatable[line] - columns.requested[line].astype(np.float64)
    return np.where(slots > 0, np.maximum(free, 0), 0)

"""How much room gangs can use at best, computed by counting, without any scheduler.

Nodes are alike and empty, and members of a gang are alike: so many fit on a node as its free CPU is
a multiple of theirs. An order of gangs decides the result: each in turn takes its room, first fit,
or is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tests.gangs.gangs import NODE_MILLI

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.gangs.gangs import Gang

_BATCH: Final = 500
"""Orders that are tried at a time."""


def used_milli(
    gangs: Sequence[Gang], orders: np.ndarray, nodes: int, node_milli: int = NODE_MILLI
) -> np.ndarray:
    """Return the CPU that is used when gangs are placed whole or not at all, in given orders.

    Parameters
    ----------
    orders
        int array, shape (orders, gangs): indices of gangs.

    Returns
    -------
    int array, shape (orders,)
    """
    members = np.array([gang.members for gang in gangs])
    milli = np.array([gang.milli for gang in gangs])
    free = np.full((len(orders), nodes), node_milli)
    for place in range(orders.shape[1]):
        at = orders[:, place]
        wanted, size = members[at, None], milli[at, None]
        fits = free // size
        before = np.cumsum(fits, axis=1) - fits
        taken = np.clip(wanted - before, 0, fits)
        taken[before[:, -1:].ravel() + fits[:, -1] < wanted.ravel()] = 0
        free -= taken * size
    result: np.ndarray = nodes * node_milli - free.sum(axis=1)
    return result


def decreasing(gangs: Sequence[Gang]) -> list[int]:
    """Return the order by falling size."""
    return sorted(range(len(gangs)), key=lambda index: -gangs[index].total_milli)


def best_used_milli(gangs: Sequence[Gang], nodes: int, orders: int, seed: int) -> int:
    """Return the most CPU that is used in the order by falling size and in random orders."""
    rng = np.random.default_rng(seed)
    indices = np.arange(len(gangs))
    best = int(used_milli(gangs, np.array([decreasing(gangs)]), nodes)[0])
    for start in range(0, orders, _BATCH):
        batch = rng.permuted(np.tile(indices, (min(_BATCH, orders - start), 1)), axis=1)
        best = max(best, int(used_milli(gangs, batch, nodes).max()))
    return best


def that_fit(gangs: Iterable[Gang], free_milli: Sequence[int]) -> list[Gang]:
    """Return the gangs of which each alone would fit whole into the free room of the nodes."""
    return [gang for gang in gangs if sum(x // gang.milli for x in free_milli) >= gang.members]

"""Pools: disjoint sets of nodes, each with a scheduler of its own.

Here is what a process knows of its pool. The watches ask the API server for no other nodes;
:mod:`scheduler.event_handlers.pods_elsewhere` has the pods on these.
"""

from scheduler.pools.flags import (
    add_node_selector,
    add_pool_flags,
    node_selector_of,
    pool_options,
)
from scheduler.pools.options import ALL_NODES, PoolOptions

__all__ = [
    "ALL_NODES",
    "PoolOptions",
    "add_node_selector",
    "add_pool_flags",
    "node_selector_of",
    "pool_options",
]

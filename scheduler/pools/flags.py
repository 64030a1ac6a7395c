"""Define the flags about pools, and convert them into options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cache.label_selectors import is_label_value
from cache.selector_text import parse_selector
from scheduler.config import ConfigError
from scheduler.pools.configuration import load_pools
from scheduler.pools.options import PoolOptions

if TYPE_CHECKING:
    import argparse

    from cache.label_selectors import Selector


def add_pool_flags(run: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = run.add_argument_group("pools of nodes")
    add_node_selector(group)
    group.add_argument(
        "--pool", metavar="NAME", default="", help="the name of these nodes in metrics and texts"
    )
    group.add_argument(
        "--pools",
        metavar="F",
        type=Path,
        help="a PoolConfiguration: all pools of the cluster, --pool is one of them; pods that "
        "several pools may take are handed from one to the next",
    )


def add_node_selector(command: argparse._ActionsContainer) -> None:
    """Add the flag that says which nodes there are."""
    command.add_argument(
        "--node-selector",
        metavar="SELECTOR",
        default="",
        help="only the nodes with these labels, in the form of kubectl's --selector; the API "
        "server sends no others to a running scheduler (all nodes)",
    )


def node_selector_of(flags: argparse.Namespace) -> Selector:
    """Return the selector of the flag.

    Raises
    ------
    ConfigError
        When it is none.
    """
    try:
        return parse_selector(flags.node_selector)
    except ValueError as error:
        raise ConfigError("--node-selector", str(error)) from error


def pool_options(flags: argparse.Namespace) -> PoolOptions:
    """Return the options of the flags.

    Raises
    ------
    ConfigError
        When a flag has an impossible value.
    """
    if flags.pools is not None:
        if flags.node_selector:
            raise ConfigError("--node-selector", "contradicts --pools, which has the selectors")
        if not flags.pool:
            raise ConfigError("--pools", "needs --pool, the name of the one that is meant")
        return load_pools(flags.pools, flags.pool)
    selector = node_selector_of(flags)
    if not is_label_value(flags.pool):
        raise ConfigError("--pool", f"{flags.pool!r} is no value of a label")
    if flags.pool and selector.empty:
        raise ConfigError("--pool", "names the nodes of --node-selector, which is missing")
    return PoolOptions(flags.pool, selector)

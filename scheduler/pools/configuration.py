"""Read the file of ``--pools``: the pools of a cluster, in the order in which pods are handed on.

For example::

    apiVersion: scheduling.berth.dev/v1alpha1
    kind: PoolConfiguration
    pools:
      - name: cpu
        nodeSelector: pool=cpu
        schedulerNames: [berth]
        leaseName: berth-cpu
    handOverAfter: 1m

All replicas of all pools need the same file: who owns a pod follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.label_selectors import IN, Selector, is_label_value
from cache.selector_text import parse_selector
from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config.config_error import ConfigError, Mistake, child, item
from scheduler.config.document import read_document, read_text
from scheduler.config.file_profile import FileStruct
from scheduler.config.strict_decoding import decode
from scheduler.pools.options import HAND_OVER_AFTER_S, Pool, PoolOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

API_VERSION: Final = "scheduling.berth.dev/v1alpha1"
KIND: Final = "PoolConfiguration"


class PoolEntry(FileStruct, frozen=True):
    """A pool.

    Parameters
    ----------
    name
        Unique; a value that a label can have.
    node_selector
        As ``kubectl --selector`` takes it.
    scheduler_names
        What its profiles are called.
    lease_name
        The Lease of its leader, in the namespace of the others.
    topology_keys
        Labels of nodes whose domains may be looked at by themselves in this pool.
    """

    name: str
    node_selector: str
    scheduler_names: tuple[str, ...]
    lease_name: str = ""
    topology_keys: tuple[str, ...] = ()


class PoolConfig(FileStruct, frozen=True):
    """All pools."""

    pools: tuple[PoolEntry, ...] = ()
    hand_over_after: GoDuration = duration_of_seconds(int(HAND_OVER_AFTER_S))
    api_version: str = msgspec.field(default=API_VERSION, name="apiVersion")
    kind: str = KIND


def load_pools(path: Path, own: str) -> PoolOptions:
    """Read a file.

    Parameters
    ----------
    own
        The name of this process's pool.

    Raises
    ------
    ConfigError
        If it cannot be read or used. All mistakes that could be found are in it.
    """
    return parse_pools(read_text(path), str(path), own)


def parse_pools(text: str, source: str, own: str) -> PoolOptions:
    """Read the text of a file; ``source`` names it in messages.

    Raises
    ------
    ConfigError
        As :func:`load_pools`.
    """
    try:
        data, mistakes = read_document(text)
    except ConfigError as error:
        raise ConfigError.of(error.mistakes, source) from error
    config, of_types = decode(data, PoolConfig, "")
    mistakes += of_types
    pools: list[Pool] = []
    if config is not None:
        mistakes += _check(config, pools, own)
    if config is None or mistakes:
        raise ConfigError.of(mistakes, source)
    mine = next(index for index, pool in enumerate(pools) if pool.name == own)
    return PoolOptions(
        own,
        pools[mine].node_selector,
        frozenset(config.pools[mine].topology_keys),
        tuple(pools),
        config.hand_over_after.seconds,
    )


def _check(config: PoolConfig, pools: list[Pool], own: str) -> Iterator[Mistake]:
    """Yield what is wrong, and put the pools into a list."""
    if config.api_version != API_VERSION:
        yield Mistake("apiVersion", f"must be {API_VERSION}")
    if config.kind != KIND:
        yield Mistake("kind", f"must be {KIND}")
    if config.hand_over_after.seconds <= 0:
        yield Mistake("handOverAfter", "must be positive")
    for index, entry in enumerate(config.pools):
        path = item("pools", index)
        if not entry.name or not is_label_value(entry.name):
            yield Mistake(child(path, "name"), f"{entry.name!r} is no value of a label")
        if not entry.scheduler_names:
            yield Mistake(child(path, "schedulerNames"), "must not be empty")
        try:
            selector = parse_selector(entry.node_selector)
        except ValueError as error:
            yield Mistake(child(path, "nodeSelector"), str(error))
            continue
        if selector.empty:
            yield Mistake(child(path, "nodeSelector"), "selects all nodes")
        for other in pools:
            if other.name == entry.name:
                yield Mistake(child(path, "name"), f"{entry.name!r} is another pool already")
            elif not are_disjoint(selector, other.node_selector):
                why = f"may select nodes of the pool {other.name!r}"
                yield Mistake(child(path, "nodeSelector"), why)
        names = frozenset(entry.scheduler_names)
        if not entry.lease_name and any(names & other.scheduler_names for other in pools):
            yield Mistake(child(path, "leaseName"), "is needed: others serve one of its names, too")
        pools.append(Pool(entry.name, selector, names, entry.lease_name))
    if own not in (entry.name for entry in config.pools):
        yield Mistake("pools", f"--pool={own} is none of them")


def are_disjoint(one: Selector, other: Selector) -> bool:
    """Return whether it can be seen that no labels satisfy both selectors.

    They are if of some label one allows certain values only, and the other none of these.
    """
    return _excludes(one, other) or _excludes(other, one)


def _excludes(one: Selector, other: Selector) -> bool:
    return any(
        not any(
            all(each.matches_value(value) for each in other.requirements if each.key == mine.key)
            for value in mine.values
        )
        for mine in one.requirements
        if mine.operator == IN and any(each.key == mine.key for each in other.requirements)
    )

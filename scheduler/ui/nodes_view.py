"""The views of nodes: as a map by a label, as a list in pages, and one node with its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cache.resources import CPU
from scheduler.ui.charts import Map, map_of
from scheduler.ui.node_map import PREFERRED_KEYS, groups_of, is_cordoned, natural
from scheduler.ui.paging import page_of
from scheduler.ui.sources import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from scheduler.ui.listing import Listing
    from scheduler.ui.node_map import NodeGroup, NodeTable

SHOWN: Final = ("requested", "free", "fragmented")

COLUMNS: Final = 60
"""The cells in a row of a map."""


@dataclass(frozen=True, slots=True)
class NodesQuery:
    """What the map shows, out of an address.

    Parameters
    ----------
    by
        The label whose values are the groups.
    show
        One of ``SHOWN``.
    """

    by: str
    show: str
    resource: str

    @classmethod
    def of(cls, table: NodeTable, query: Mapping[str, str]) -> NodesQuery:
        """Return what an address asks for; the first choice for what does not exist."""
        by, show, resource = (query.get(each, "") for each in ("by", "show", "resource"))
        keys = table.label_keys or PREFERRED_KEYS
        return cls(
            by if by in keys else keys[0],
            show if show in SHOWN else SHOWN[0],
            resource if resource in table.resources else CPU,
        )


@dataclass(frozen=True, slots=True)
class GroupMap:
    """A group of nodes with the map of its cells."""

    group: NodeGroup
    map: Map


def nodes_page(listing: Listing, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of the map of nodes shows."""
    table = listing.table
    asked = NodesQuery.of(table, query)
    groups = groups_of(table, asked.by, asked.resource)
    return {
        "asked": asked,
        "shown": SHOWN,
        "resources": table.resources,
        "label_keys": table.label_keys or PREFERRED_KEYS[:1],
        "shapes": table.shapes,
        "groups": [
            GroupMap(group, map_of(_shares(group, asked.show), COLUMNS)) for group in groups
        ],
        "whole": {
            "nodes": len(table.infos),
            "allocatable": sum(group.allocatable for group in groups),
            "requested": sum(group.requested for group in groups),
            "fragmented": sum(group.fragmented for group in groups),
            "unschedulable": sum(group.unschedulable for group in groups),
        },
    }


def _shares(group: NodeGroup, show: str) -> npt.NDArray[np.float64]:
    if show == "free":
        return 1.0 - group.shares
    return group.fragments if show == "fragmented" else group.shares


def cell_name(listing: Listing, query: Mapping[str, str]) -> str:
    """Return the name of the node behind a cell of the map.

    Raises
    ------
    SourceError
        When there is no such group or cell.
    """
    table = listing.table
    asked = NodesQuery.of(table, query)
    cell = query.get("cell", "")
    for group in groups_of(table, asked.by, asked.resource):
        if group.name == query.get("group", "") and cell.isascii() and cell.isdigit():
            index = int(cell[:9])
            if index < len(group.indices):
                return table.infos[int(group.indices[index])].name
    raise SourceError("there is no node at that place of the map")


def node_list(listing: Listing, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of the list of nodes shows: one group, or all nodes."""
    table = listing.table
    asked = NodesQuery.of(table, query)
    wanted, text = query.get("group", ""), query.get("q", "")[:253].strip().lower()
    chosen: list[int] = []
    for group in groups_of(table, asked.by, asked.resource):
        if not wanted or group.name == wanted:
            chosen += group.indices.tolist()
    if text:
        chosen = [index for index in chosen if text in table.infos[index].name.lower()]
    order = query.get("order", "")
    if order in SHOWN:
        chosen.sort(key=lambda index: -_value(table, index, asked.resource, order))
    else:
        chosen.sort()
    page = page_of(chosen, query.get("page", ""))
    return {
        "asked": asked,
        "group": wanted,
        "text": text,
        "order": order if order in SHOWN else "name",
        "resources": table.resources[:5],
        "page": page,
        "rows": [_line(table, index) for index in page.rows],
    }


def _value(table: NodeTable, index: int, resource: str, show: str) -> float:
    allocatable = max(int(table.allocatable[resource][index]), 1)
    if show == "fragmented":
        return float(table.fragmented[resource][index]) / allocatable
    share = int(table.requested[resource][index]) / allocatable
    return 1 - share if show == "free" else share


def _line(table: NodeTable, index: int) -> dict[str, Any]:
    info = table.infos[index]
    return {
        "name": info.name,
        "pods": len(info.pods),
        "cordoned": is_cordoned(info),
        "taints": _taints(info),
        "amounts": {
            name: (
                int(table.requested[name][index]),
                int(table.allocatable[name][index]),
                float(table.fragmented[name][index]),
            )
            for name in table.resources
        },
    }


def _taints(info: NodeInfo) -> Sequence[str]:
    taints = () if info.node is None else info.node.spec.taints
    return [
        f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}" for taint in taints
    ]


def one_node(listing: Listing, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of one node shows.

    Raises
    ------
    SourceError
        When there is no such node.
    """
    table = listing.table
    indices = {info.name: index for index, info in enumerate(table.infos)}
    if name not in indices:
        raise SourceError(f"there is no node {name} among {len(indices)}")
    info = table.infos[indices[name]]
    pods = sorted(info.pods.values(), key=lambda each: natural(each.key))
    return {
        "name": name,
        "line": _line(table, indices[name]),
        "labels": sorted(info.labels.items()),
        "page": page_of(pods, query.get("page", "")),
        "resources": table.resources,
    }

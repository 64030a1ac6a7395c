"""The results of plugins that concern many nodes, or more than one fact, at once.

:class:`NodeVerdicts` is the vector form of a Status, :class:`PreFilterResult` the result of a
PreFilter, and :class:`PreFlight` the announcement of a PreBind. Scores need no class: they are
int64 arrays with one entry for each node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.framework.status import SKIP, SUCCESS, Status

BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
RowArray: TypeAlias = npt.NDArray[np.intp]

Detail: TypeAlias = Callable[[], tuple[npt.NDArray[np.integer], Sequence[Status]]]
"""Gives ``which`` of shape (n_nodes,) and the distinct statuses it indexes."""


class NodeVerdicts:
    """The nodes that pass one filter and, on request, the reasons why the others do not.

    The reasons are computed on request, because a pod that fits on some node needs none.

    Parameters
    ----------
    passed
        bool, shape (n_nodes,); or None when every node passes.
    detail
        For filters with several reasons: gives, for each node, the index of its status among
        the distinct ones. Entries of nodes that pass are not read.
    status
        For filters with one reason: the status of every node that does not pass.
    """

    __slots__ = ("_detail", "_status", "passed")

    def __init__(
        self,
        passed: BoolArray | None,
        *,
        status: Status | None = None,
        detail: Detail | None = None,
    ) -> None:
        if passed is not None and (status is None) == (detail is None):
            raise ValueError("a filter that rejects nodes gives either one status or a detail")
        self.passed = passed
        self._status = status
        self._detail = detail

    def statuses(self) -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
        """Return the distinct statuses, and the index of each node's status among them.

        Returns
        -------
        which
            integers, shape (n_nodes,); only entries of rejected nodes have a meaning.
        statuses
            the distinct statuses.
        """
        if self.passed is None:
            return np.zeros(0, dtype=np.intp), ()
        if self._detail is not None:
            return self._detail()
        assert self._status is not None  # noqa: S101 - the constructor holds this
        return np.zeros(len(self.passed), dtype=np.intp), (self._status,)

    def status_of(self, index: int) -> Status:
        """Return the status of one node, ``SUCCESS`` if it passes."""
        if self.passed is None or self.passed[index]:
            return SUCCESS
        which, statuses = self.statuses()
        return statuses[int(which[index])]


ALL_PASS = NodeVerdicts(None)
"""Every node passes."""


class PreFilterResult:
    """The result of a PreFilter.

    Parameters
    ----------
    status
        Success, Skip (the plugin's Filter is passed over), or the reason why no node can do.
    node_names
        The only nodes that can do, or None for no such limit.
    """

    __slots__ = ("node_names", "status")

    def __init__(self, status: Status = SUCCESS, node_names: frozenset[str] | None = None) -> None:
        self.status = status
        self.node_names = node_names


PROCEED = PreFilterResult()
SKIP_FILTER = PreFilterResult(SKIP)


class PreFlight:
    """The result of a PreBindPreFlight, before PreBind runs.

    Parameters
    ----------
    status
        Success when :meth:`pre_bind` has something to do, Skip when it is to be passed over, or
        an Error. A rejection is taken for an Error: the pod had its filters.
    allow_parallel
        Whether :meth:`pre_bind` may run at the same time as that of other plugins that allow it.
    is_brief
        Whether :meth:`pre_bind` takes as long as its requests do. Then the binding keeps its slot,
        so that not more of them run than the API server answers, and no node is nominated.
    """

    __slots__ = ("allow_parallel", "is_brief", "status")

    def __init__(
        self, status: Status = SUCCESS, *, allow_parallel: bool = False, is_brief: bool = False
    ) -> None:
        self.status = status
        self.allow_parallel = allow_parallel
        self.is_brief = is_brief


PRE_BIND = PreFlight()
"""The PreBind has something to do, alone."""

SKIP_PRE_BIND = PreFlight(SKIP, allow_parallel=True)
"""The PreBind has nothing to do, and stands in nobody's way."""

"""Calls the extenders for one pod in one scheduling cycle.

*Source*: kube-scheduler 1.36, pkg/scheduler/schedule_one.go, findNodesThatPassExtenders and
prioritizeNodes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from cache.value import Value
from plugins.framework.normalize import MAX_NODE_SCORE
from scheduler.decision.decision import RejectedNodes
from scheduler.extenders.extender_client import ExtenderError
from scheduler.extenders.whole_objects import POD_TIMEOUT_S
from scheduler.extenders.wire import MAX_EXTENDER_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Any, TypeVar

    import msgspec

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray
    from plugins.framework.status import Status
    from plugins.framework.victims import Victims
    from scheduler.extenders.http_extender import HttpExtender
    from scheduler.extenders.whole_objects import WholeObjects

    T = TypeVar("T")

SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
"""The factor from an extender's scores to the scores of plugins."""

MAX_SCORE: Final = 1 << 62
"""The limit of the sum of all extenders' scores for a node, positive or negative: the sum with the
plugins' scores still fits into 64 bits."""

SLACK_S: Final = 5.0
"""How long the scheduling thread waits beyond the timeouts of the requests."""

log = structlog.get_logger(__name__)


class Exclusions(Value, frozen=True):
    """The result of the extenders' filters for some nodes.

    ``kept`` are indices into the filtered view, in its order. ``rejected`` contains the nodes for
    which an extender returned a reason; nodes that it only omitted are not in it.
    """

    kept: IntArray
    rejected: tuple[RejectedNodes, ...]


class Consultation:
    """Calls the extenders that are interested in one pod.

    Notes
    -----
    *Concurrency*: :meth:`filter`, :meth:`prioritize` and :meth:`preempt` from the scheduling
    thread, which waits while the loop sends the requests.

    *Cost*: a request to each extender, one after another to filter, all at once to prioritize;
    one GET of the pod.
    """

    def __init__(
        self,
        info: PodInfo,
        extenders: Sequence[HttpExtender],
        objects: WholeObjects,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._info = info
        self._filters = [each for each in extenders if each.config.filter_verb]
        self._prioritizers = [each for each in extenders if each.config.prioritize_verb]
        self._preemptors = [each for each in extenders if each.config.preempt_verb]
        self._objects = objects
        self._loop = loop
        self._whole: msgspec.Raw | None = None

    def filter(self, view: NodesView) -> Exclusions:
        """Let the extenders filter the feasible nodes.

        Raises
        ------
        ExtenderError
            When an extender fails that is not ignorable.
        """
        names = _names(view)
        if not names or not self._filters:
            return Exclusions(np.arange(len(names)), ())
        left, statuses = self._wait(self._filter(names), self._filters)
        groups: dict[Status, list[str]] = {}
        for name, status in statuses.items():
            groups.setdefault(status, []).append(name)
        return Exclusions(
            np.array([index for index, name in enumerate(names) if name in left], dtype=np.int64),
            tuple(RejectedNodes(status, tuple(found)) for status, found in groups.items()),
        )

    def prioritize(self, view: NodesView) -> IntArray:
        """Return what extenders add to the total score of each node; failures add nothing.

        # Differs: kube-scheduler's sum overflows on extreme scores; here it saturates.
        """
        names = _names(view)
        if not self._prioritizers:
            return np.zeros(len(names), dtype=np.int64)
        try:
            added = self._wait(self._prioritize(names), self._prioritizers)
        except ExtenderError as error:
            log.warning("extender returned no scores", pod=self._info.key, error=str(error))
            added = {}
        return np.array(
            [max(min(added.get(name, 0), MAX_SCORE), -MAX_SCORE) for name in names], dtype=np.int64
        )

    def preempt(
        self, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Return the candidates for preemption that extenders accept, with the victims they return.

        Raises
        ------
        ExtenderError
            When an extender fails that is not ignorable.

        *Source*: kube-scheduler 1.36, pkg/scheduler/framework/preemption/preemption.go
        (callExtenders).
        """
        if not candidates or not self._preemptors:
            return candidates
        return self._wait(self._preempt(candidates, nodes), self._preemptors)

    async def _preempt(
        self, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        left = candidates
        for extender in self._preemptors:
            if not left:
                break
            try:
                told = await extender.preempt(await self._pod(), left, nodes)
            except ExtenderError as error:
                self._skip(extender, error)
                continue
            empty = [node for node, victims in told.items() if not victims.pods]
            if empty and not extender.config.ignorable:
                raise ExtenderError(
                    f'extender "{extender.name}": expected at least one victim pod on node '
                    f'"{empty[0]}"'
                )
            left = {node: victims for node, victims in told.items() if victims.pods}
        return left

    def _skip(self, extender: HttpExtender, error: ExtenderError) -> None:
        """Log a failure of an extender that is ignorable; raise that of any other."""
        if not extender.config.ignorable:
            raise error
        log.info(
            "skipping an extender that failed and is ignorable",
            extender=extender.name,
            pod=self._info.key,
            error=str(error),
        )

    def _wait(self, call: Coroutine[Any, Any, T], asked: Sequence[HttpExtender]) -> T:
        """Run a call on the loop. The deadline covers a blocked loop: requests have timeouts."""
        # A request may be sent twice.
        limit_s = POD_TIMEOUT_S + SLACK_S + 2 * sum(extender.client.timeout_s for extender in asked)
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result(limit_s)
        except TimeoutError as error:
            future.cancel()
            raise ExtenderError(f"no answer of extenders within {limit_s:g} s") from error

    async def _filter(self, names: Sequence[str]) -> tuple[frozenset[str], dict[str, Status]]:
        left = list(names)
        statuses: dict[str, Status] = {}
        for extender in self._filters:
            if not left:
                break
            try:
                verdict = await extender.filter(await self._pod(), left)
            except ExtenderError as error:
                self._skip(extender, error)
                continue
            left = [name for name in left if name in verdict.passed]
            statuses |= verdict.rejected
        remaining = frozenset(left)
        return remaining, {k: status for k, status in statuses.items() if k not in remaining}

    async def _prioritize(self, names: Sequence[str]) -> dict[str, int]:
        added: dict[str, int] = {}
        pod = await self._pod()
        answers = await asyncio.gather(
            *(extender.prioritize(pod, names) for extender in self._prioritizers),
            return_exceptions=True,
        )
        for extender, scores in zip(self._prioritizers, answers, strict=True):
            if isinstance(scores, ExtenderError):
                log.warning(
                    "extender returned no scores",
                    extender=extender.name,
                    pod=self._info.key,
                    error=str(scores),
                )
            elif isinstance(scores, BaseException):
                raise scores
            else:
                for name, score in scores.items():
                    added[name] = added.get(name, 0) + score * extender.config.weight * SCALE
        return added

    async def _pod(self) -> msgspec.Raw:
        if self._whole is None:
            self._whole = await self._objects.pod(self._info)
        return self._whole


def _names(view: NodesView) -> list[str]:
    return [view.node_info(index).name for index in range(len(view))]

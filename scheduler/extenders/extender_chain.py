"""All extenders of a configuration, in the order in which they are asked.

Source: kube-scheduler 1.36, pkg/scheduler/scheduler.go (buildExtenders) and schedule_one.go
(extendersBinding).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from plugins.framework.status import SUCCESS, Code, Status
from scheduler.extenders.consultation import Consultation
from scheduler.extenders.extender_client import ExtenderError
from scheduler.extenders.http_extender import HttpExtender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.victims import Victims
    from scheduler.config import Extender
    from scheduler.extenders.whole_objects import WholeObjects

log = structlog.get_logger(__name__)


class ExtenderChain:
    """The extenders, those that are ignorable last.

    Parameters
    ----------
    extenders
        As the configuration has them, at least one.
    objects
        Where whole pods and nodes come from.
    loop
        Where requests are made.
    settle
        Tells what became of a binding that may have been made: a status, or None when the pod is
        not bound.
    write_fence
        How much of its timeout a binding may have that starts now; nothing or less refuses it.

    Raises
    ------
    ClientConfigError
        When a TLS configuration cannot be used; names its path.

    Attributes
    ----------
    binds_in_flight
        How many bindings have been sent to extenders and are not answered yet.

    Notes
    -----
    *Concurrency*: :meth:`consult`, the attribute and the properties from any thread,
    :meth:`preempt` from the scheduling thread, the rest on the loop.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        objects: WholeObjects,
        loop: asyncio.AbstractEventLoop,
        settle: Callable[[PodInfo, str], Awaitable[Status | None]],
        write_fence: Callable[[float], float] | None = None,
    ) -> None:
        made = [
            HttpExtender(extender, f"extenders[{index}]", objects)
            for index, extender in enumerate(extenders)
        ]
        self._extenders = sorted(made, key=lambda extender: extender.config.ignorable)
        self._objects = objects
        self._loop = loop
        self._settle = settle
        self._write_fence = write_fence
        self.binds_in_flight = 0

    @property
    def wants_all_feasible(self) -> bool:
        """Whether an extender filters or scores: then the first feasible node is not enough."""
        return any(
            each.config.filter_verb or each.config.prioritize_verb for each in self._extenders
        )

    @property
    def requests_in_flight(self) -> int:
        """How many requests of any kind have no answer yet."""
        return sum(each.client.in_flight for each in self._extenders)

    def consult(self, info: PodInfo) -> Consultation | None:
        """Return the way to ask about a pod; None if no extender is interested."""
        interested = [each for each in self._extenders if each.is_interested(info.pod)]
        if not interested:
            return None
        return Consultation(info, interested, self._objects, self._loop)

    def preempt(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Let the extenders that preempt narrow the candidates; the scheduling thread waits.

        Raises
        ------
        ExtenderError
            When an extender fails that is not ignorable.
        """
        consultation = self.consult(info)
        return candidates if consultation is None else consultation.preempt(candidates, nodes)

    async def bind(self, info: PodInfo, node_name: str) -> Status | None:
        """Let an extender bind the pod, if one binds and is interested.

        # Differs: an extender that failed may have bound the pod; the API server is asked before
        the pod is given up.

        Returns
        -------
        What became of it; None when the plugins shall bind it.
        """
        for extender in self._extenders:
            if not extender.config.bind_verb or not extender.is_interested(info.pod):
                continue
            try:
                await self._bind(extender, info, node_name)
            except ExtenderError as error:
                settled = await self._settle(info, node_name)
                if settled is not None:
                    return settled
                if not extender.config.ignorable:
                    return Status(Code.ERROR, (f"binding by an extender: {error}",), error=error)
                log.info(
                    "skipping an extender that failed to bind and is ignorable",
                    extender=extender.name,
                    pod=info.key,
                    error=str(error),
                )
            else:
                return SUCCESS
        return None

    async def _bind(self, extender: HttpExtender, info: PodInfo, node_name: str) -> None:
        timeout_s = extender.client.timeout_s
        if self._write_fence is not None:
            timeout_s = self._write_fence(timeout_s)
        if timeout_s <= 0.0:
            raise ExtenderError("this process may not write, or not any more")
        self.binds_in_flight += 1
        try:
            async with asyncio.timeout(timeout_s):
                await extender.bind(info, node_name)
        except TimeoutError as error:
            raise ExtenderError(f"no answer within {timeout_s:g} s") from error
        finally:
            self.binds_in_flight -= 1

    async def close(self) -> None:
        """Close all connections."""
        for extender in self._extenders:
            await extender.client.close()

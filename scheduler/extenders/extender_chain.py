"""The chain of all extenders of a configuration, in the order in which they are called.

*Source*: kube-scheduler 1.36, pkg/scheduler/scheduler.go (buildExtenders) and schedule_one.go
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
        The extenders as in the configuration, at least one.
    objects
        Provides whole pods and nodes.
    loop
        The event loop on which requests are sent.
    settle
        Returns the outcome of a binding that may have taken effect: a status, or None if the pod
        is not bound.
    write_fence
        Returns how much of its timeout a binding that starts now may use; a result of 0 or less
        refuses the binding.

    Raises
    ------
    ClientConfigError
        When a TLS configuration cannot be used; the message contains its path.

    Attributes
    ----------
    binds_in_flight
        The number of bindings that were sent to extenders and have no response yet.

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
        """Whether an extender filters or scores: then one feasible node does not suffice."""
        return any(
            each.config.filter_verb or each.config.prioritize_verb for each in self._extenders
        )

    @property
    def requests_in_flight(self) -> int:
        """The number of requests of any kind that have no response yet."""
        return sum(each.client.in_flight for each in self._extenders)

    def consult(self, info: PodInfo) -> Consultation | None:
        """Return the consultation for a pod; None if no extender is interested."""
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

        # Differs: an extender that failed may have bound the pod; the pod is read from the API
        server before the attempt is abandoned.

        Returns
        -------
        The status of the binding; None if the plugins are to bind the pod.
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

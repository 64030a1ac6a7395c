"""Binding a pod through the API, with every kind of answer settled.

An answer that leaves open whether the binding was made is settled by asking for the pod, and
the binding is sent again to the same node if it was not. It is never sent to a second node:
the API server would take it, and two schedulers' worth of books would be wrong.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from cache.resources import MalformedObjectError
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.client.errors import Action, ApiError, backoff_s, classify

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from cache.objects import Pod
    from cache.pod_info import PodInfo

MAX_RETRIES = 6
"""Attempts at a binding that the server refused to take up; about ten seconds in all. After
that the pod goes back to the queue, so that it may find another node."""

MIN_SETTLE_S = 0.1
"""Between two questions about one binding, whatever the error says of delays."""

log = structlog.get_logger(__name__)


class PodGoneError(Exception):
    """The pod was deleted, or made again under its name; there is nothing left to bind."""


class BoundElsewhereError(Exception):
    """Somebody else bound the pod, to the node named ``node_name``."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f"another scheduler bound the pod to node {node_name}")
        self.node_name = node_name


class BindingApi(Protocol):
    """The two calls that binding needs."""

    async def bind_pod(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """POST the binding; raise ApiError unless it was accepted."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """GET the pod; None when there is none."""
        ...


class Binder:
    """Binds pods; the service behind :meth:`plugins.framework.handle.Handle.bind_pod`.

    Parameters
    ----------
    api
        The API server.
    rng
        Jitter of the delays between attempts.
    sleep
        Waits between attempts.

    Notes
    -----
    *Concurrency*: confined to the I/O loop; any number of bindings at a time.
    """

    def __init__(
        self,
        api: BindingApi,
        rng: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._rng = rng
        self._sleep = sleep

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod; return once it is known what became of it.

        Returns
        -------
        Success when the API server holds the binding to ``node_name``. Else an Error status,
        whose ``error`` is a :class:`PodGoneError`, a :class:`BoundElsewhereError`, or the
        ApiError of the last attempt.
        """
        metadata = info.pod.metadata
        attempt = 0
        while True:
            try:
                await self._api.bind_pod(metadata.namespace, metadata.name, metadata.uid, node_name)
            except ApiError as error:
                verdict = classify(error, attempt, self._rng)
                attempt += 1
                if verdict.action is Action.GONE:
                    return _failed(PodGoneError(str(error)), node_name)
                if verdict.action in (Action.SETTLE, Action.CONFLICT):
                    await self._sleep(verdict.delay_s)
                    settled = await self.settle(info, node_name)
                    if settled is not None:
                        return settled
                    if verdict.action is Action.CONFLICT:
                        return _failed(error, node_name)
                elif verdict.action is Action.RETRY and attempt <= MAX_RETRIES:
                    await self._sleep(verdict.delay_s)
                else:
                    if verdict.action is Action.FORBIDDEN:
                        log.error("binding pods is forbidden", pod=info.key, error=str(error))
                    return _failed(error, node_name)
            else:
                return SUCCESS

    async def settle(self, info: PodInfo, node_name: str) -> Status | None:
        """Ask what became of a binding to a node; None means that the pod is still unbound.

        Asks until there is an answer: the pod keeps its room on the node for so long, which is
        the only safe thing while the binding may have been made.
        """
        attempt = 0
        while True:
            try:
                pod = await self._api.get_pod(info.namespace, info.name)
            except ApiError as error:
                verdict = classify(error, attempt, self._rng)
                attempt += 1
                log.warning("cannot settle a binding yet", pod=info.key, error=str(error))
                await self._sleep(max(verdict.delay_s, MIN_SETTLE_S))
                continue
            except MalformedObjectError as error:
                log.error("the pod of a binding cannot be read", pod=info.key, error=str(error))
                await self._sleep(backoff_s(attempt, self._rng))
                attempt += 1
                continue
            if pod is None or pod.metadata.uid != info.uid:
                return _failed(PodGoneError("the pod no longer exists"), node_name)
            if pod.spec.node_name == node_name:
                return SUCCESS
            if pod.spec.node_name:
                return _failed(BoundElsewhereError(pod.spec.node_name), node_name)
            if pod.metadata.deletion_timestamp is not None:
                return _failed(PodGoneError("the pod is being deleted"), node_name)
            return None


def _failed(error: Exception, node_name: str) -> Status:
    return Status(Code.ERROR, (f"binding to node {node_name}: {error}",), error=error)

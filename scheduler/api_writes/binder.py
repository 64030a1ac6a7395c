"""Bind a pod through the API, and settle every kind of response.

An answer that leaves open whether the binding was made is settled by asking for the pod, and
the binding is sent again to the same node if it was not. It is never sent to a second node before
that: the API server would take it, and two schedulers' worth of books would be wrong.

    POST -> accepted                                            bound
         -> in doubt, conflict, not found -> GET -> on our node   bound
                                                 -> elsewhere, gone or another: nothing left to do
                                                 -> unbound       POST again, or abandon it
         -> not taken up                                          POST again, or abandon it
         -> refused                                               abandon it

An abandoned binding is undone, and its pod is tried again after its backoff. It is abandoned after
a bounded number of attempts and a bounded time, whatever is answered: a webhook on
``pods/binding`` may answer 500 for ever.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from cache.resources import MalformedObjectError
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.api_writes.failing_namespaces import FailingNamespaces
from scheduler.api_writes.settle import (
    MAX_PAUSE_S,
    REFUSED,
    RETRIES,
    Failure,
    settle,
    why_given_up,
)
from scheduler.client.errors import Action, ApiError, backoff_s, classify

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from scheduler.api_writes.binding_slots import BindingSlots
    from scheduler.process.ports import Ports

MAX_TRIES: Final = 6
"""Requests for one binding while nobody answers; about ten seconds in all, so that a restart of the
API server costs no pod its turn. After that the pod goes back to the queue, so that it may find
another node."""

MAX_ANSWERED: Final = 3
"""The same where the API server answers: about a second. What it says then is seldom about to
change, and while it stays so each attempt costs the others."""

MAX_TRYING_S: Final = 20.0
"""After so long since the first one no request is sent again; each may take its timeout."""

MAX_PAUSING: Final = 512
"""Bindings that pause between two attempts at one time; each holds room on a node. Whichever fails
beyond that is abandoned at once."""

SLOW_S: Final = 2.0
"""A binding that fails after so long has hung, most likely in a webhook: where that happens
bindings count as failing at once."""

MAX_FAILING: Final = 4
"""Requests under way in a namespace where bindings fail: each may hang for its whole timeout, and
takes one of the connections that all bindings share. Whichever comes beyond that is not sent."""

MIN_SETTLE_S: Final = 0.1
"""Between two questions about one binding, whatever the error says of delays."""

log = structlog.get_logger(__name__)


class PodGoneError(Exception):
    """The pod was deleted, or made again under its name; there is nothing left to bind."""


class BoundElsewhereError(Exception):
    """Somebody else bound the pod, to the node named ``node_name``."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f"another scheduler bound the pod to node {node_name}")
        self.node_name = node_name


class PodReaderApi(Protocol):
    """The call that settles what became of a write to a pod; raises ApiError."""

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod as it is stored now, or None if there is none of that name."""
        ...


class BindingApi(PodReaderApi, Protocol):
    """The two calls that binding needs."""

    async def bind_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        *,
        resource_version: str = "",
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """POST the binding; raise ApiError unless it was accepted.

        ``resource_version`` is that of the pod which is bound; the empty string for any.
        ``may_send`` is asked right before the request is written, and nothing is sent if it says
        no.
        """
        ...


def _sends(_: PodInfo) -> Status:
    return SUCCESS


def _any_version(_: PodInfo) -> str:
    return ""


class Binder:
    """Binds pods; the service behind :meth:`plugins.framework.handle.Handle.bind_pod`.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    slots
        Where a binding that waits gives its slot back.
    check
        The guard: returns whether a binding is still worth sending. It is asked right before each
        request is written, which may have waited for another attempt, for the limiter and for a
        connection. :class:`BindingCycles` asks before all of that.
    version
        Returns the version of a pod on which its binding depends; empty for any.
    on_abandoned
        Receives the reason of each binding that is abandoned while its pod is still there:
        ``retries``, ``throttled``, ``crowded``, ``conflict``, ``not_found``, ``forbidden`` or
        ``refused``; not where its namespace is being deleted.

    Notes
    -----
    *Concurrency*: confined to the I/O loop; any number of bindings at a time.
    """

    def __init__(
        self,
        ports: Ports[BindingApi],
        slots: BindingSlots,
        on_abandoned: Callable[[str], None],
        check: Callable[[PodInfo], Status] = _sends,
        version: Callable[[PodInfo], str] = _any_version,
    ) -> None:
        self._check = check
        self._version = version
        self._api = ports.api
        self._rng = ports.rng
        self._sleep = ports.executor.sleep
        self._clock = ports.clock.monotonic
        self._slots = slots
        self._on_abandoned = on_abandoned
        self._pausing = 0
        self._failing = FailingNamespaces()
        self._under_way: dict[str, int] = {}

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod; return once it is known what became of it.

        Returns
        -------
        Success when the API server holds the binding to ``node_name``. Else an Error status,
        whose ``error`` is a :class:`PodGoneError`, a :class:`BoundElsewhereError`, or the
        ApiError of the last attempt: then the pod is still there and has no node. Or what the
        guard says, when it is asked again.
        """
        namespace, began_s = info.namespace, self._clock()
        if namespace in self._failing and self._under_way.get(namespace, 0) >= MAX_FAILING:
            hang = ApiError(None, "NotSent", "bindings of this namespace fail or hang")
            return self._abandon(info, node_name, hang, "crowded", 0)
        end = await settle(
            lambda: self._send(info, node_name),
            lambda failure: self._why_abandoned(info, failure, began_s),
            lambda seconds: self._pause(info, min(seconds, MAX_PAUSE_S)),
            self._rng,
            lambda _: self.settle(info, node_name),
        )
        if isinstance(end, Failure):
            return self._abandon(info, node_name, end.error, end.why, end.tries)
        return end

    async def _send(self, info: PodInfo, node_name: str) -> Status:
        namespace, under_way, sent_s = info.namespace, self._under_way, self._clock()
        under_way[namespace] = under_way.get(namespace, 0) + 1
        last_look = LastLook(self._check, info)
        try:
            await self._api.bind_pod(
                namespace,
                info.name,
                info.uid,
                node_name,
                resource_version=self._version(info),
                may_send=last_look.may_send,
            )
        except ApiError:
            if not last_look.status.is_success:
                return last_look.status
            if self._clock() - sent_s > SLOW_S:
                self._failing.timed_out(namespace)
            raise
        finally:
            others = under_way.pop(namespace) - 1
            if others:
                under_way[namespace] = others
        self._failing.accepted(namespace)
        return SUCCESS

    async def settle(self, info: PodInfo, node_name: str) -> Status | None:
        """Ask what became of a binding to a node; None means that the pod is still unbound.

        Asks until there is an answer: the pod keeps its room on the node for so long, which is
        the only safe thing while the binding may have been made.
        """
        for attempt in count():
            try:
                pod = await self._api.get_pod(info.namespace, info.name)
            except ApiError as error:
                log.warning("cannot settle a binding yet", pod=info.key, error=str(error))
                delay_s = classify(error, attempt, self._rng).delay_s
                await self._pause(info, max(delay_s, MIN_SETTLE_S))
                continue
            except MalformedObjectError as error:
                log.error("the pod of a binding cannot be read", pod=info.key, error=str(error))
                await self._pause(info, backoff_s(attempt, self._rng))
                continue
            if pod is None or pod.metadata.uid != info.uid:
                return _failed(PodGoneError("the pod no longer exists"), node_name)
            if pod.spec.node_name == node_name:
                return SUCCESS
            if pod.spec.node_name:
                return _failed(BoundElsewhereError(pod.spec.node_name), node_name)
            if pod.metadata.deletion_timestamp is not None:
                return _failed(PodGoneError("the pod is being deleted"), node_name)
            break
        return None

    def _why_abandoned(self, info: PodInfo, failure: Failure, began_s: float) -> str:
        """Return why a binding is not sent again unless it was made; empty when it is."""
        error = failure.error
        usual = MAX_ANSWERED if error.is_explained else MAX_TRIES
        why = why_given_up(failure, self._failing.tries(info.namespace, usual))
        if why == REFUSED:
            if failure.action is Action.FORBIDDEN and error.is_namespace_terminating:
                return _TERMINATING
            if failure.action is Action.FORBIDDEN and error.is_from_admission:
                return REFUSED
            return _REFUSALS.get(failure.action, REFUSED)
        if not why and self._clock() - began_s >= MAX_TRYING_S:
            return RETRIES
        return why or ("crowded" if self._pausing >= MAX_PAUSING else "")

    def _abandon(
        self, info: PodInfo, node_name: str, error: ApiError, why: str, tries: int
    ) -> Status:
        if why == RETRIES:
            self._failing.gave_up(info.namespace, error)
        if why == "forbidden":
            log.error("binding pods is forbidden", pod=info.key, error=str(error))
        else:
            log.info(
                "binding abandoned",
                pod=info.key,
                node=node_name,
                why=why,
                tries=tries,
                error=str(error),
            )
        if why != _TERMINATING:  # the pod is about to go, and nobody has to do anything
            self._on_abandoned(why)
        return _failed(error, node_name)

    async def _pause(self, info: PodInfo, seconds: float) -> None:
        """Wait without a slot: what only waits holds up nobody."""
        self._slots.release(info.uid)
        self._pausing += 1
        try:
            await self._sleep(seconds)
        finally:
            self._pausing -= 1


class LastLook:
    """A look of the guard when the request of a binding is about to be written.

    Attributes
    ----------
    status
        What the guard said; Success before it was asked.
    """

    __slots__ = ("_check", "_info", "status")

    def __init__(self, check: Callable[[PodInfo], Status], info: PodInfo) -> None:
        self._check = check
        self._info = info
        self.status = SUCCESS

    def may_send(self) -> bool:
        """Return whether the binding is still worth sending."""
        self.status = self._check(self._info)
        return self.status.is_success


_TERMINATING: Final = "namespace_terminating"

_REFUSALS: Final = {
    Action.GONE: "not_found",
    Action.CONFLICT: "conflict",
    Action.FORBIDDEN: "forbidden",
}


def _failed(error: Exception, node_name: str) -> Status:
    return Status(Code.ERROR, (f"binding to node {node_name}: {error}",), error=error)

"""Serve the answers under ``/insight/v1``, as JSON.

    GET /insight/v1/why?namespace=N&name=P&form=F            one pod: its attempts, and a trial now
    GET /insight/v1/decisions?after=K&limit=L&namespace=N    outcomes of attempts in their order
    GET /insight/v1/pending?namespace=N                      pending pods by reason
    POST /insight/v1/what-if                                 a forecast
    GET /insight/v1/policies                                 profiles, policies, and shadows

Only the leader answers; other replicas respond with 503 and the reason ``NotLeading``. Questions
are limited for each user; beyond it the response is 429 with ``Retry-After``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.pod_group_objects import group_key
from scheduler.insight.forecast_rights import require_forecast, scope_of
from scheduler.insight.outgoing import Outgoing
from scheduler.insight.pending_reasons import last_message, pending_reasons
from scheduler.insight.rate_limit import RateLimit
from scheduler.insight.refusals import with_refusals
from scheduler.insight.refused import RefusedError, bad_question, not_leading
from scheduler.insight.rights import (
    require_pod,
    require_pods,
    require_policies,
    sees_all_pods,
    sees_nodes,
)
from scheduler.serving.server import UserPage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web

    from cache.objects import Pod
    from scheduler.decision.recent_decisions import Outcome, RecentDecisions
    from scheduler.insight.worker import InsightWorker
    from scheduler.queueing import SchedulingQueue
    from scheduler.serving.server import Visitor

PREFIX: Final = "/insight/v1"

_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Source: Kubernetes, object names: RFC 1123 subdomains."""

MAX_LIMIT: Final = 1_000
_LIMIT: Final = 100

_READS_PER_S: Final = 10.0
_READS: Final = 30
"""Of one user: a page that polls a few views each second, in a few tabs."""

_TRIALS_PER_S: Final = 2.0
_TRIALS: Final = 5
"""Of one user: questions that a child process has to work for."""

_LIMIT_S: Final = 30.0
"""For up to three reviews by the API server, and the answer."""

WHY_S: Final = 10.0
"""How long the trial of one pod may take."""

WHAT_IF_S: Final = 40.0
"""How long a forecast may take; of a user who may not list all pods, no longer than a trial."""

COUNT_S: Final = 5.0
"""How long one count of the pending pods of all namespaces serves everybody: 20 000 pods take 40 ms
of the interpreter, and each page that is open asks every 15 s."""

MAX_QUESTION_BYTES: Final = 1 << 20

_WITH_COPY_S: Final = 80.0
"""For a question that has to wait for others and for the copy of a large cluster."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What answers are made of.

    Attributes
    ----------
    recent
        The outcomes of recent attempts.
    queue
        The pending pods.
    worker
        Answers what has to be worked for.
    live_pod
        Returns a pod by namespace and name, or None.
    state_of
        Returns what becomes of a pod at present, in a word.
    leads
        Whether this process schedules.
    policies
        Returns profiles, policies and shadows as plain data.
    clock
        Seconds of the queue's monotonic clock.
    pool
        Which nodes there are; empty for all.
    """

    recent: RecentDecisions
    queue: SchedulingQueue
    worker: InsightWorker
    live_pod: Callable[[str, str], Pod | None]
    state_of: Callable[[Pod], str]
    leads: Callable[[], bool]
    policies: Callable[[], Mapping[str, Any]]
    clock: Callable[[], float]
    pool: str = ""


class InsightPages:
    """The pages for users.

    Notes
    -----
    *Concurrency*: loop-confined; what takes long is done on a thread.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._reads = RateLimit(_READS_PER_S, _READS, sources.clock)
        self._trials = RateLimit(_TRIALS_PER_S, _TRIALS, sources.clock)
        self._counting = asyncio.Lock()
        self._outgoing = Outgoing()
        self._counted: Mapping[str, Any] = {}
        self._counted_s = float("-inf")
        self._forecasts: set[str] = set()
        self._forecasting = asyncio.Lock()

    def pages(self) -> list[UserPage]:
        """Return all pages."""
        handlers = {
            "decisions": self._decisions,
            "pending": self._pending,
            "policies": self._policies,
        }
        why, what_if = with_refusals(self._why), with_refusals(self._what_if)
        return [
            UserPage("GET", f"{PREFIX}/why", why, _WITH_COPY_S),
            UserPage("POST", f"{PREFIX}/what-if", what_if, _WITH_COPY_S),
            *(
                UserPage("GET", f"{PREFIX}/{name}", with_refusals(handler), _LIMIT_S)
                for name, handler in handlers.items()
            ),
        ]

    async def _why(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        self._admit(visitor, self._trials)
        namespace, name = _name(request, "namespace"), _name(request, "name")
        only_text = _form(request) == "text"
        await require_pod(visitor, namespace, name)
        shows_nodes, sources = await sees_nodes(visitor), self._sources
        key = f"{namespace}/{name}"
        pod = sources.live_pod(namespace, name)
        if pod is None:
            raise no_such_pod(key)
        found = await sources.worker.ask(
            "why",
            WHY_S,
            shows_nodes=shows_nodes,
            shows_pods=await sees_all_pods(visitor),
            pod=key,
            uid=pod.metadata.uid,
            only_text=only_text,
        )
        # What was decided while the trial ran belongs to the answer.
        pod = sources.live_pod(namespace, name)
        if pod is None:
            raise no_such_pod(key)
        if not sources.leads():
            raise not_leading()
        sources.recent.collect()
        group = group_key(pod)
        outcomes = sources.recent.of_pod(key, "" if group is None else str(group))
        about = {
            "pod": key,
            "state": sources.state_of(pod),
            "decisions": [shown(outcome, shows_nodes=shows_nodes) for outcome in outcomes],
            **({"pool": sources.pool} if sources.pool else {}),
        }
        answer = {**about, **msgspec.json.decode(found, type=dict[str, msgspec.Raw])}
        return await self._json(request, answer)

    async def _what_if(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        self._admit(visitor, self._trials)
        body = await _body(request)
        shows_nodes, shows_pods = await sees_nodes(visitor), await sees_all_pods(visitor)
        if not (shows_nodes and shows_pods):
            scope = await asyncio.to_thread(scope_of, body)
            await require_forecast(visitor, scope, shows_nodes=shows_nodes, shows_pods=shows_pods)
        user = visitor.user.username
        if user in self._forecasts:
            raise RefusedError(429, "TooManyRequests", "a forecast of this user is under way", 5.0)
        self._forecasts.add(user)
        try:
            # One at a time, so that a question about a pod never waits for forecasts alone.
            async with self._forecasting:
                limit_s = WHAT_IF_S if shows_pods else WHY_S
                found = await self._sources.worker.ask(
                    "what-if", limit_s, shows_nodes=shows_nodes, shows_pods=shows_pods, body=body
                )
        finally:
            self._forecasts.discard(user)
        if not self._sources.leads():
            raise not_leading()
        return await self._outgoing.json(request, found)

    async def _decisions(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        self._admit(visitor, self._reads)
        after = _number(request, "after", 0, None)
        limit = _number(request, "limit", _LIMIT, MAX_LIMIT)
        namespace = request.query.get("namespace", "")
        await require_pods(visitor, namespace)
        shows_nodes = await sees_nodes(visitor)
        recent = self._sources.recent
        recent.collect()
        outcomes = recent.after(after, limit)
        last = outcomes[-1].seq if outcomes else recent.last
        return await self._json(
            request,
            {
                "last": last,
                "decisions": [
                    shown(outcome, shows_nodes=shows_nodes)
                    for outcome in outcomes
                    if not namespace or outcome.namespace == namespace
                ],
            },
        )

    async def _pending(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        self._admit(visitor, self._reads)
        namespace = request.query.get("namespace", "")
        await require_pods(visitor, namespace)
        sources = self._sources
        sources.recent.collect()
        # One at a time: more of them would only take the interpreter from each other.
        async with self._counting:
            found = self._counted
            if namespace or sources.clock() >= self._counted_s + COUNT_S:
                waiting = sources.queue.waiting()
                found = await asyncio.to_thread(
                    pending_reasons,
                    waiting,
                    sources.clock(),
                    lambda queued: last_message(sources.recent, queued),
                    namespace,
                )
            if found is not self._counted and not namespace:
                self._counted_s, self._counted = sources.clock(), found
        return await self._json(request, found)

    async def _policies(self, request: web.Request, visitor: Visitor) -> web.StreamResponse:
        self._admit(visitor, self._reads)
        await require_policies(visitor)
        return await self._json(request, await asyncio.to_thread(self._sources.policies))

    async def _json(self, request: web.Request, data: Any) -> web.StreamResponse:
        return await self._outgoing.json(request, msgspec.json.encode(data))

    def _admit(self, visitor: Visitor, limit: RateLimit) -> None:
        """Return if this replica leads and the user has not asked too often.

        Raises
        ------
        RefusedError
            Otherwise.
        """
        if not self._sources.leads():
            raise not_leading()
        wait_s = limit.wait_s(visitor.user.username)
        if wait_s:
            raise RefusedError(429, "TooManyRequests", "too many questions of this user", wait_s)


def shown(outcome: Outcome, *, shows_nodes: bool) -> dict[str, Any]:
    """Return an outcome as plain data; without the names of nodes if they are not to be shown."""
    data: dict[str, Any] = msgspec.to_builtins(outcome)
    data["time"] = rfc3339(outcome.time)
    if not shows_nodes:
        for key in ("node", "runner_up"):
            if data[key]:
                data[key] = HIDDEN
    return data


HIDDEN: Final = "(hidden)"
"""Stands for the name of a node before a user who may not get nodes."""


def no_such_pod(key: str) -> RefusedError:
    """Return the refusal of a question about a pod that does not exist."""
    return RefusedError(404, "NotFound", f"there is no pod {key}")


async def _body(request: web.Request) -> bytes:
    """Return the body of a request; the server's own limit is for smaller ones."""
    body = bytearray()
    async for part in request.content.iter_chunked(1 << 16):
        body += part
        if len(body) > MAX_QUESTION_BYTES:
            raise RefusedError(
                413, "TooLarge", f"a question has at most {MAX_QUESTION_BYTES} bytes"
            )
    return bytes(body)


def rfc3339(time_s: float) -> str:
    """Return a time as the API writes times, with milliseconds."""
    text = dt.datetime.fromtimestamp(time_s, dt.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _name(request: web.Request, parameter: str) -> str:
    text = request.query.get(parameter, "")
    if not _OBJECT_NAME.fullmatch(text):
        if not text:
            raise bad_question(f"{parameter} is missing")
        raise bad_question(f"{parameter}: {text[:40]!r} is not the name of an object")
    return text


def _form(request: web.Request) -> str:
    form = request.query.get("form", "json")
    if form not in ("json", "text"):
        raise bad_question(f"form: {form[:40]!r} is neither json nor text")
    return form


def _number(request: web.Request, name: str, default: int, limit: int | None) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise bad_question(f"{name}: {text[:40]!r} is not a number")
    return int(text) if limit is None else min(int(text), limit)

"""Answers the page's questions from a listing alone: a dump, or the lists of the user.

Decisions are read from the conditions that the scheduler has written into pods; what only the
leader knows, such as scores and durations of past decisions, is absent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from scheduler.config import ConfigError
from scheduler.explain import as_json, explain
from scheduler.relaxations import find_relaxations
from scheduler.runtime.filter_outcome import PluginError
from scheduler.ui.condition_decisions import decisions_after, records_of
from scheduler.ui.forked import ForkedError, answer_of, start_forked
from scheduler.ui.sources import (
    Decisions,
    Forecast,
    Pending,
    PendingReason,
    Policies,
    ProfileSummary,
    SourceError,
    Why,
)
from scheduler.what_if import (
    DEFAULT_CPU_S,
    QuestionError,
    decode_question,
    forecast,
    forecast_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.objects import Pod
    from scheduler.ui.desk import Desk
    from scheduler.ui.forked import Forked
    from scheduler.ui.listing import Listing
    from scheduler.what_if import Question

T = TypeVar("T")

_SAMPLE: Final = 5

MAX_FORKS: Final = 3
"""How many answers are computed at once, each in a process."""

WHY_S: Final = 60.0

_ERROR: Final = b"error: "
"""No JSON begins like this."""

FORECAST_S: Final = DEFAULT_CPU_S + 60.0
"""Beyond the CPU time of the forecast itself, for a machine that does other things as well."""


def offline_why(listing: Listing, namespace: str, name: str) -> Why:
    """Return what the condition of a pod says, and what would be decided now."""
    info = pending_form(listing, namespace, name)
    pod = listing.cluster.pods[info.key]
    framework = listing.framework(pod.spec.scheduler_name)
    with listing.without(pod) as snapshot:
        try:
            found = explain(framework, snapshot, info)
        except PluginError as error:
            raise SourceError(error.status.message) from error
        storage, placed_on = listing.cluster.known.storage, pod.spec.node_name
        helping = find_relaxations(framework, snapshot, storage, info, placed_on=placed_on)
    now = msgspec.json.decode(as_json(found, helping))
    return Why(
        pod=info.key,
        state=state_of(pod),
        decisions=tuple(record for _, record in records_of(info.key, pod)),
        now=now,
    )


def state_of(pod: Pod) -> str:
    """Return in one or a few words where the pod stands."""
    if is_terminal(pod):
        return f"ended ({pod.status.phase})"
    if pod.metadata.deletion_timestamp is not None:
        return "being deleted"
    if pod.spec.node_name:
        return f"on {pod.spec.node_name}"
    return "gated" if pod.spec.scheduling_gates else "pending"


def find_pod(listing: Listing, namespace: str, name: str) -> Pod:
    """Return a pod of the listing; raises SourceError if there is none."""
    pod = listing.cluster.pods.get(f"{namespace}/{name}")
    if pod is None:
        raise SourceError(f"there is no pod {namespace}/{name} among {len(listing.cluster.pods)}")
    return pod


def pending_form(listing: Listing, namespace: str, name: str) -> PodInfo:
    """Return a pod as if it had no node."""
    pod = find_pod(listing, namespace, name)
    try:
        return PodInfo(replace(pod, spec=replace(pod.spec, node_name="")))
    except MalformedObjectError as error:
        raise SourceError(f"pod {namespace}/{name} cannot be read: {error}") from error


def offline_pending(listing: Listing) -> Pending:
    """Return the pending pods by reason."""
    return Pending(
        pods=len(listing.pending),
        reasons=tuple(
            PendingReason(
                reason=group.reason,
                plugins=group.plugins,
                pods=len(group.pods),
                oldest_s=group.oldest_s,
                sample=tuple(each.key for each in group.pods[:_SAMPLE]),
            )
            for group in listing.reasons
        ),
    )


def offline_policies(listing: Listing) -> Policies:
    """Return the profiles of the configuration, and the policies of the listing."""
    policy = listing.policy
    profiles = tuple(
        ProfileSummary(
            scheduler_name=profile.scheduler_name,
            origin=policy.origin,
            points=profile.points,
            weights=profile.score_weights,
        )
        for profile in policy.profiles
    )
    return Policies(profiles=profiles, policies=tuple(listing.policies))


class OfflineSources:
    """Answers from the newest listing. See :class:`scheduler.ui.sources.Sources`.

    Parameters
    ----------
    desk
        Keeps the listing, and the thread on which it is used.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._forks = asyncio.Semaphore(MAX_FORKS)

    async def why(self, namespace: str, name: str) -> Why:
        """Return what the pod's condition says, and what would be decided now."""
        # In a process of its own: a pod with very many requirements takes long to explain.
        return await self._ask(_why_answer, WHY_S, Why, namespace, name)

    async def decisions(self, after: int, limit: int) -> Decisions:
        """Return what conditions say as decisions."""
        records = await self._desk.work(lambda listing: listing.decisions)
        return decisions_after(records, after, limit)

    async def pending(self) -> Pending:
        """Return the pending pods by reason."""
        return await self._desk.work(offline_pending)

    async def policies(self) -> Policies:
        """Return the profiles of the configuration, and the listed SchedulingProfiles."""
        return await self._desk.work(offline_policies)

    async def what_if(self, question: Mapping[str, Any]) -> Forecast:
        """Return the forecast, computed in a forked process: it changes its copy."""
        try:
            asked = decode_question(msgspec.json.encode(question))
        except QuestionError as error:
            raise SourceError(str(error)) from error
        found = await self._ask(_forecast_answer, FORECAST_S, dict[str, Any], asked)
        return Forecast(data=found)

    async def _ask(
        self, compute: Callable[..., bytes], limit_s: float, form: type[T], *arguments: object
    ) -> T:
        """Return what a function of the listing answers in a forked process."""

        def start(listing: Listing) -> Forked:
            return start_forked(lambda: _or_error(compute, listing, *arguments))

        if self._desk.listing.is_partial:
            raise SourceError("the pods of one namespace are listed, which does not say it")
        async with self._forks:
            forked = await self._desk.work(start)
            try:
                answer = await asyncio.to_thread(answer_of, forked, limit_s)
            except ForkedError as error:
                raise SourceError(str(error)) from error
        if answer.startswith(_ERROR):
            raise SourceError(answer.removeprefix(_ERROR).decode())
        return msgspec.json.decode(answer, type=form)


def _or_error(compute: Callable[..., bytes], *arguments: object) -> bytes:
    try:
        return compute(*arguments)
    except (ConfigError, QuestionError, SourceError) as error:
        return _ERROR + str(error).encode("utf-8", "replace")


def _why_answer(listing: Listing, namespace: str, name: str) -> bytes:
    return msgspec.json.encode(offline_why(listing, namespace, name))


def _forecast_answer(listing: Listing, question: Question) -> bytes:
    policy = listing.policy
    return forecast_json(forecast(listing.cluster, policy.profiles, question, policy.plugins))

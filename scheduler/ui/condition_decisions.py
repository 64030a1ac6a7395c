"""Decisions as far as the conditions of pods tell them.

A condition holds the last decision about its pod: when it was made, and why the pod was refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from scheduler.ui.pending_pods import plugins_of
from scheduler.ui.sources import DecisionRecord, Decisions
from scheduler.ui.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cache.objects import Pod, PodCondition

MAX_DECISIONS: Final = 2000
"""How many decisions are kept of a listing, the newest ones."""


def conditions_as_decisions(pods: Iterable[tuple[str, Pod]]) -> tuple[DecisionRecord, ...]:
    """Return what the conditions of all pods say as decisions, the oldest first.

    *Cost*: a look at each pod, and a sort.
    """
    found = [each for key, pod in pods for each in records_of(key, pod)]
    found.sort(key=lambda each: (each[0], each[1].pod))
    newest = found[-MAX_DECISIONS:]
    first = len(found) - len(newest)
    return tuple(
        replace(record, seq=seq) for seq, (_, record) in enumerate(newest, start=first + 1)
    )


def records_of(key: str, pod: Pod) -> Iterator[tuple[float, DecisionRecord]]:
    """Yield what the conditions of a pod say as decisions, with their times in seconds."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.last_transition_time:
            yield seconds_of(condition.last_transition_time), _record(key, pod, condition)


def _record(key: str, pod: Pod, condition: PodCondition) -> DecisionRecord:
    placed = condition.status == "True"
    return DecisionRecord(
        time=condition.last_transition_time or "",
        pod=key,
        uid=pod.metadata.uid,
        profile=pod.spec.scheduler_name,
        node=pod.spec.node_name if placed else "",
        message="" if placed else condition.message or condition.reason,
        plugins=() if placed else plugins_of(condition.message),
    )


def decisions_after(records: tuple[DecisionRecord, ...], after: int, limit: int) -> Decisions:
    """Return the oldest records after a number; after 0 the newest ones."""
    if after <= 0:
        chosen = records[-limit:]
    else:
        first = records[0].seq if records else 0
        start = max(after - first + 1, 0)
        chosen = records[start : start + limit]
    last = chosen[-1].seq if chosen else max(after, 0)
    return Decisions(last=last, decisions=chosen)

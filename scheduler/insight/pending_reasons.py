"""The pending pods, counted by the reason why they wait.

Pods that the same plugins have rejected share a reason; its text is that of one of them, whose
last attempt is the most recent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scheduler.queueing import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scheduler.decision.recent_decisions import RecentDecisions
    from scheduler.queueing import QueuedPod

MAX_REASONS: Final = 100
SAMPLE: Final = 5

_TEXTS: Final = {
    QueueState.ACTIVE: "waits for its turn",
    QueueState.BACKOFF: "waits before another attempt",
    QueueState.UNSCHEDULABLE: "waits for a change that may help",
    QueueState.GATED: "is not tried at present",
    QueueState.GROUPED: "waits to be tried with its pod group",
}


@dataclass(slots=True)
class _Reason:
    pods: int = 0
    oldest_s: float = 0.0
    newest: QueuedPod | None = None
    sample: list[str] = field(default_factory=list)

    def count(self, queued: QueuedPod, now_s: float) -> None:
        """Count a pod that waits for this reason."""
        self.pods += 1
        # A pod's age counts from its first attempt: each failure renews its timestamp.
        first_s = queued.initial_attempt_s
        age_s = now_s - (queued.timestamp_s if first_s is None else first_s)
        self.oldest_s = max(self.oldest_s, age_s)
        if self.newest is None or queued.timestamp_s > self.newest.timestamp_s:
            self.newest = queued
        if len(self.sample) < SAMPLE:
            self.sample.append(queued.info.key)

    def as_json(
        self, text: str, plugins: tuple[str, ...], message_of: Callable[[QueuedPod], str]
    ) -> dict[str, Any]:
        """Return the reason with its message; ``text`` stands where no attempt left one."""
        return {
            "reason": (message_of(self.newest) if self.newest else "") or text,
            "plugins": plugins,
            "pods": self.pods,
            "oldest_s": round(self.oldest_s, 3),
            "sample": self.sample,
        }


def pending_reasons(
    waiting: Iterable[QueuedPod],
    now_s: float,
    message_of: Callable[[QueuedPod], str],
    namespace: str = "",
) -> dict[str, Any]:
    """Return the pending pods by reason, the reason of the most pods first.

    Parameters
    ----------
    waiting
        The pods of the queue that are not in flight; the queue may change them meanwhile.
    now_s
        Seconds of the queue's clock.
    message_of
        Returns the message of a pod's last attempt, or the empty string.
    namespace
        The pods to count; empty for all.

    *Cost*: about a microsecond for each pod.
    """
    reasons: dict[tuple[str, tuple[str, ...]], _Reason] = {}
    total = 0
    for queued in waiting:
        if namespace and queued.info.namespace != namespace:
            continue
        total += 1
        reasons.setdefault(_kind(queued), _Reason()).count(queued, now_s)
    ordered = sorted(reasons.items(), key=lambda item: (-item[1].pods, item[0]))
    return {
        "pods": total,
        "reasons": [
            reason.as_json(text, plugins, message_of)
            for (text, plugins), reason in ordered[:MAX_REASONS]
        ],
    }


def _kind(queued: QueuedPod) -> tuple[str, tuple[str, ...]]:
    """Return what pods with one reason have in common: a text and the plugins."""
    entry = queued.group if queued.state is QueueState.GROUPED and queued.group else queued
    if entry.gated_by is not None:
        return ", ".join(entry.gate_reasons) or _TEXTS[QueueState.GATED], (entry.gated_by,)
    plugins = tuple(sorted({*entry.unschedulable_plugins, *entry.pending_plugins}))
    if plugins:
        return _TEXTS[QueueState.UNSCHEDULABLE], plugins
    return _TEXTS.get(queued.state, _TEXTS[QueueState.ACTIVE]), ()


def last_message(recent: RecentDecisions, queued: QueuedPod) -> str:
    """Return the message of the last attempt of a pod, if plugins rejected it then."""
    group = ""
    entry: QueuedPod = queued
    if queued.state is QueueState.GROUPED and queued.group is not None:
        entry, group = queued.group, str(queued.group.key)
    if entry.gated_by is not None or not entry.was_refused:
        return ""
    outcomes = recent.of_pod(queued.info.key, group)
    return outcomes[0].message if outcomes else ""

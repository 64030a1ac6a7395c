"""The view of pending pods: by reason, with age and trend, and as a list in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plugins import names
from scheduler.ui.paging import page_of
from scheduler.ui.pending_pods import (
    AGE_CLASSES,
    age_classes,
    common_part,
    group_of,
    reason_id,
    trend,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.ui.listing import Listing
    from scheduler.ui.pending_pods import PendingPod, ReasonGroup
    from scheduler.ui.pending_series import Trend
    from scheduler.ui.sources import Pending, PendingReason

MAX_NAMESPACES: Final = 200

MAX_FILTER_CHARACTERS: Final = 253


@dataclass(frozen=True, slots=True)
class PodFilter:
    """Which pending pods are listed; an empty field takes all of them.

    Parameters
    ----------
    reason
        The :func:`reason_id` of a reason, or of the plugins of several.
    """

    reason: str = ""
    namespace: str = ""
    text: str = ""
    order: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PodFilter:
        """Return the filter of an address."""
        reason, namespace, text, order = (
            query.get(name, "")[:MAX_FILTER_CHARACTERS].strip()
            for name in ("reason", "namespace", "q", "order")
        )
        return cls(reason, namespace, text.lower(), order)

    def chosen(self, listing: Listing) -> list[PendingPod]:
        """Return the pods of a listing that are listed."""
        reasons = {
            group.reason
            for group in listing.reasons
            if self.reason in (reason_id(group.reason), _plugins_id(group.plugins))
        }
        return [
            pod
            for pod in listing.pending
            if (not self.reason or pod.reason in reasons)
            and (not self.namespace or pod.pod.metadata.namespace == self.namespace)
            and (not self.text or self.text in pod.key.lower())
        ]


@dataclass(frozen=True, slots=True)
class Trends:
    """The lines of pending pods since the page was started: of all, and by reason."""

    all: Trend
    by_reason: Mapping[str, Trend]


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A row of the table of reasons.

    Parameters
    ----------
    key
        What its line in the series is called.
    id
        That of its filter.
    group
        The listed pods of this row; None if there are none.
    """

    key: str
    id: str
    reason: str
    plugins: Sequence[str]
    pods: int
    oldest_s: float
    sample: Sequence[str]
    group: ReasonGroup | None


def rows_of(listing: Listing, pending: Pending) -> list[ReasonRow]:
    """Return the reasons as the leader counts them, or as the listing does without a leader.

    The leader counts by plugins: the listed pods whose conditions name the same plugins belong to
    its row, whatever their texts are.
    """
    if not pending.leader:
        groups = {group.reason: group for group in listing.reasons}
        return [
            ReasonRow(
                *(each.reason, reason_id(each.reason), each.reason, each.plugins, each.pods),
                *(each.oldest_s, each.sample, groups.get(each.reason)),
            )
            for each in pending.reasons
        ]
    listed: dict[tuple[str, ...], list[PendingPod]] = {}
    for group in listing.reasons:
        listed.setdefault(tuple(sorted(group.plugins)), []).extend(group.pods)
    rows = []
    for each in pending.reasons:
        reason = common_part(each.reason)
        # Rows of one plugin with texts of its own share the listed pods: the largest shows them.
        pods = listed.pop(tuple(sorted(each.plugins)), None)
        rows.append(
            ReasonRow(
                *(key_of(each), _plugins_id(each.plugins), reason, each.plugins, each.pods),
                *(each.oldest_s, each.sample),
                None if pods is None else group_of(reason, _oldest_first(pods), listing.now_s),
            )
        )
    return rows


def _oldest_first(pods: list[PendingPod]) -> list[PendingPod]:
    return sorted(pods, key=lambda each: (each.created_s, each.key))


def _plugins_id(plugins: Sequence[str]) -> str:
    return reason_id(f"plugins {', '.join(sorted(plugins))}")


def key_of(reason: PendingReason) -> str:
    """Return what the line of one of the leader's reasons is called.

    Its text is that of the pod that was tried last, so it does not stay.
    """
    plugins = ", ".join(sorted(reason.plugins))
    if plugins in ("", names.SCHEDULING_GATES):
        return f"{plugins} {common_part(reason.reason)}"
    return plugins


def counts_of(pending: Pending) -> dict[str, int]:
    """Return the pods of each line of the series."""
    counts: dict[str, int] = {}
    for each in pending.reasons:
        key = key_of(each) if pending.leader else each.reason
        counts[key] = counts.get(key, 0) + each.pods
    return counts


def overview(
    listing: Listing, query: Mapping[str, str], pending: Pending, trends: Trends | None
) -> dict[str, Any]:
    """Return what the template of the pending pods shows.

    Parameters
    ----------
    trends
        None for a dump, which is one moment.
    """
    wanted = PodFilter.of(query)
    chosen = wanted.chosen(listing)
    rows = rows_of(listing, pending)
    if wanted.order == "priority":
        chosen.sort(key=lambda each: -(each.pod.spec.priority or 0))
    elif wanted.order == "newest":
        chosen.reverse()
    ages = [max(listing.now_s - each.created_s, 0.0) for each in listing.pending]
    return {
        "pending": pending,
        "rows": rows,
        "trends": trends,
        "groups": [(reason_id(group.reason), group) for group in listing.reasons],
        "age_classes": AGE_CLASSES,
        "now_s": listing.now_s,
        "filter": wanted,
        "page": page_of(chosen, query.get("page", "")),
        "namespaces": listing.namespaces[:MAX_NAMESPACES],
        "all_ages": age_classes(ages),
        "trend": trend(ages),
        "oldest_s": max((each.oldest_s for each in pending.reasons), default=0.0),
        "recent": sum(age < 600 for age in ages),
        "reason_of_filter": next(
            (row.reason for row in rows if row.id == wanted.reason),
            next((g.reason for g in listing.reasons if reason_id(g.reason) == wanted.reason), ""),
        ),
    }

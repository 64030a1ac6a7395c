"""The view of pending pods: by reason, with age and trend, and as a list in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scheduler.ui.paging import page_of
from scheduler.ui.pending_pods import AGE_CLASSES, age_classes, reason_id, trend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.ui.listing import Listing
    from scheduler.ui.pending_pods import PendingPod

MAX_NAMESPACES: Final = 200

MAX_FILTER_CHARACTERS: Final = 253


@dataclass(frozen=True, slots=True)
class PodFilter:
    """Which pending pods are listed; an empty field takes all of them."""

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

    def takes(self, pod: PendingPod) -> bool:
        """Return whether a pod is listed."""
        return (
            (not self.reason or reason_id(pod.reason) == self.reason)
            and (not self.namespace or pod.pod.metadata.namespace == self.namespace)
            and (not self.text or self.text in pod.key.lower())
        )


def overview(listing: Listing, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the template of the pending pods shows."""
    wanted = PodFilter.of(query)
    chosen = [pod for pod in listing.pending if wanted.takes(pod)]
    if wanted.order == "priority":
        chosen.sort(key=lambda each: -(each.pod.spec.priority or 0))
    elif wanted.order == "newest":
        chosen.reverse()
    ages = [max(listing.now_s - each.created_s, 0.0) for each in listing.pending]
    return {
        "groups": [(reason_id(group.reason), group) for group in listing.reasons],
        "age_classes": AGE_CLASSES,
        "now_s": listing.now_s,
        "filter": wanted,
        "page": page_of(chosen, query.get("page", "")),
        "namespaces": listing.namespaces[:MAX_NAMESPACES],
        "all_ages": age_classes(ages),
        "trend": trend(ages),
        "oldest_s": ages[0] if ages else 0.0,
        "recent": sum(age < 600 for age in ages),
        "reason_of_filter": next(
            (each.reason for each in listing.reasons if reason_id(each.reason) == wanted.reason), ""
        ),
    }

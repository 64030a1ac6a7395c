"""Berth without what keeps its pods off nodes that others have filled since the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache import scheduler_cache
from cache.pod_groups import GroupStanding
from plugins.framework.status import SUCCESS
from scheduler.cycle import failure_handler, kubelet_rejections
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.binding_cycle import BindingCycles
from scheduler.cycle.gang import Gang
from tests.storm.mutations.registry import mutation, variant

if TYPE_CHECKING:
    from collections.abc import Callable


@mutation(BindGuard, "check", theme="neighbours")
def _whatever_was_decided_is_bound(real: Any) -> Any:
    """the look at the node before a binding"""
    return lambda self, info: SUCCESS


variant(
    "bindings-are-not-looked-at-when-sent",
    "the look at the node right before the request is written",
    "neighbours",
)


@mutation(BindingCycles, "_guarded", extra="incidents+volumes")
def _claims_are_bound_without_a_look(real: Any) -> Any:
    """the look at the node before claims are bound for it"""

    def guarded(self: Any, job: Any, *, sends: bool = True) -> Any:
        return real(self, job) if sends else SUCCESS

    return guarded


@mutation(Gang, "may_bind", extra="incidents+groups")
def _members_of_a_gang_look_for_themselves(real: Any) -> Any:
    """the look at the nodes of all members before the first one is bound"""

    def may_bind(self: Any, info: Any, check: Callable[[Any], Any], **_: Any) -> Any:
        return check(info)

    return may_bind


@mutation(GroupStanding, "has_begun", extra="groups")
def _members_of_a_gang_are_placed_one_by_one(real: Any) -> Any:
    """the wait of the members of a gang for one another"""
    return property(lambda self: True)


@mutation(scheduler_cache, "usage_for", extra="incidents")
def _bound_pods_are_judged_again(real: Any) -> Any:
    """the question whether a pod is still assumed, before its binding is withheld"""

    def usage_for(info: Any, node_info: Any, **_: Any) -> Any:
        return real(info, node_info)

    return usage_for


@mutation(failure_handler, "TRIES_AT_ONCE", extra="incidents")
def _withheld_pods_are_tried_at_once_for_ever(real: Any) -> Any:
    """the limit of attempts without a pause after a binding was withheld"""
    return 10**9


@mutation(kubelet_rejections, "_template", theme="neighbours")
def _successors_are_known_by_uid(real: Any) -> Any:
    """the template by which the successor of a rejected pod without a controller is known"""
    return lambda pod: pod.metadata.uid


variant("rejections-are-passed-over", "the nodes that rejected pods avoid", "neighbours")

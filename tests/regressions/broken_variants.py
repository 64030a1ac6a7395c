"""The scheduler with one mechanism taken out: what a scenario must notice.

Each variant undoes the one thing that stands between the scheduler and an old mistake. The rest is
the real code, so a scenario that passes with a variant does not test what it says.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from msgspec.structs import replace

from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from plugins.default_preemption import eligibility
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.status import SUCCESS, Code, Status
from scheduler import assembly
from scheduler.api_writes.binder import Binder, LastLook, PodGoneError
from scheduler.api_writes.eviction import Evictor
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.errors import Action
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.binding_cycle import BindingCycles
from scheduler.cycle.failure_handler import Failure, FailureHandler
from scheduler.cycle.foreign_binds import ForeignBinds
from scheduler.cycle.kubelet_rejections import KubeletRejections
from scheduler.cycle.preemption_executor import PreemptionExecutor
from scheduler.cycle.reaper import Reaper
from scheduler.cycle.schedule_one import SchedulingLoop
from scheduler.cycle.signature_reuse import SignatureReuse
from scheduler.event_handlers.lost_events import LostEvents
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.informers.store import Delta, DeltaKind, Store
from scheduler.queueing.blocked_pods import BlockedPods
from scheduler.queueing.budget_accounts import BudgetAccounts
from scheduler.queueing.in_flight import InFlight
from scheduler.queueing.nominator import Nominator
from scheduler.queueing.requeue_check import Asker, Verdict, WakeUps
from scheduler.queueing.scheduling_queue import SchedulingQueue
from scheduler.runtime.profile_map import Profiles
from tests.regressions.replaced import registering

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

VARIANTS: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {}

_variant: Final = registering(VARIANTS)


def _without(owner: Any, attribute: str) -> AbstractContextManager[Any]:
    """Let a method of one object do nothing."""
    return patch.object(owner, attribute, lambda *args, **more: None)


# --- beside other schedulers ---------------------------------------------------------------------


@_variant(BindGuard, "check")
def _bindings_do_not_look_at_their_node(real: Any) -> Any:
    return lambda self, info: SUCCESS


@_variant(LastLook, "may_send")
def _bindings_are_not_looked_at_when_sent(real: Any) -> Any:
    return lambda self: True


@_variant(ForeignBinds, "sizes")
def _no_room_is_left_to_others(real: Any) -> Any:
    return lambda self: {}


@_variant(ForeignBinds, "arrived")
def _bindings_before_the_watch_are_none_of_others(real: Any) -> Any:
    def arrived(self: Any, info: Any, *, is_choice: bool, was_pending: bool) -> None:
        real(self, info, is_choice=is_choice and was_pending, was_pending=was_pending)

    return arrived


# --- who is who -------------------------------------------------------------------------------


@_variant(SchedulerCache, "_stimulate_locked")
def _cache_knows_pods_by_name(real: Any) -> Any:
    def stimulate(self: Any, stimulus: Any, info: Any, *more: Any) -> Any:
        twin = copy.copy(info)
        twin.uid = info.key
        return real(self, stimulus, twin, *more)

    return stimulate


@_variant(Store, "apply")
def _store_knows_objects_by_name(real: Any) -> Any:
    def apply(self: Any, event_type: Any, obj: Any, deltas: list[Any]) -> None:
        found: list[Delta[Any]] = []
        real(self, event_type, obj, found)
        if [each.kind for each in found] == [DeltaKind.DELETED, DeltaKind.ADDED]:
            found = [Delta(DeltaKind.UPDATED, found[0].old, found[1].new)]
        deltas += found

    return apply


@_variant(SchedulingQueue, "_add_locked")
def _update_of_a_pod_in_flight_is_an_addition(real: Any) -> Any:
    def add(self: Any, info: Any, event: str) -> None:
        with _without(self._pods.in_flight, "get"):
            real(self, info, event)

    return add


@_variant(EventHandlers, "_wake_nominated")
def _nominated_pods_wait_for_room(real: Any) -> Any:
    return lambda self, node_name: None


@_variant(PreemptionExecutor, "_is_awaited")
def _preemptors_spin_while_the_watch_is_behind(real: Any) -> Any:
    return lambda self, victim, end: False


@_variant(SchedulingQueue, "group_undone")
def _groups_go_on_where_bindings_fail(real: Any) -> Any:
    return lambda self, key: None


# --- every attempt ends once ------------------------------------------------------------------


@_variant(BindingCycles, "undo")
def _undo_ends_where_forget_fails(real: Any) -> Any:
    def undo(self: Any, job: Any, status: Any) -> None:
        if self._cache.assumed_node(job.decision.info.uid) is not None:
            real(self, job, status)

    return undo


@_variant(BindingCycles, "undo")
def _failed_reserve_returns_without_requeue(real: Any) -> Any:
    def undo(self: Any, job: Any, status: Any) -> None:
        if job.is_permitted:
            real(self, job, status)
        else:
            self._cache.forget_pod(job.decision.info)

    return undo


@_variant(SchedulingLoop, "_assume")
def _failed_assume_leaves_the_attempt_open(real: Any) -> Any:
    def assume(self: Any, *args: Any) -> None:
        with _without(self._queue, "done"):
            real(self, *args)

    return assume


@_variant(SchedulingLoop, "schedule_one")
def _skipped_pod_stays_in_flight(real: Any) -> Any:
    def schedule_one(self: Any, queued: Any) -> None:
        if not self._skip(queued):
            real(self, queued)

    return schedule_one


@_variant(FailureHandler, "handle")
def _failure_takes_the_uid_of_the_successor(real: Any) -> Any:
    def handle(self: Any, queued: Any, failure: Any) -> None:
        live = self._live_pod(queued.info.namespace, queued.info.name)
        if live is not None:
            queued.info = PodInfo(live)
        real(self, queued, failure)

    return handle


@_variant(FailureHandler, "handle")
def _failure_of_a_deleted_pod_is_passed_over(real: Any) -> Any:
    def handle(self: Any, queued: Any, failure: Any) -> None:
        if self._live_pod(queued.info.namespace, queued.info.name) is not None:
            real(self, queued, failure)

    return handle


@_variant(SignatureReuse, "_half")
def _half_followed_verdicts_are_kept(real: Any) -> Any:
    def half(self: Any, every: Any, signers: Any, key: Any, *more: Any, **options: Any) -> Any:
        before = every.get(key)
        try:
            return real(self, every, signers, key, *more, **options)
        except Exception:
            before._node_cursor = before.columns.node_cursor
            every.put(key, before)
            raise

    return half


@_variant(SchedulingLoop, "_failed")
def _broken_cycles_leave_their_pods_assumed(real: Any) -> Any:
    def failed(self: Any, queued: Any, error: Exception) -> None:
        self._assumed = None
        real(self, queued, error)

    return failed


@_variant(FailureHandler, "handle")
def _failures_are_reported_or_nothing_is_scheduled(real: Any) -> Any:
    def handle(self: Any, queued: Any, failure: Any) -> None:
        live = self._live_pod(queued.info.namespace, queued.info.name)
        self._report(queued.info, live, queued.popped_s, failure)
        real(self, queued, failure)

    return handle


@_variant(SchedulingQueue, "policy_changed")
def _profiles_that_were_away_lose_their_pods(real: Any) -> Any:
    def policy_changed(self: Any, changed: Any, served: Any) -> None:
        real(self, changed, served)
        for attempt in self._pods.in_flight:
            attempt.gone = attempt.gone or attempt.unserved

    return policy_changed


@_variant(Binder, "_why_abandoned")
def _bindings_are_sent_for_ever(real: Any) -> Any:
    def why(self: Any, info: Any, failure: Any, began_s: float) -> str:
        return "" if failure.action is Action.SETTLE else real(self, info, failure, began_s)

    return why


@_variant(Binder, "_why_abandoned")
def _bindings_wait_with_their_room(real: Any) -> Any:
    def why(self: Any, *args: Any) -> str:
        reason = real(self, *args)
        return "" if reason == "throttled" else reason

    return why


@_variant(Binder, "settle")
def _not_found_means_gone(real: Any) -> Any:
    async def settle(self: Any, info: Any, node_name: str) -> Any:
        return Status(Code.ERROR, ("gone",), error=PodGoneError("gone"))

    return settle


@_variant(Evictor, "_is_there")
def _not_found_means_evicted(real: Any) -> Any:
    async def is_there(self: Any, victim: Any) -> bool:
        return False

    return is_there


# --- who is woken -----------------------------------------------------------------------------


@_variant(InFlight, "record")
def _events_pass_pods_in_flight_by(real: Any) -> Any:
    return lambda self, happening: None


@_variant(BindingCycles, "undo")
def _undo_wakes_nobody(real: Any) -> Any:
    def undo(self: Any, job: Any, status: Any) -> None:
        with _without(self._queue, "move_all"):
            real(self, job, status)

    return undo


@_variant(BlockedPods, "groups")
def _events_pass_gated_pods_by(real: Any) -> Any:
    return lambda self: [each for each in real(self) if not each.gate]


@_variant(WakeUps, "askers")
def _every_event_is_for_every_gated_pod(real: Any) -> Any:
    anybody = (Asker("", None, Verdict.AFTER_BACKOFF),)
    return lambda self, who, event: anybody if who.gate else real(self, who, event)


@_variant(Profiles, "pre_enqueue")
def _gates_are_not_asked(real: Any) -> Any:
    return lambda self, pod: SUCCESS


@_variant(EventHandlers, "_bound")
def _bound_elsewhere_is_no_news(real: Any) -> Any:
    return lambda self, old, info, nominated: self._assigned(info)


@_variant(EventHandlers, "_nominated_node")
def _nominations_end_only_if_the_api_has_told_of_them(real: Any) -> Any:
    return lambda self, pod: pod.status.nominated_node_name


# --- what leaves the API leaves the cache -----------------------------------------------------


@_variant(EventHandlers, "_given_up")
def _only_what_is_assumed_is_given_back(real: Any) -> Any:
    return lambda self, old: (
        self._cache.assumed_node(old.metadata.uid) is not None and real(self, old)
    )


@_variant(Reaper, "_settle")
def _answers_count_whatever_has_happened_since(real: Any) -> Any:
    def settle(self: Any, info: Any, node_name: str, pod: Any) -> None:
        with patch.object(self._cache, "assumed_node", lambda uid: node_name):
            real(self, info, node_name, pod)

    return settle


@_variant(EventHandlers, "_unassigned")
def _what_leaves_has_to_be_readable(real: Any) -> Any:
    def unassigned(self: Any, old: Any) -> Any:
        PodInfo(old)
        return real(self, old)

    return unassigned


@_variant(EventHandlers, "_read")
def _what_cannot_be_read_holds_nothing(real: Any) -> Any:
    return lambda self, pod: PodInfo(pod)


@_variant(LostEvents, "_compare")
def _nobody_looks_for_lost_events(real: Any) -> Any:
    async def compare(self: Any, informer: Any) -> bool:
        return True

    return compare


@_variant(LostEvents, "_find_lost_pods")
def _nobody_looks_for_lost_pods(real: Any) -> Any:
    async def find(self: Any, pods: Any) -> None:
        pass

    return find


@_variant(Store, "replace_in_batches")
def _stores_never_go_back(real: Any) -> Any:
    def replace_all(self: Any, objects: Any, **more: Any) -> Any:
        return real(self, objects, **(more | {"rewind": False}))

    return replace_all


@_variant(KubeletRejections, "see")
def _rejections_are_passed_over(real: Any) -> Any:
    return lambda self, pod: None


@_variant(assembly, "_has_node")
def _statuses_of_pods_that_have_ended_are_written(real: Any) -> Any:
    return lambda cache, pods, uid: cache.is_placed_pod(uid)


# --- nominations and victims ------------------------------------------------------------------


@_variant(PodStatusWriter, "quiet")
def _bindings_overtake_statuses(real: Any) -> Any:
    async def quiet(self: Any, uid: str) -> None:
        pass

    return quiet


@_variant(Nominator, "delete")
def _nominations_outlive_their_pods(real: Any) -> Any:
    return lambda self, uid: None


@_variant(FailureHandler, "handle")
def _nominations_are_never_cleared(real: Any) -> Any:
    def handle(self: Any, queued: Any, failure: Any) -> None:
        kept = failure.nominated_node_name or None
        real(self, queued, replace(failure, nominated_node_name=kept))

    return handle


@_variant(Nominator, "add")
def _nominations_count_once_the_api_tells_of_them(real: Any) -> Any:
    def add(self: Any, info: Any, node_name: str) -> Any:
        return info.pod.status.nominated_node_name == node_name and real(self, info, node_name)

    return add


@_variant(PreemptionExecutor, "_still_waits")
def _victims_go_whatever_becomes_of_the_preemptor(real: Any) -> Any:
    return lambda self, info: True


@_variant(Evictor, "_reprieve")
def _spared_victims_stay_marked(real: Any) -> Any:
    async def reprieve(self: Any, victim: Any, message: str) -> None:
        pass

    return reprieve


@_variant(eligibility, "is_stuck")
def _victims_are_waited_for_without_limit(real: Any) -> Any:
    return lambda pod, wall_s: False


@_variant(EventHandlers, "_given_up")
def _pods_in_binding_keep_their_room_when_deleted(real: Any) -> Any:
    return lambda self, old: False


# --- what one attempt may cost ----------------------------------------------------------------


@_variant(Failure, "of_decision")
def _over_budget_is_unschedulable(real: Any) -> Any:
    def of_decision(decision: Any) -> Any:
        failure = real(decision)
        refused = Status(Code.UNSCHEDULABLE, decision.status.reasons, "NodeResourcesFit")
        return replace(failure, status=refused) if decision.is_over_budget else failure

    return of_decision


@_variant(BudgetAccounts, "must_save")
def _events_shorten_the_pause_of_expensive_pods(real: Any) -> Any:
    def must_save(self: Any, queued: Any) -> bool:
        queued.prepaid_s = queued.prepaid_s or queued.budget_s
        return False

    return must_save


@_variant(BudgetAccounts, "_first_budget_s")
def _strangers_begin_with_a_whole_budget(real: Any) -> Any:
    return lambda self, namespace: self._limit_s


@_variant(AttemptBudget, "has_used")
def _costly_attempts_cost_nothing(real: Any) -> Any:
    return lambda self, seconds: False


@_variant(BudgetAccounts, "_book")
def _one_namespace_takes_the_whole_account(real: Any) -> Any:
    def book(self: Any, now_s: float) -> None:
        everybody = self._accounts
        self._accounts = dict(list(everybody.items())[:1])
        real(self, now_s)
        self._accounts = everybody

    return book


# --- nodes that come and go -------------------------------------------------------------------


@_variant(SchedulerCache, "add_pod")
def _pods_of_unknown_nodes_are_passed_over(real: Any) -> Any:
    def add_pod(self: Any, info: Any) -> None:
        if info.node_name in self._nodes:
            real(self, info)

    return add_pod


@_variant(SchedulerCache, "remove_node")
def _pods_are_forgotten_with_their_node(real: Any) -> Any:
    def remove_node(self: Any, name: str) -> Any:
        for pod in list(self._nodes[name].info.pods.values()):
            self.remove_pod(pod)
        return real(self, name)

    return remove_node

"""Berth without one mechanism, for the faults of the table that no other variant stands for.

Those of :mod:`tests.regressions.broken_variants`, of :mod:`tests.storm.mutations` can be
named too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from msgspec.structs import replace

import cache.scheduler_cache as scheduler_cache
import scheduler.informers.backoff as backoff
import scheduler.informers.reflector_states as reflector_states
import scheduler.informers.store as store
from cache.term_index import TermIndex
from plugins.framework.attempt_budget import AttemptBudget
from plugins.node_resources_fit.plugin import NodeResourcesFit
from scheduler.api_writes.background_writer import BackgroundWriter
from scheduler.api_writes.binder import Binder
from scheduler.api_writes.failing_namespaces import FailingNamespaces
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter
from scheduler.client.transport import Transport
from scheduler.cycle.binding_cycle import BindingCycles
from scheduler.cycle.host_selection import HostSelector
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.informers.reflector import Reflector
from scheduler.informers.reflector_states import Outcome, ReflectorMachine, State
from scheduler.journal.segment_files import SegmentFiles
from scheduler.leader_election.elector import LeaderElector
from scheduler.leader_election.rules import Step
from scheduler.leader_election.tenure import Tenure
from scheduler.process.log_setup import StderrLogger
from scheduler.process.vital import VitalThread
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.operator.profile_watch import ProfileWatch
from scheduler.queueing.in_flight import InFlight
from scheduler.queueing.requeue_scan import Judging
from scheduler.queueing.scheduling_queue import SchedulingQueue
from scheduler.user_plugins.containment.circuit_breaker import Breaker
from tests.regressions.broken_variants import VARIANTS
from tests.regressions.replaced import registering
from tests.storm import mutations

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

TABLE: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {}


def known() -> set[str]:
    """Return the names of all variants."""
    return {*TABLE, *VARIANTS, *mutations.MUTATIONS, *mutations.FORMER}


def without(name: str) -> AbstractContextManager[None]:
    """Return a context in which a mechanism is gone; an empty name stands for none."""
    return TABLE[name]() if name in TABLE else mutations.without(name)


_variant: Final = registering(TABLE)


# --- watches and lists --------------------------------------------------------------------------


@_variant(ReflectorMachine, "step")
def _watches_begin_with_a_list(real: Any) -> Any:
    def step(self: Any, outcome: Any) -> Any:
        ended = self.state is State.WATCHING and outcome in (Outcome.ENDED, Outcome.FAILED)
        return real(self, Outcome.EXPIRED if ended else outcome)

    return step


@_variant(Reflector, "_apply")
def _events_that_come_again_count(real: Any) -> Any:
    def apply(self: Any, events: Any) -> Any:
        with (
            patch.object(store, "_is_newer", lambda version, than: True),
            patch.object(self, "_advance", lambda version: real_advance(self, version) or True),
        ):
            return real(self, events)

    real_advance = Reflector._advance
    return apply


@_variant(store, "_is_newer")
def _older_versions_count(real: Any) -> Any:
    return lambda version, than: True


@_variant(backoff, "as_asked_s")
def _retry_after_is_not_read(real: Any) -> Any:
    return lambda delay_s, retry_after_s, rng: delay_s


@_variant(reflector_states, "_TOO_LARGE_ATTEMPTS")
def _versions_that_are_never_reached_are_asked_for_again(real: Any) -> Any:
    return 10 * real


@_variant(Reflector, "_new_listing")
def _a_new_list_begins_with_nothing(real: Any) -> Any:
    def new_listing(self: Any) -> Any:
        deltas: list[Any] = []
        for obj in self._store.objects():
            self._store.discard(obj.metadata.uid, deltas)
        self._deliver(deltas)
        return real(self)

    return new_listing


@_variant(Reflector, "_take_unreadable")
def _lines_that_cannot_be_read_end_the_watch(real: Any) -> Any:
    def take(self: Any, event: Any, deltas: Any) -> None:
        raise ValueError("a line that cannot be read")

    return take


# --- bindings and other writes ------------------------------------------------------------------


@_variant(Binder, "_abandon")
def _missing_rights_are_no_news(real: Any) -> Any:
    def abandon(self: Any, info: Any, node_name: str, error: Any, why: str, tries: int) -> Any:
        return real(self, info, node_name, error, "refused" if why == "forbidden" else why, tries)

    return abandon


@_variant(Transport, "request")
def _answers_count_more_than_their_status(real: Any) -> Any:
    async def request(self: Any, *args: Any, **more: Any) -> Any:
        answer = await real(self, *args, **(more | {"discard_body": False}))
        if b'"kind"' not in answer.body:
            raise ApiError(answer.status, "Unreadable", "this is no object")
        return answer

    return request


@_variant(InFlightLimiter, "__init__")
def _one_request_at_a_time(real: Any) -> Any:
    return lambda self, max_in_flight, **more: real(self, 1, **more)


@_variant(Transport, "__init__")
def _the_lease_waits_in_line(real: Any) -> Any:
    lines: dict[int, InFlightLimiter] = {}

    def init(self: Any, credentials: Any, **named: Any) -> None:
        line = lines.setdefault(id(credentials), InFlightLimiter(4, clock=named["clock"]))
        real(self, credentials, **(named | {"limiter": line}))

    return init


@_variant(BackgroundWriter, "__init__")
def _queues_of_writes_have_no_limit(real: Any) -> Any:
    def init(self: Any, ports: Any, max_tries: int, capacity: int, *more: Any, **named: Any) -> Any:
        real(self, ports, max_tries, 10**9, *more, **named)

    return init


@_variant(PodStatusWriter, "_receive")
def _only_the_oldest_status_is_written(real: Any) -> Any:
    def receive(self: Any, value: Any) -> None:
        if value.metadata.uid in self._waiting:
            self._replaced += 1
        else:
            real(self, value)

    return receive


@_variant(FailingNamespaces, "tries")
def _all_namespaces_fail_together(real: Any) -> Any:
    return lambda self, namespace, usual: 1 if self._names else usual


@_variant(BindingCycles, "undo")
def _failures_are_all_alike(real: Any) -> Any:
    def undo(self: Any, job: Any, status: Any) -> None:
        real(self, job, replace(status, error=None))

    return undo


# --- who leads, and as whom ---------------------------------------------------------------------


@_variant(LeaderElector, "_next_step")
def _leases_of_others_are_taken_back(real: Any) -> Any:
    def next_step(self: Any, *, holds: bool) -> Any:
        step = real(self, holds=holds)
        return Step.TAKE if step is Step.LOST else step

    return next_step


@_variant(Tenure, "close")
def _writes_go_on_while_the_lease_is_handed_over(real: Any) -> Any:
    return lambda self: None


@_variant(Credentials, "_renew")
def _a_token_that_is_gone_ends_its_use(real: Any) -> Any:
    async def renew(self: Any) -> None:
        self._valid_until = self._clock()
        await real(self)

    return renew


@_variant(Credentials, "_renew_context")
def _certificates_are_loaded_once(real: Any) -> Any:
    def renew(self: Any, pair: Any) -> None:
        if self._context is None:
            real(self, pair)

    return renew


# --- what is known ------------------------------------------------------------------------------


@_variant(scheduler_cache.SchedulerCache, "_is_real_locked")
def _nodes_that_are_only_imagined_are_candidates(real: Any) -> Any:
    return lambda self, name: name in self._nodes


@_variant(TermIndex, "_at")
def _pods_of_nodes_that_change_are_counted_once(real: Any) -> Any:
    def at(self: Any, row: int) -> Any:
        seen = self.__dict__.setdefault("_once", {})
        return seen.setdefault(row, real(self, row))

    return at


@_variant(scheduler_cache.SchedulerCache, "add_node")
def _nodes_that_come_back_have_their_old_size(real: Any) -> Any:
    first: dict[tuple[int, str], Any] = {}

    def add_node(self: Any, node: Any) -> Any:
        return real(self, first.setdefault((id(self), node.metadata.name), node))

    return add_node


@_variant(EventHandlers, "_assigned")
def _bound_pods_hold_nothing(real: Any) -> Any:
    return lambda self, info: None


# --- queue, budgets, plugins --------------------------------------------------------------------


@_variant(SchedulingQueue, "add_unschedulable")
def _failed_pods_are_put_nowhere(real: Any) -> Any:
    return lambda self, queued, *more, **named: self.done(queued.info.uid)


@_variant(InFlight, "__init__")
def _attempts_keep_all_events(real: Any) -> Any:
    return lambda self, max_events=0: real(self, 10**9)


@_variant(Judging, "run")
def _events_are_judged_in_one_go(real: Any) -> Any:
    return lambda self, is_over: real(self, lambda: False)


@_variant(AttemptBudget, "check")
def _budgets_are_not_looked_at(real: Any) -> Any:
    return lambda self: None


@_variant(NodeResourcesFit, "_wanted")
def _pods_want_nothing(real: Any) -> Any:
    return lambda self, info: real(self, info)._replace(needs=())


@_variant(HostSelector, "__init__")
def _ties_are_broken_by_chance(real: Any) -> Any:
    return lambda self, seed=None: real(self, None)


@_variant(Breaker, "fail")
def _plugins_that_fail_are_asked_again(real: Any) -> Any:
    return lambda self, now, weight=1: False


@_variant(KnownProfiles, "_compile")
def _broken_policies_end_the_good_one(real: Any) -> Any:
    def compile_(self: Any, resource: Any) -> None:
        real(self, resource)
        if resource.mistakes:
            resource.good = None

    return compile_


@_variant(ProfileWatch, "_run")
def _kopf_is_started_once(real: Any) -> Any:
    async def run(self: Any) -> None:
        await self._watch()

    return run


@_variant(VitalThread, "run")
def _threads_die_in_silence(real: Any) -> Any:
    def run(self: Any) -> None:
        try:
            self._do()
        except BaseException:  # noqa: BLE001 - this is the mistake
            return

    return run


# --- files --------------------------------------------------------------------------------------


@_variant(SegmentFiles, "open")
def _errors_of_the_disk_end_the_journal(real: Any) -> Any:
    def open_(self: Any, *args: Any) -> None:
        try:
            real(self, *args)
        except OSError as error:
            raise RuntimeError("the disk fails") from error

    return open_


@_variant(StderrLogger, "error")
def _lines_that_cannot_be_logged_raise(real: Any) -> Any:
    return lambda self, line: sys.stderr.write(line)

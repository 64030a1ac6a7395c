"""The runner of one shadow: it judges the pods of a profile and compares, without any effect."""

from __future__ import annotations

import threading
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from plugins.claims import claim_keys
from plugins.framework.status import Code
from plugins.volume_binding.pod_claims import is_fully_bound
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from scheduler.shadow.comparison import CHOICE
from scheduler.shadow.report import ShadowReport
from scheduler.shadow.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.locks import MakeLock
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from cache.storage import Storage
    from scheduler.decision.decision import Decision
    from scheduler.profiles import ShadowOptions
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.shadow.tally import Reason

log = structlog.get_logger(__name__)

MAX_SAVED_S: Final = 0.05
"""The most time that an idle budget can save, so that later pods do not wait for long."""


class TimeBudget:
    """Allows work as long as its time stays within a share of the elapsed time.

    In any period no more time is spent than its share, :data:`MAX_SAVED_S` and one piece of work.
    The duration of a piece of work is known only afterwards, so an excess is compensated later.

    Parameters
    ----------
    share
        The share of the time: more than 0, at most 1.
    clock
        Returns monotonic time in seconds.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    __slots__ = ("_at", "_clock", "_saved_s", "_share")

    def __init__(self, share: float, clock: Callable[[], float] = perf_counter) -> None:
        self._share = share
        self._clock = clock
        self._at = clock()
        self._saved_s = 0.0

    def allows(self) -> bool:
        """Return whether the budget allows a piece of work now."""
        now = self._clock()
        self._saved_s = min(self._saved_s + (now - self._at) * self._share, MAX_SAVED_S)
        self._at = now
        return self._saved_s >= 0.0

    def spend(self, seconds: float) -> None:
        """Subtract the duration of a piece of work."""
        self._saved_s -= seconds


class ShadowRunner:
    """Compares the decisions of a profile with those that another policy would have made.

    Parameters
    ----------
    framework
        The policy of the shadow, with its own plugin objects; only :meth:`observe` calls them.
    options
        The number of decisions to compare, and the share of the time.
    storage
        Returns which pods get volumes with their node; None if no pod has any.
    clock
        Returns monotonic time in seconds.
    make_lock
        Creates the lock of the counters.

    Notes
    -----
    The live profile judges the pod once more and keeps every plugin's scores, so that both
    judgements and both costs are measured in the same way; the live choice is that of the
    decision. When the profile changes to another policy, the comparison starts again: a report
    compares exactly two policies.

    *Concurrency*: :meth:`observe` belongs to the scheduling thread, the rest is thread-safe.
    """

    def __init__(
        self,
        framework: FrameworkRunner,
        options: ShadowOptions,
        *,
        storage: Storage | None = None,
        clock: Callable[[], float] = perf_counter,
        make_lock: MakeLock = threading.Lock,
    ) -> None:
        self._make_lock = make_lock
        self.framework = framework
        self.options = options
        self._policy = framework.policy.text
        self._storage = storage
        self._clock = clock
        self._budget = TimeBudget(self.options.budget, clock)
        self._live: FrameworkRunner | None = None
        self._has_failed = False
        self._tally = self._blank("")

    @property
    def is_complete(self) -> bool:
        """Whether as many decisions as wanted have been compared."""
        return self._tally.compared >= self.options.decisions

    def report(self) -> ShadowReport:
        """Return the report of all comparisons so far."""
        return self._tally.report()

    def observe(self, snapshot: Snapshot, live: FrameworkRunner, decision: Decision) -> None:
        """Compare a decision of the live profile, if there is time; never raises.

        Parameters
        ----------
        snapshot
            The unchanged snapshot of the decision's cycle.
        live
            The profile that decided.
        """
        if self.is_complete or not len(snapshot):
            return
        if live is not self._live:
            self._follow(live)
        try:
            passed = self._reason_to_pass(decision)
            if passed is None:
                self._compare(snapshot, live, decision)
            else:
                self._tally.pass_over(passed)
        except Exception:
            if not self._has_failed:
                self._has_failed = True  # logged once: the next decision will likely fail too
                key = decision.info.key
                log.exception("shadow comparison failed", policy=self._policy, pod=key)
            self._tally.pass_over("failed")

    def _follow(self, live: FrameworkRunner) -> None:
        """Start a new report if the live policy has changed."""
        self._live = live
        self.framework.nominated = live.nominated
        self._tally = self._blank(live.policy.text)

    def _blank(self, live: str) -> Tally:
        return Tally(
            ShadowReport(
                scheduler_name=self.framework.profile_name,
                live=live,
                shadow=self._policy,
                wanted=self.options.decisions,
            ),
            self._make_lock,
        )

    def _reason_to_pass(self, decision: Decision) -> Reason | None:
        """Return the reason why a decision is not compared, or None if it is."""
        if decision.status.code is Code.ERROR:
            return "failed"
        if decision.is_placed and self._gets_volumes(decision.info):
            return "volumes"
        return None if self._budget.allows() else "budget"

    def _gets_volumes(self, info: PodInfo) -> bool:
        """Return whether the decision took volumes for the pod: the shadow would lack them."""
        if self._storage is None:
            return False
        claims = (self._storage.claim(*key) for key in claim_keys(info.pod))
        return any(claim is None or not is_fully_bound(claim) for claim in claims)

    def _compare(self, snapshot: Snapshot, live: FrameworkRunner, decision: Decision) -> None:
        info, began = decision.info, self._clock()
        try:
            judged = partial(judge, scored_from=CHOICE, clock=self._clock)
            ours = judged(live, snapshot, info)
            try:
                theirs = judged(self.framework, snapshot, info)
            except PluginError as error:
                self._tally.fail(error.status.message)
                return
            chosen = snapshot.columns.row_of.get(decision.node_name)
            self._tally.compare(info.key, ours, theirs, chosen)
        finally:
            took_s = self._clock() - began
            self._budget.spend(took_s)
            self._tally.spend(took_s)

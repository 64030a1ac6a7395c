"""The guard of a user's plugin: it wraps the calls into one version of the plugin."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import structlog

from cache.value import Value
from plugins.authoring.guard import ABSENT, Absent
from scheduler.user_plugins.containment.circuit_breaker import Breaker, State
from scheduler.user_plugins.containment.crash_note import POINTS
from scheduler.user_plugins.plugin_errors import kind_of, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.user_plugins.containment.crash_note import Note
    from scheduler.user_plugins.containment.options import ContainmentOptions
    from scheduler.user_plugins.containment.plugin_code import PluginCode
    from scheduler.user_plugins.containment.watchdog import Watchdog

T = TypeVar("T")

CallObserver: TypeAlias = "Callable[[str, str, str | None], object]"

log = structlog.get_logger(__name__)

_WEIGHT_OF_A_CALL: Final = 1 / 16
"""The weight of a call in the moving average, which starts at 0: the first call may take 16 times
the budget, because it computes the columns that later calls use."""

_QUIET_S: Final = 1.0
_POINT_NUMBERS: Final = {point: number for number, point in enumerate(POINTS)}
_OTHER: Final = _POINT_NUMBERS["other"]


class PluginFailedError(Exception):
    """A user's plugin failed, or is switched off with policy ``Fail``; the message says why."""


class BreakerReport(Value, frozen=True):
    """The state of one plugin for metrics, the log and status.

    Parameters
    ----------
    left_out
        Whether the plugin is in quarantine, because an earlier process ended in one of its calls.
    failures
        The number of failures by kind: ``raised``, ``memory``, ``slow``, or the kind of a
        :class:`~plugins.authoring.checked_results.PolicyAnswerError`.
    passed_over
        The number of calls that were not made.
    average_s
        The moving average of the duration of calls, by method.
    trouble
        The current problem as text; empty if there is none. It changes only with the problem.
    """

    code: PluginCode
    state: State
    left_out: bool
    failures: Mapping[str, int]
    passed_over: int
    average_s: Mapping[str, float]
    trouble: str


class ContainedGuard:
    """Makes the calls into one plugin, unless the plugin has failed too often.

    A call that fails ends with an error that names the line of the user's file. After a few
    failures the breaker opens: the plugin is skipped, or its pods wait, as its ``failure_policy``
    says. A call that takes too long is a failure as well, but its result is used.

    Parameters
    ----------
    code
        The plugin version that is called.
    note
        Records the running call, so that the next process knows why this one ended.
    options
        The average duration that a call may take, and the timeout after which a call that does not
        return ends the process.
    watchdog
        Ends the process, and is woken when :meth:`report` changes. None for no watchdog.
    clock
        Returns monotonic time in seconds.
    left_out
        Why the plugin is in quarantine; empty if it may be called.

    Notes
    -----
    *Concurrency*: :meth:`call` on the scheduling thread, :meth:`report` on any thread.

    *Cost*: about 2 us for each call.
    """

    def __init__(
        self,
        code: PluginCode,
        note: Note,
        options: ContainmentOptions,
        watchdog: Watchdog | None = None,
        clock: Callable[[], float] = time.monotonic,
        left_out: str = "",
    ) -> None:
        self.code = code
        self._breaker = Breaker(options.breaker)
        self._rules = options.breaker
        self._note = note
        self._slot = note.enroll(code.name, code.digest)
        self._budget_s = options.budget_s
        self._watchdog = watchdog
        self._ends_process = watchdog is not None and options.timeout_s > 0
        self._clock = clock
        self._left_out = left_out
        self._averages = [0.0] * len(POINTS)
        self._failures: Counter[str] = Counter()
        self._passed_over = 0
        self._last_failure = ""
        self._failed_at = float("-inf")
        self._quiet_until = float("-inf")
        self._asked_at = clock()
        self.is_replaced = False
        """Whether its source has newer code: this guard is not reported any more once nothing uses
        it."""
        self.observer: CallObserver | None = None
        """Gets every call: the plugin, the method, and why it is not made; None for one that is.
        Empty for a plugin that is skipped."""

    @property
    def calls(self) -> int:
        """A counter that grows when calls start to be made again or stop being made."""
        return self._breaker.changes

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return what ``function`` returns, or ``ABSENT`` while the plugin is switched off.

        Raises
        ------
        PluginFailedError
            When the call failed, or the plugin is switched off and its policy is ``Fail``.
        """
        clock, breaker, number = self._clock, self._breaker, _POINT_NUMBERS.get(point, _OTHER)
        began = self._asked_at = clock()
        if self._left_out or (breaker.state is not State.CLOSED and not breaker.admits(began)):
            return self._pass_over(point, began)
        if self.observer is not None:
            self.observer(self.code.name, point, None)
        watchdog = self._watchdog
        if watchdog is not None and self._ends_process and not watchdog.armed:
            watchdog.arm()
        note = self._note
        before = note.begin(self._slot, number)
        try:
            answer = function()
        except BaseException as error:  # a plugin that calls sys.exit() shall not end the thread
            note.end(before)
            raise self._failed(point, error) from error
        note.end(before)
        now = clock()
        took = now - began
        averages = self._averages
        average = averages[number] = (
            averages[number] + (took - averages[number]) * _WEIGHT_OF_A_CALL
        )
        if took > self._budget_s and average > self._budget_s:
            self._too_slow(point, took, average, now)
        elif breaker.state is not State.CLOSED:
            breaker.succeed(now)
            log.info("plugin recovered", plugin=self.code.name, point=point)
            self._tell_watchdog()
        return answer

    def report(self) -> BreakerReport:
        """Return the current report of the plugin."""
        is_gone = self.is_replaced and self._clock() - self._asked_at >= self._rules.window_s
        state = State.CLOSED if is_gone else self._breaker.state
        averages = {
            point: seconds for point, seconds in zip(POINTS, self._averages, strict=True) if seconds
        }
        return BreakerReport(
            self.code,
            state,
            bool(self._left_out) and not is_gone,
            dict(self._failures),
            self._passed_over,
            averages,
            "" if is_gone else self._trouble(state),
        )

    def _trouble(self, state: State) -> str:
        what = "its pods wait" if self.code.failure_policy == "Fail" else "it is skipped"
        if self._left_out:
            return f"is left out, and {what}: {self._left_out}"
        if state is State.CLOSED:
            recent = self._clock() - self._failed_at < self._rules.window_s
            return f"fails: {self._last_failure}" if recent else ""
        return f"fails, and {what}: {self._last_failure}"

    def _pass_over(self, point: str, began: float) -> Absent:
        self._passed_over += 1
        why = "" if self.code.failure_policy == "Ignore" else self._why_pods_wait(began)
        if self.observer is not None:
            self.observer(self.code.name, point, why)
        if why:
            raise PluginFailedError(why)
        return ABSENT

    def _why_pods_wait(self, began: float) -> str:
        if self._left_out:
            return f"left out: {self._left_out}"
        left_s = max(self._breaker.open_until - began, 1.0)
        return f"switched off for another {left_s:.0f} s: {self._last_failure}"

    def _failed(self, point: str, error: BaseException) -> PluginFailedError:
        """Record a call that raised; return the error for the pod."""
        text = f"{point}: {told(error, self.code.file)}"
        self._take_note(kind_of(error), text, self._clock(), 1)
        return PluginFailedError(text)

    def _too_slow(self, point: str, took: float, average: float, now: float) -> None:
        text = (
            f"{point}: takes {average * 1e3:.0f} ms on average, "
            f"more than its {self._budget_s * 1e3:g} ms"
        )
        # A single call never opens the breaker: the machine may have been busy otherwise.
        weight = max(1, min(int(average / self._budget_s), self._rules.failures - 1))
        log.debug("slow plugin call", plugin=self.code.name, point=point, seconds=took)
        self._take_note("slow", text, now, weight)

    def _take_note(self, kind: str, text: str, now: float, weight: int) -> None:
        self._failures[kind] += 1
        self._last_failure = text
        self._failed_at = now
        opened = self._breaker.fail(now, weight)
        if opened:
            self._averages = [0.0] * len(POINTS)
            open_s = self._breaker.open_until - now
            log.error(
                "plugin switched off",
                plugin=self.code.name,
                digest=self.code.digest,
                kind=kind,
                why=text,
                seconds=open_s,
                pods="wait" if self.code.failure_policy == "Fail" else "go without it",
            )
        elif now >= self._quiet_until:
            self._quiet_until = now + _QUIET_S
            log.warning("plugin failed", plugin=self.code.name, kind=kind, why=text)
        self._tell_watchdog()

    def _tell_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.look()

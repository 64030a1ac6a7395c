"""The containment of users' plugins: guards, trials, quarantine and watchdog in one object."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.user_plugins.containment.crash_note import Note, StateDirError
from scheduler.user_plugins.containment.guard import ContainedGuard
from scheduler.user_plugins.containment.options import ContainmentOptions
from scheduler.user_plugins.containment.plugin_code import PluginCode
from scheduler.user_plugins.containment.quarantine import LeftOut
from scheduler.user_plugins.containment.trial_cache import Trials
from scheduler.user_plugins.containment.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import TextIO

    from scheduler.user_plugins.containment.guard import BreakerReport
    from scheduler.user_plugins.plugin_source import PluginSource
    from scheduler.user_plugins.plugin_trial import ClusterCopy

ACQUITTED_AFTER_S: Final = 600.0
"""How long a process must run before an earlier crash during a plugin's call is forgotten."""

_NOTE: Final = "plugin-at-work"
_LEFT_OUT: Final = "plugins-left-out.json"
_TRIED: Final = "plugins-tried.json"
_EVIDENCE: Final = "plugin-traceback.txt"

log = structlog.get_logger(__name__)


class Containment:
    """Creates guards, and reports problems of plugins.

    It is constructed at the start of the process, before any plugin is loaded, because it
    determines whether a plugin ended the previous process.

    Parameters
    ----------
    options
        The limits.

    Raises
    ------
    StateDirError
        When the state directory cannot be used.

    Notes
    -----
    *Concurrency*: thread-safe, except for :meth:`start` and :meth:`stop`.
    """

    def __init__(
        self,
        options: ContainmentOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options = options or ContainmentOptions()
        self._clock = clock
        self._lock = threading.Lock()
        self._guards: dict[PluginCode, ContainedGuard] = {}
        self._newest: dict[tuple[str, str, str], ContainedGuard] = {}
        self._callbacks: list[Callable[[Mapping[str, str]], None]] = []
        self._told: Mapping[str, str] = {}
        self._started_at = clock()
        folder = options.state_dir
        if folder is not None:
            _make(folder)
        self._note = Note(None if folder is None else folder / _NOTE)
        self._left_out = LeftOut(None if folder is None else folder / _LEFT_OUT)
        self._trials = Trials(options.trial, None if folder is None else folder / _TRIED)
        self._evidence: TextIO | None = None
        if folder is not None:
            self._judge_last_process(folder / _EVIDENCE)
        self._watchdog = Watchdog(self._note, options.timeout_s, self._evidence, (self._tick,))
        self._started = False

    # --- guards -------------------------------------------------------------------------------

    def guard(self, code: PluginCode) -> ContainedGuard:
        """Return the guard of one version of a plugin, the same object in every call."""
        with self._lock:
            found = self._guards.get(code)
            if found is None:
                why = self._left_out.why(code)
                found = self._guards[code] = ContainedGuard(
                    code, self._note, self.options, self._watchdog, self._clock, why
                )
                self.start()
            return found

    def guard_for(self, source: PluginSource, cls: type) -> ContainedGuard:
        """Return the guard of a user's class that a source contains.

        The guard of the source's previous version is no longer reported once nothing uses it.
        """
        code = PluginCode.of(cls, source.digest)
        guard = self.guard(code)
        with self._lock:
            key = (source.kind, source.name, code.name)
            before = self._newest.get(key)
            if before is not None and before is not guard:
                before.is_replaced = True
            guard.is_replaced = False
            self._newest[key] = guard
        return guard

    def admit(self, source: PluginSource) -> str:
        """Run the trial of code before its first use; return its problems, or the empty text.

        *Concurrency*: blocks the caller's thread for a second or more.
        """
        return "; ".join(self._trials.report(source).problems)

    def lend_cluster(self, copy: Callable[[], ClusterCopy]) -> None:
        """Set the function that returns a copy of the cluster for trials; any thread calls it."""
        self._trials.cluster = copy

    # --- what is wrong ------------------------------------------------------------------------

    def breaker_states(self) -> tuple[BreakerReport, ...]:
        """Return a report about the breaker of each plugin."""
        with self._lock:
            guards = list(self._guards.values())
        return tuple(guard.report() for guard in guards)

    def troubles(self) -> Mapping[str, str]:
        """Return the current problems by the plugin's name."""
        return {each.code.name: each.trouble for each in self.breaker_states() if each.trouble}

    def subscribe(self, callback: Callable[[Mapping[str, str]], None]) -> None:
        """Call ``callback`` with :meth:`troubles` on each change, from the containment's thread."""
        with self._lock:
            self._callbacks.append(callback)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the watchdog. The first guard does so; without plugins no watchdog runs."""
        if not self._started:
            self._started = True
            self._watchdog.start()

    def stop(self) -> None:
        """Stop the watchdog and release the state directory."""
        self._watchdog.stop()
        self._note.close()
        if self._evidence is not None:
            self._evidence.close()

    def _tick(self) -> None:
        """Do the periodic work: once a second, and when a plugin failed or a breaker changed."""
        troubles = self.troubles()
        if troubles != self._told:
            self._told = troubles
            with self._lock:
                callbacks = list(self._callbacks)
            for callback in callbacks:
                callback(troubles)
        if self._clock() - self._started_at > ACQUITTED_AFTER_S:
            with self._lock:
                guards = list(self._guards)
            for code in guards:
                self._left_out.acquit(code)

    def _judge_last_process(self, evidence: Path) -> None:
        held_the_lock = evidence.exists() and evidence.stat().st_size > 0
        last = self._note.before
        if last is not None:
            entry = self._left_out.judge(
                last, held_the_lock=held_the_lock, timeout_s=self.options.timeout_s
            )
            if entry is not None:
                log.error(
                    "previous process ended during a plugin call",
                    plugin=entry.plugin,
                    digest=last.digest,
                    left_out=entry.left_out,
                    why=entry.why,
                )
        try:
            if held_the_lock:
                evidence.replace(evidence.with_suffix(".last.txt"))
            self._evidence = evidence.open("w", encoding="utf-8")
        except OSError as error:
            raise StateDirError(f"{evidence}: {error.strerror}") from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateDirError(f"{folder}: {error.strerror}") from error

"""Wiring of live profiles for the app: reload, plugin supply, swap and their thread."""

from __future__ import annotations

from queue import Empty
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.config import ConfigError, render_effective
from scheduler.metrics.instruments import Pulled
from scheduler.profiles.available_plugins import known_plugins
from scheduler.profiles.config_reload import ConfigReload

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.config import SchedulerConfig
    from scheduler.metrics import Metrics
    from scheduler.process.ports import Executor, Queue
    from scheduler.profiles.available_plugins import PluginSupply
    from scheduler.profiles.config_reload import ConfigSource
    from scheduler.profiles.known_profiles import KnownProfiles
    from scheduler.profiles.profile_swap import ProfileSwap

STOP_S: Final = 5.0
"""Timeout for a change that is being compiled when Berth shuts down."""

LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger(__name__)


class LiveProfiles:
    """The profiles of a running Berth, with everything that changes them.

    Parameters
    ----------
    config
        The configuration at the start.
    known
        Applies changes; has no configuration yet.
    swap
        Replaces the running profiles; also installs the first ones.
    supply
        The plugins of users; None if there are none.
    source
        The source from which the configuration is reloaded; None for no reload.

    Raises
    ------
    ConfigError
        When the configuration cannot be used.

    Attributes
    ----------
    profiles
        The profiles that decide now.
    thread
        The thread on which all changes are made.

    Notes
    -----
    *Concurrency*: constructed and stopped on the I/O loop.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        known: KnownProfiles,
        swap: ProfileSwap,
        metrics: Metrics,
        supply: PluginSupply | None = None,
        source: ConfigSource | None = None,
    ) -> None:
        self._supply = supply
        self.known = known
        mistakes = known.set_file(config)
        if mistakes:
            raise ConfigError.of(mistakes, config.source)
        self.profiles = swap.profiles
        swap(known.frameworks())
        known.go_live(swap)
        self._reload: ConfigReload | None = None
        if source is not None:
            reload = ConfigReload(source, known, config, metrics.config_reloaded)
            metrics.pull(
                Pulled(
                    "gauge",
                    "berth_config_last_reload_successful",
                    "1 if the configuration that was read last is in force, else 0.",
                    (),
                    lambda: {(): float(not reload.problem)},
                )
            )
            self._reload = reload
        self.thread = ReloadThread(self._look, swap.executor)

    def start(self) -> None:
        """Start to watch for changes of the configuration and of users' plugins."""
        thread, reload = self.thread, self._reload
        thread.start()
        if self._supply is not None and reload is not None:
            self._supply.start(
                on_change=lambda _: thread.do(reload.plugins_changed),
                on_trouble=lambda troubles: thread.do(lambda: self.known.plugin_trouble(troubles)),
            )

    def stop(self) -> None:
        """Stop watching for changes; wait for a change that is being made."""
        if self._supply is not None:
            self._supply.stop()
        self.thread.stop(STOP_S)

    def _look(self) -> None:
        if self._reload is not None:
            self._reload.look()

    def describe(self) -> str:
        """Return the configuration in force as YAML; comments list profiles and problems."""
        lines = [f"policy of {profile.profile_name}: {profile.policy}" for profile in self.profiles]
        if self._reload is not None and self._reload.problem:
            lines += ["the file is not in force:", *self._reload.problem.splitlines()]
        if self._reload is not None and self._reload.needs_restart:
            lines.append(f"needs a restart: {', '.join(self._reload.needs_restart)}")
        lines += [f"plugin {name} {what}" for name, what in self.known.troubles.items()]
        if self._supply is not None:
            problems = self._supply.catalogue.problems.values()
            lines += [f"plugin code is not used: {why}" for why in problems]
        comments = "".join(f"# {' '.join(line.split())}\n" for line in lines)
        return comments + render_effective(self.known.config, known_plugins(self._supply))


class ReloadThread:
    """Runs jobs one after another in the order of their submission, and ``look`` every second.

    The time to compile a profile has no limit, because plugins take part in it. Neither the
    scheduling thread, nor the I/O loop, nor the thread that supervises plugins may wait for it.

    Parameters
    ----------
    look
        Called every second.
    executor
        Creates the thread and the queue.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`start` and :meth:`stop` once.
    """

    def __init__(self, look: Callable[[], object], executor: Executor) -> None:
        self._look = look
        self._jobs: Queue[Callable[[], object] | None] = executor.queue()
        self._thread = executor.thread(self._run, "policies")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def do(self, job: Callable[[], object]) -> None:
        """Queue a job behind all earlier ones; never block."""
        self._jobs.put(job)

    def stop(self, timeout_s: float) -> None:
        """Accept no further jobs, and wait up to ``timeout_s`` for the queued ones."""
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        next_look_s = monotonic() + LOOK_EVERY_S
        while True:
            try:
                job = self._jobs.get(timeout=max(next_look_s - monotonic(), 0.0))
            except Empty:
                next_look_s = monotonic() + LOOK_EVERY_S
                job = self._look
            if job is None:
                return
            try:
                job()
            except Exception:
                # A bug of Berth in one change must not prevent the next ones.
                log.exception("profiles could not be changed")

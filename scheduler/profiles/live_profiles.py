"""What makes profiles change while berth runs, put together for the app."""

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
"""For a change that is being compiled when berth is told to stop."""

LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger(__name__)


class LiveProfiles:
    """The profiles of a running berth.

    Parameters
    ----------
    config
        What they are at the start.
    known
        Takes changes; knows no configuration yet.
    swap
        Puts profiles in place of others; the first ones, too.
    supply
        The plugins of users; None where there are none.
    source
        Where the configuration is read again; None for never.

    Raises
    ------
    ConfigError
        When the configuration cannot be used.

    Attributes
    ----------
    profiles
        Those that decide at the moment.
    thread
        On which all of them change.

    Notes
    -----
    *Concurrency*: made and stopped on the I/O loop.
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
                    "Whether the configuration, as it was read last, is in force (1) or not (0).",
                    (),
                    lambda: {(): float(not reload.problem)},
                )
            )
            self._reload = reload
        self.thread = ReloadThread(self._look, swap.executor)

    def start(self) -> None:
        """Begin to look for changes of the configuration and of users' plugins."""
        thread, reload = self.thread, self._reload
        thread.start()
        if self._supply is not None and reload is not None:
            self._supply.start(
                on_change=lambda _: thread.do(reload.plugins_changed),
                on_trouble=lambda told: thread.do(lambda: self.known.plugin_trouble(told)),
            )

    def stop(self) -> None:
        """Cease to; waits for what is under way."""
        if self._supply is not None:
            self._supply.stop()
        self.thread.stop(STOP_S)

    def _look(self) -> None:
        if self._reload is not None:
            self._reload.look()

    def describe(self) -> str:
        """Return the configuration in force as YAML, and in comments whatever else counts."""
        lines = [f"policy of {each.profile_name}: {each.policy}" for each in self.profiles]
        if self._reload is not None and self._reload.problem:
            lines += ["the file is not in force:", *self._reload.problem.splitlines()]
        if self._reload is not None and self._reload.needs_restart:
            lines.append(f"wants a restart: {', '.join(self._reload.needs_restart)}")
        lines += [f"plugin {name} {what}" for name, what in self.known.troubles.items()]
        if self._supply is not None:
            problems = self._supply.catalogue.problems.values()
            lines += [f"plugin code is not used: {why}" for why in problems]
        comments = "".join(f"# {' '.join(line.split())}\n" for line in lines)
        return comments + render_effective(self.known.config, known_plugins(self._supply))


class ReloadThread:
    """Does one thing after another, in the order in which they came, and every second a look.

    Compiling takes as long as plugins like. Neither the scheduling thread, nor the I/O loop, nor
    the one that watches over plugins may wait for it.

    Parameters
    ----------
    look
        Done every second.
    executor
        Has the thread.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`start` and :meth:`stop` once.
    """

    def __init__(self, look: Callable[[], object], executor: Executor) -> None:
        self._look = look
        self._jobs: Queue[Callable[[], object] | None] = executor.queue()
        self._thread = executor.thread(self._run, "policies")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def do(self, job: Callable[[], object]) -> None:
        """Have something done after all that was asked for before; never waits."""
        self._jobs.put(job)

    def stop(self, timeout_s: float) -> None:
        """Begin nothing more than was asked for, and wait for so long until that is done."""
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
                # A mistake of ours in one change, which shall not cost the next ones.
                log.exception("policies could not be changed")

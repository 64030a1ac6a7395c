"""What makes profiles change while berth runs, put together for the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.config import ConfigError, render_effective
from scheduler.metrics.instruments import Pulled
from scheduler.profiles.available_plugins import known_plugins
from scheduler.profiles.config_reload import ConfigReload
from scheduler.profiles.reload_thread import ReloadThread

STOP_S: Final = 5.0
"""For a change that is being compiled when berth is told to stop."""

if TYPE_CHECKING:
    from scheduler.config import SchedulerConfig
    from scheduler.metrics import Metrics
    from scheduler.profiles.available_plugins import PluginSupply
    from scheduler.profiles.config_reload import ConfigSource
    from scheduler.profiles.known_profiles import KnownProfiles
    from scheduler.profiles.profile_swap import ProfileSwap


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

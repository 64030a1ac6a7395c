"""What makes policies change while berth runs, put together for the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.registry import PLUGINS
from scheduler.config import ConfigError, render_effective
from scheduler.metrics.instruments import Pulled
from scheduler.policy.config_reload import ConfigReload
from scheduler.policy.policies import Policies
from scheduler.policy.policy_thread import PolicyThread
from scheduler.policy.profile_compiler import ProfileCompiler
from scheduler.policy.profile_swap import ProfileSwap
from scheduler.profiles import Profiles
from scheduler.vital import no_death

STOP_S: Final = 5.0
"""For a change that is being compiled when berth is told to stop."""

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from cache.objects import Pod
    from plugins.framework.handle import Handle
    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig
    from scheduler.event_handlers import EventHandlers
    from scheduler.metrics import Metrics
    from scheduler.policy.config_reload import ConfigSource
    from scheduler.policy.extender_chains import ExtenderChains
    from scheduler.policy.plugin_supply import PluginSupply
    from scheduler.policy.policies import Shadows
    from scheduler.queueing import SchedulingQueue
    from scheduler.vital import OnDeath


class LivePolicies:
    """The policies of a running berth.

    Parameters
    ----------
    config
        What they are at the start.
    handle
        What plugins are lent.
    shadows
        Runs those of mode Shadow; None where nobody does.
    supply
        The plugins of users; None where there are none.
    source
        Where the configuration is read again; None for never.
    on_death
        Called when the thread ends on which it is read, without being told to.

    Raises
    ------
    ConfigError
        When the configuration cannot be used.

    Attributes
    ----------
    policies
        Takes changes.
    profiles
        Those that decide at the moment.

    Notes
    -----
    *Concurrency*: made, :meth:`go_live` and stopped on the I/O loop.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        handle: Handle,
        chains: ExtenderChains,
        metrics: Metrics,
        shadows: Shadows | None = None,
        supply: PluginSupply | None = None,
        source: ConfigSource | None = None,
        on_death: OnDeath = no_death,
    ) -> None:
        self._supply = supply
        self._plugins: Callable[[], Mapping[str, type[Plugin]]] = (
            _only_ours if supply is None else supply.plugins
        )
        compiler = ProfileCompiler(
            self._plugins, handle, chains, None if supply is None else supply.load_python
        )
        self.policies = Policies(compiler, shadows)
        mistakes = self.policies.set_file(config)
        if mistakes:
            raise ConfigError.of(mistakes, config.source)
        self.profiles = Profiles(self.policies.frameworks())
        self._reload: ConfigReload | None = None
        self._thread: PolicyThread | None = None
        if source is not None:
            reload = ConfigReload(source, self.policies, config, metrics.config_reloaded)
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
            self._thread = PolicyThread(self._reload.look, on_death)

    def go_live(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: SchedulingQueue,
        handlers: EventHandlers,
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        """Let changes take effect from now on."""
        self.policies.go_live(ProfileSwap(loop, self.profiles, queue, handlers, pods))

    def start(self) -> None:
        """Begin to look for changes of the configuration and of users' plugins."""
        thread, reload = self._thread, self._reload
        if thread is None or reload is None:
            return
        thread.start()
        if self._supply is not None:
            self._supply.start(
                on_change=lambda _: thread.do(reload.plugins_changed),
                on_trouble=lambda told: thread.do(lambda: self.policies.plugin_trouble(told)),
            )

    def stop(self) -> None:
        """Cease to; waits for what is under way."""
        if self._supply is not None:
            self._supply.stop()
        if self._thread is not None:
            self._thread.stop(STOP_S)

    def describe(self) -> str:
        """Return the configuration in force as YAML, and in comments whatever else counts."""
        lines = [f"policy of {each.profile_name}: {each.policy}" for each in self.profiles]
        if self._reload is not None and self._reload.problem:
            lines += ["the file is not in force:", *self._reload.problem.splitlines()]
        if self._reload is not None and self._reload.needs_restart:
            lines.append(f"wants a restart: {', '.join(self._reload.needs_restart)}")
        lines += [f"plugin {name} {what}" for name, what in self.policies.troubles.items()]
        if self._supply is not None:
            problems = self._supply.catalogue.problems.values()
            lines += [f"plugin code is not used: {why}" for why in problems]
        comments = "".join(f"# {' '.join(line.split())}\n" for line in lines)
        return comments + render_effective(self.policies.config, self._plugins())


def _only_ours() -> Mapping[str, type[Plugin]]:
    return PLUGINS

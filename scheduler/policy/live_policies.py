"""What makes policies change while berth runs, put together for the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.registry import PLUGINS
from scheduler.config import ConfigError
from scheduler.policy.policies import Policies
from scheduler.policy.profile_compiler import ProfileCompiler
from scheduler.policy.profile_swap import ProfileSwap
from scheduler.profiles import Profiles

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from cache.objects import Pod
    from plugins.framework.handle import Handle
    from scheduler.config import SchedulerConfig
    from scheduler.event_handlers import EventHandlers
    from scheduler.metrics import Metrics
    from scheduler.policy.extender_chains import ExtenderChains
    from scheduler.policy.policies import Shadows
    from scheduler.queueing import SchedulingQueue


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
    ) -> None:
        compiler = ProfileCompiler(lambda: PLUGINS, handle, chains)
        self.policies = Policies(compiler, shadows)
        mistakes = self.policies.set_file(config)
        if mistakes:
            raise ConfigError.of(mistakes, config.source)
        self.profiles = Profiles(self.policies.frameworks())

    def go_live(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: SchedulingQueue,
        handlers: EventHandlers,
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        """Let changes take effect from now on."""
        self.policies.go_live(ProfileSwap(loop, self.profiles, queue, handlers, pods))

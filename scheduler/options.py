"""Define the options that the command line adds to the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.pod_group_objects import MAX_MEMBERS
from cache.scheduler_cache import DEFAULT_TTL_S
from cache.value import Value
from scheduler.cycle.cycle_watch import DEFAULT_SLOW_CYCLE_S
from scheduler.debug.cache_audit import DEFAULT_PERIOD_S
from scheduler.event_handlers import lost_events
from scheduler.leader_election import own_identity
from scheduler.node_metrics import NodeMetricsConfig
from scheduler.pools import PoolOptions
from scheduler.profiles.operator import OperatorOptions
from scheduler.queueing import DEFAULT_ATTEMPT_BUDGET_S
from scheduler.serving.options import ServingOptions
from scheduler.tracing.options import TracingOptions

if TYPE_CHECKING:
    from scheduler.journal import JournalOptions
    from scheduler.profiles.available_plugins import PluginSupply
    from scheduler.profiles.config_reload import ConfigSource


class Options(Value, frozen=True):
    """What the command line adds to the configuration file."""

    kubeconfig: str | None = None
    serving: ServingOptions = msgspec.field(default_factory=ServingOptions)
    seed: int | None = None
    ttl_s: float = DEFAULT_TTL_S
    slow_cycle_s: float = DEFAULT_SLOW_CYCLE_S
    attempt_budget_s: float = DEFAULT_ATTEMPT_BUDGET_S
    """CPU seconds of the scheduling thread that an attempt may use; 0 for no limit."""
    bind_guard: bool = True
    """Whether the newest state of a node is looked at before a pod is bound to it."""
    bind_reserve: bool | None = None
    """Whether nodes with space for pods of others are preferred if these bind of late; None for
    what ``bind_guard`` says."""
    pod_group_status: bool = True
    """Whether statuses of PodGroups of ``scheduling.x-k8s.io`` are written here."""
    max_pod_group_members: int = MAX_MEMBERS
    """A group with more members is refused."""
    comparison_period_s: float = DEFAULT_PERIOD_S
    api_comparison_period_s: float = lost_events.DEFAULT_PERIOD_S
    pool: PoolOptions = msgspec.field(default_factory=PoolOptions)
    """The nodes that this process schedules onto."""
    operator: OperatorOptions = msgspec.field(default_factory=OperatorOptions)
    node_metrics: NodeMetricsConfig = msgspec.field(default_factory=NodeMetricsConfig)
    tracing: TracingOptions = msgspec.field(default_factory=TracingOptions)
    journal: JournalOptions | None = None
    """Where decisions are recorded; None for nowhere."""
    supply: PluginSupply | None = None
    """The plugins of users; None where there are none."""
    source: ConfigSource | None = None
    """Where the configuration is read again; None for never."""
    identity: str = msgspec.field(default_factory=own_identity)

    @property
    def reserves(self) -> bool:
        """Whether nodes with room for pods of other schedulers are preferred."""
        return self.bind_guard if self.bind_reserve is None else self.bind_reserve

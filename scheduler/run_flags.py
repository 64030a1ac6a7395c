"""Define the flags of ``berth run``, and convert them into options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from plugins.registry import PLUGINS
from scheduler.config import (
    ConfigError,
    SchedulerConfig,
    default_config,
    load_config,
    with_election,
)
from scheduler.journal.flags import add_journal_flags, journal_options
from scheduler.node_metrics import NodeMetricsConfig
from scheduler.node_metrics.configuration import load_node_metrics
from scheduler.options import Options
from scheduler.pools import add_pool_flags, pool_options
from scheduler.profiles.available_plugins import PluginSupply, SupplyOptions
from scheduler.profiles.operator import OperatorOptions, add_operator_flags, operator_options
from scheduler.serving.flags import add_serving_flags, serving_options
from scheduler.tracing.options import add_tracing_flags, tracing_options
from scheduler.user_plugins.containment import add_containment_flags, containment_options
from scheduler.user_plugins.for_commands import add_kept_annotations

if TYPE_CHECKING:
    from scheduler.profiles.config_reload import ConfigSource

_DEFAULTS: Final = Options()

_DURATIONS: Final = (
    (
        "--assumed-pod-ttl",
        _DEFAULTS.ttl_s,
        "how long a bound pod may stay unconfirmed by the watch before berth reads it "
        "from the API (%(default)s; 0: no limit)",
    ),
    (
        "--slow-cycle-threshold",
        _DEFAULTS.slow_cycle_s,
        "a scheduling cycle that takes longer is logged with its parts (%(default)s; 0: none)",
    ),
    (
        "--attempt-budget",
        _DEFAULTS.attempt_budget_s,
        "CPU time that an attempt to place a pod may use; one that needs more is stopped "
        "and retried later with twice as much (%(default)s; 0: no limit)",
    ),
    (
        "--cache-comparison-period",
        _DEFAULTS.comparison_period_s,
        "interval of comparing the cache with the watches (%(default)s; 0: only on request)",
    ),
    (
        "--api-comparison-period",
        _DEFAULTS.api_comparison_period_s,
        "interval, within a sixth, at which the leader compares the watches with a list of "
        "metadata and repairs lost events (%(default)s; 0: never)",
    ),
)
"""In seconds: the flag, what holds without it, and its help text."""


def add_run_flags(run: argparse.ArgumentParser) -> None:
    """Add the flags, but for those of the log."""
    run.add_argument("--kubeconfig", metavar="F", help="the kubeconfig file of the API server")
    run.add_argument("--config", metavar="F", help="a KubeSchedulerConfiguration")
    run.add_argument(
        "--scheduler-name", metavar="N", help="the one profile's schedulerName, without --config"
    )
    run.add_argument(
        "--leader-elect",
        metavar="BOOL",
        type=_bool,
        help="whether replicas elect a leader that schedules; by default the value in the "
        "configuration, or true if that has none",
    )
    for flag, default, text in _DURATIONS:
        run.add_argument(flag, metavar="SECONDS", type=float, default=default, help=text)
    run.add_argument(
        "--bind-guard",
        metavar="BOOL",
        type=_bool,
        default=_DEFAULTS.bind_guard,
        help="whether a pod goes back to the queue when others have taken its node since the "
        "decision; false binds it all the same (true)",
    )
    run.add_argument(
        "--bind-reserve",
        metavar="BOOL",
        type=_bool,
        default=_DEFAULTS.bind_reserve,
        help="whether nodes with space for the pods of other schedulers are preferred to nodes "
        "with a slightly higher score, if these have bound pods of late (the same as "
        "--bind-guard)",
    )
    run.add_argument(
        "--pod-group-status",
        metavar="BOOL",
        type=_bool,
        default=_DEFAULTS.pod_group_status,
        help="whether berth writes the status of PodGroups of scheduling.x-k8s.io; false leaves it "
        "to the controller of scheduler-plugins (true)",
    )
    run.add_argument(
        "--max-pod-group-members",
        metavar="N",
        type=int,
        default=_DEFAULTS.max_pod_group_members,
        help="a group of more pods is refused, since one attempt decides about all of them "
        "(%(default)s)",
    )
    add_pool_flags(run)
    add_journal_flags(run)
    run.add_argument("--seed", type=int, help="makes the choice among equal nodes repeatable")
    run.add_argument(
        "--node-metrics",
        metavar="F",
        type=Path,
        help="a NodeMetricsConfiguration: the queries to Prometheus about nodes, for plugins that "
        "use measured load",
    )
    add_kept_annotations(run)
    run.add_argument_group("plugins of your own").add_argument(
        "--plugin-dir",
        metavar="DIR",
        type=Path,
        help="a folder of Python files with plugins, read again when they change; without --config "
        "all of them are enabled",
    )
    add_containment_flags(run)
    add_operator_flags(run)
    add_serving_flags(run)
    add_tracing_flags(run)


def run_options(
    flags: argparse.Namespace,
    supply: PluginSupply | None,
    operator: OperatorOptions,
    source: ConfigSource | None,
) -> Options:
    """Return what the flags add to the configuration.

    Parameters
    ----------
    supply, operator
        What :func:`plugin_supply` returned.
    source
        Reads the configuration again; None where it does not change.

    Raises
    ------
    ConfigError
        When the file with node metrics cannot be used, or a flag has an impossible value.
    """
    measured = flags.node_metrics
    return Options(
        kubeconfig=flags.kubeconfig,
        serving=serving_options(flags),
        tracing=tracing_options(flags),
        operator=operator,
        node_metrics=NodeMetricsConfig() if measured is None else load_node_metrics(measured),
        journal=journal_options(flags),
        pool=pool_options(flags),
        supply=supply,
        source=source,
        seed=flags.seed,
        ttl_s=flags.assumed_pod_ttl,
        slow_cycle_s=flags.slow_cycle_threshold,
        attempt_budget_s=flags.attempt_budget,
        bind_guard=flags.bind_guard,
        bind_reserve=flags.bind_reserve,
        pod_group_status=flags.pod_group_status,
        max_pod_group_members=flags.max_pod_group_members,
        comparison_period_s=flags.cache_comparison_period,
        api_comparison_period_s=flags.api_comparison_period,
    )


def plugin_supply(options: argparse.Namespace) -> tuple[PluginSupply | None, OperatorOptions]:
    """Return the plugins of users, None where there can be none, and what of the operator is said.

    Raises
    ------
    ConfigError
        When a folder cannot be used.
    """
    operator, containment = operator_options(options), containment_options(options)
    installed = operator.enabled or options.config is not None
    if options.plugin_dir is None and not installed:
        return None, operator
    supply = PluginSupply(
        SupplyOptions(
            directory=options.plugin_dir,
            installed=installed,
            allow_python=operator.allow_python,
            namespace=operator.namespace,
            containment=containment,
        )
    )
    return supply, operator


def run_config(options: argparse.Namespace, supply: PluginSupply | None) -> SchedulerConfig:
    """Return the configuration of the file, or the default one, with what the flags change of it.

    Raises
    ------
    ConfigError
        When the file cannot be used, or contradicts a flag.
    """
    config = _file_config(options, supply)
    return config if options.leader_elect is None else with_election(config, options.leader_elect)


def _file_config(options: argparse.Namespace, supply: PluginSupply | None) -> SchedulerConfig:
    if options.config is None:
        config = default_config(options.scheduler_name or "berth")
        return config if supply is None else supply.enabled_in(config)
    if options.scheduler_name is not None:
        raise ConfigError("--scheduler-name", "contradicts --config, which names its profiles")
    return load_config(Path(options.config), PLUGINS if supply is None else supply.plugins())


def _bool(text: str) -> bool:
    """Read what Go takes for a boolean."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")

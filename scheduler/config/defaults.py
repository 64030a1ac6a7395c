"""Set the defaults of a configuration: for absent fields, and for zero where it means absent.

*Source*: kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go; k8s.io/component-base
config/v1alpha1/defaults.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.config.configuration import (
    OWN_NAME,
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    SchedulerConfig,
)
from scheduler.config.extender import DEFAULT_TIMEOUT
from scheduler.config.file_profile import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.go_duration import GoDuration
    from scheduler.config.extender import Extender

_FOREIGN_LEASE: Final = ("kube-system", "kube-scheduler")
"""The lease of the cluster's own scheduler: whoever holds it keeps that scheduler from working."""

_FOREIGN_LEASE_REPLACED: Final = (
    f"leaderElection.resourceName (that lease is the cluster's own scheduler's; {OWN_NAME} it is)"
)

_DEFAULT_ELECTION: Final = LeaderElection()


def default_config(scheduler_name: str = OWN_NAME) -> SchedulerConfig:
    """Return the configuration of one default profile, used where there is no file."""
    return SchedulerConfig(profiles=(Profile(scheduler_name=scheduler_name),))


def defaulted(
    config: KubeSchedulerConfiguration, data: Mapping[str, object], source: str
) -> SchedulerConfig:
    """Return ``config`` with every default filled in.

    A single profile without a name gets ours; of several each needs its own.

    Parameters
    ----------
    config
        What the file says.
    data
        The same as plain data: tells which fields it gives.
    source
        The file.
    """
    profiles = config.profiles or (Profile(),)
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        profiles = (msgspec.structs.replace(profiles[0], scheduler_name=OWN_NAME),)
    fields = msgspec.structs.asdict(config) | {
        "leader_election": _election(config.leader_election),
        "client_connection": _connection(config.client_connection),
        "profiles": profiles,
        "extenders": tuple(defaulted_extender(each) for each in config.extenders),
    }
    if "enableContentionProfiling" not in data:
        fields["enable_contention_profiling"] = config.enable_profiling
    replaced = _replaced(config.leader_election)
    return SchedulerConfig(**fields, given=given_paths(data), replaced=replaced, source=source)


def electing(config: SchedulerConfig, leader_elect: bool) -> SchedulerConfig:
    """Return ``config`` with its ``leaderElection.leaderElect`` changed."""
    election = msgspec.structs.replace(config.leader_election, leader_elect=leader_elect)
    return msgspec.structs.replace(
        config, leader_election=_election(election), replaced=_replaced(election)
    )


def given_paths(data: Mapping[str, object]) -> frozenset[str]:
    """Return the paths of all fields that are not null, outside of lists."""
    paths: set[str] = set()
    for key, value in data.items():
        if value is None:
            continue
        paths.add(key)
        if isinstance(value, dict):
            paths.update(f"{key}.{below}" for below in given_paths(value))
    return frozenset(paths)


def _replaced(election: LeaderElection) -> tuple[str, ...]:
    return (_FOREIGN_LEASE_REPLACED,) if _names_foreign_lease(election) else ()


def _names_foreign_lease(election: LeaderElection) -> bool:
    namespace = election.resource_namespace or _DEFAULT_ELECTION.resource_namespace
    return election.leader_elect and (namespace, election.resource_name) == _FOREIGN_LEASE


def _election(election: LeaderElection) -> LeaderElection:
    """Fill in what is empty or 0, and keep away from the lease of the cluster's own scheduler.

    # Differs: a file made for kube-scheduler, such as the one that it writes itself, names
    # kube-scheduler's lease. To take part in that election would stop one of the two.
    """
    default = _DEFAULT_ELECTION

    def or_default(given: GoDuration, otherwise: GoDuration) -> GoDuration:
        return given if given.ns else otherwise

    name = OWN_NAME if _names_foreign_lease(election) else election.resource_name
    return LeaderElection(
        leader_elect=election.leader_elect,
        lease_duration=or_default(election.lease_duration, default.lease_duration),
        renew_deadline=or_default(election.renew_deadline, default.renew_deadline),
        retry_period=or_default(election.retry_period, default.retry_period),
        resource_lock=election.resource_lock or default.resource_lock,
        resource_name=name or default.resource_name,
        resource_namespace=election.resource_namespace or default.resource_namespace,
    )


def _connection(connection: ClientConnection) -> ClientConnection:
    """Let 0 stand for the default; a negative ``qps`` means no limit, as in client-go."""
    qps = connection.qps
    return msgspec.structs.replace(
        connection,
        qps=qps if qps is not None and qps > 0 else None,
        burst=connection.burst or ClientConnection().burst,
    )


def defaulted_extender(extender: Extender) -> Extender:
    """Return an extender whose time-out is the default where it says 0."""
    if extender.http_timeout.ns:
        return extender
    return msgspec.structs.replace(extender, http_timeout=DEFAULT_TIMEOUT)

"""Which Lease the replicas of one deployment share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scheduler.client.credential_search import own_namespace

if TYPE_CHECKING:
    from scheduler.config import SchedulerConfig


class LeaseName(NamedTuple):
    """Where a Lease is."""

    namespace: str
    name: str


def lease_of(config: SchedulerConfig) -> LeaseName:
    """Return the Lease that a configuration names.

    # Differs: a file that names no namespace means the one that this process runs in, where its
    rights are; kube-scheduler's is kube-system then. So it is here outside of any pod.
    """
    election, namespace = config.leader_election, None
    if "leaderElection.resourceNamespace" not in config.given:
        namespace = own_namespace()
    return LeaseName(namespace or election.resource_namespace, election.resource_name)

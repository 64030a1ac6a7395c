"""Define the structs of a KubeSchedulerConfiguration, version v1.

*Source*: kube-scheduler config/v1/types.go and component-base config/v1alpha1/types.go in k8s.io
(0.36), with the defaults of kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go.

# Differs: a lease is called berth, never kube-scheduler, which belongs to the cluster's own
# scheduler; so is a profile without a name. Without ``qps`` requests are bounded by how many are
# in flight, not by how many there are in a second.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config.extender import Extender  # noqa: TC001 - msgspec reads field types
from scheduler.config.file_profile import FileStruct, Int64, Percentage, Profile

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"

OWN_NAME: Final = "berth"
"""The name of the lease and of a profile that has none."""


class LeaderElection(FileStruct, frozen=True):
    """How replicas agree on the one that schedules."""

    leader_elect: bool = True
    lease_duration: GoDuration = duration_of_seconds(15)
    renew_deadline: GoDuration = duration_of_seconds(10)
    retry_period: GoDuration = duration_of_seconds(2)
    resource_lock: str = "leases"
    resource_name: str = OWN_NAME
    resource_namespace: str = "kube-system"


class ClientConnection(FileStruct, frozen=True):
    """How the API server is reached.

    Parameters
    ----------
    kubeconfig
        A file, or ``""`` for the credentials of the pod that we run in.
    accept_content_types, content_type
        Not honoured: the client speaks JSON.
    qps
        Requests in a second, more than 0; None for no such limit.
    burst
        Requests at once on top of a steady ``qps``.
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float | None = None
    burst: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 100


class KubeSchedulerConfiguration(FileStruct, frozen=True):
    """A configuration with the defaults where the file says nothing."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Percentage = 0
    percentage_of_placements_to_score: Percentage | None = None
    pod_initial_backoff_seconds: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


class SchedulerConfig(KubeSchedulerConfiguration, frozen=True):
    """A configuration that has been checked, with at least one profile, each with a name.

    Parameters
    ----------
    given
        Paths of the fields that the file gives, such as ``clientConnection.qps``; of lists only
        their own.
    replaced
        Values of the file that something else stands for here: each path, and why.
    source
        Where it was read, for messages; ``""`` for the built-in configuration.
    """

    given: frozenset[str] = frozenset()
    replaced: tuple[str, ...] = ()
    source: str = ""


__all__ = [
    "API_VERSION",
    "GROUP",
    "KIND",
    "OWN_NAME",
    "ClientConnection",
    "KubeSchedulerConfiguration",
    "LeaderElection",
    "SchedulerConfig",
]

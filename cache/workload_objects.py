"""Services, controllers and PodDisruptionBudgets, which select pods, as immutable structs.

As in :mod:`cache.objects`, the structs have only the fields that scheduling reads.

*Source*: k8s.io/api core/v1, apps/v1 and policy/v1 (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping

from cache.kept_annotations import EMPTY_MAP
from cache.objects import ApiStruct, LabelSelector


class WorkloadMeta(ApiStruct, frozen=True):
    """The metadata that identifies a Service or a controller; no other metadata is read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class ServiceSpec(ApiStruct, frozen=True):
    """The pods that a Service selects; without a selector it selects none."""

    selector: Mapping[str, str] = EMPTY_MAP


class Service(ApiStruct, frozen=True):
    """A Service: default spreading keeps its pods apart."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(ApiStruct, frozen=True):
    """A ReplicationController, which selects as a Service does."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: ServiceSpec = ServiceSpec()


class SetSpec(ApiStruct, frozen=True):
    """The pods that a ReplicaSet or a StatefulSet manages."""

    selector: LabelSelector | None = None


class ReplicaSet(ApiStruct, frozen=True):
    """A ReplicaSet, including the ReplicaSets of Deployments."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: SetSpec = SetSpec()


class StatefulSet(ApiStruct, frozen=True):
    """A StatefulSet."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: SetSpec = SetSpec()


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """The pods that a budget protects; no selector or an empty one protects none here."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """How many of them may be disrupted now, and which are on their way out already."""

    disruptions_allowed: int = 0
    disrupted_pods: Mapping[str, str] = EMPTY_MAP
    observed_generation: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A promise to keep enough pods of a workload running."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

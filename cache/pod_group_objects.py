"""The objects that describe groups of pods, as immutable structs, and the groups' rules.

Two APIs have a PodGroup. Both are read into :class:`GroupRules`, so that nothing else has to know
which one described a group.

*Source*: k8s.io/api scheduling/v1alpha2 (1.36), with the shapes that v1alpha3 and v1beta1 have in
1.37; sigs.k8s.io/scheduler-plugins 0.34.7, apis/scheduling/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from cache.objects import EMPTY_QUANTITIES, ApiStruct, Pod, PodMeta, Quantity
from cache.resources import MalformedObjectError, is_qualified_name, resource_amounts

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""The label of a pod that names its PodGroup of ``scheduling.x-k8s.io``."""

TOPOLOGY_KEY: Final = "scheduling.berth.dev/topology-key"
"""The annotation with the node label of which all members must see one value."""

PREFERRED_TOPOLOGY_KEY: Final = "scheduling.berth.dev/preferred-topology-key"
"""The annotation with the node label of which the members should see one value."""

PARTIAL_GANG_GRACE: Final = "scheduling.berth.dev/partial-gang-grace"
"""The annotation with the time after which the rest of a gang below its minimum is evicted."""

DEFAULT_SCHEDULE_TIMEOUT_S: Final = 60.0
"""From the decision to the last bind. *Source*: coscheduling, DefaultPermitWaitingTimeSeconds."""

MAX_MEMBERS: Final = 5_000
"""The members that a group may have by default."""

_MAX_SHOWN: Final = 300
"""Characters that a reason repeats of an object; a value may have a quarter of a megabyte."""

_MAX_INT32: Final = 2**31 - 1

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class GroupSource(Enum):
    """The API that describes a group; the value is its API group."""

    FIELD = "scheduling.k8s.io"
    """The pod names the group in ``spec.schedulingGroup``."""
    LABEL = "scheduling.x-k8s.io"
    """The pod names the group in a label."""


class GroupKey(NamedTuple):
    """The identity of a group."""

    namespace: str
    name: str
    source: GroupSource

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def group_key(pod: Pod) -> GroupKey | None:
    """Return the group that a pod names, or None. The field counts before the label."""
    field = pod.spec.scheduling_group
    if field is not None and field.pod_group_name:
        return GroupKey(pod.metadata.namespace, field.pod_group_name, GroupSource.FIELD)
    name = pod.metadata.labels.get(GROUP_LABEL)
    return GroupKey(pod.metadata.namespace, name, GroupSource.LABEL) if name else None


def ignored_label(pod: Pod) -> str:
    """Return the group that a pod names in its label although its field names one; else nothing."""
    field = pod.spec.scheduling_group
    if field is None or not field.pod_group_name:
        return ""
    return pod.metadata.labels.get(GROUP_LABEL, "")


class GroupRules(msgspec.Struct, frozen=True):
    """What holds for the members of a group.

    Attributes
    ----------
    uid
        Of the object.
    minimum
        The members that are placed together or not at all; at least 1.
    min_resources
        What the nodes must have in all before the group is tried.
    topology_key, preferred_topology_key
        Node labels; empty for none.
    is_evicted_whole
        Whether members are evicted all together or not at all.
    priority
        None for that of the members.
    timeout_s
        The longest time from the decision to the last bind.
    never_preempts
        Whether nobody may be evicted for the group, whatever its members' own policy is.
    partial_grace
        The duration after which the rest of a gang below its minimum is evicted; empty for never.
    problem
        Why the group is refused; empty for a group that can be tried.
    """

    key: GroupKey
    uid: str
    minimum: int = 1
    min_resources: Mapping[str, int] = _NOTHING
    topology_key: str = ""
    preferred_topology_key: str = ""
    is_evicted_whole: bool = False
    priority: int | None = None
    timeout_s: float = DEFAULT_SCHEDULE_TIMEOUT_S
    partial_grace: str = ""
    problem: str = ""
    never_preempts: bool = False


# --- scheduling.k8s.io ------------------------------------------------------------------------


class BasicPolicy(ApiStruct, frozen=True):
    """The members of the group are placed one by one."""


class GangPolicy(ApiStruct, frozen=True):
    """At least ``min_count`` members are placed, or none."""

    min_count: int = 0


class SchedulingPolicy(ApiStruct, frozen=True):
    """How the members are placed: exactly one of the fields is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiStruct, frozen=True):
    """All members see one value of a node label."""

    key: str = ""


class SchedulingConstraints(ApiStruct, frozen=True):
    """Where the members may be placed, as a whole."""

    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(ApiStruct, frozen=True):
    """How members are evicted, from 1.37 on: exactly one of the fields is set."""

    single: BasicPolicy | None = None
    all: BasicPolicy | None = None


class PodGroupSpec(ApiStruct, frozen=True):
    """The specification of a PodGroup.

    ``disruption_mode`` is a text until 1.36; the parent and the policy are there from 1.37 on.
    """

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority: int | None = None
    resource_claims: tuple[Mapping[str, str], ...] = ()
    parent_composite_pod_group_name: str = ""
    preemption_policy: str = ""


class PodGroupCondition(ApiStruct, frozen=True):
    """A condition of a PodGroup of ``scheduling.k8s.io``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class PodGroupStatus(ApiStruct, frozen=True):
    """The status of a PodGroup of ``scheduling.k8s.io``."""

    conditions: tuple[PodGroupCondition, ...] = ()


class PodGroup(ApiStruct, frozen=True):
    """A PodGroup of ``scheduling.k8s.io``."""

    metadata: PodMeta = PodMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class UnreadablePodGroup(PodGroup, frozen=True):
    """Stands for a PodGroup of ``scheduling.k8s.io`` whose rules cannot be read."""

    problem: str = ""


def rules_of_pod_group(group: PodGroup) -> GroupRules:
    """Return the rules that a PodGroup of ``scheduling.k8s.io`` describes."""
    metadata, spec = group.metadata, group.spec
    if isinstance(group, UnreadablePodGroup):
        return _unreadable_rules(metadata, GroupSource.FIELD, group.problem)
    gang = spec.scheduling_policy.gang
    constraints = spec.scheduling_constraints
    mode = spec.disruption_mode
    whole = mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"
    minimum = 1 if gang is None else gang.min_count
    rules = GroupRules(
        GroupKey(metadata.namespace, metadata.name, GroupSource.FIELD),
        metadata.uid,
        max(minimum, 1),
        topology_key=constraints.topology[0].key if constraints and constraints.topology else "",
        preferred_topology_key=metadata.annotations.get(PREFERRED_TOPOLOGY_KEY, ""),
        is_evicted_whole=whole,
        priority=spec.priority,
        partial_grace=metadata.annotations.get(PARTIAL_GANG_GRACE, ""),
        never_preempts=spec.preemption_policy == "Never",
    )
    if minimum < 1:
        why = f"spec.schedulingPolicy.gang.minCount: {minimum} is less than 1"
        return msgspec.structs.replace(rules, problem=why)
    if spec.resource_claims:
        why = "spec.resourceClaims: devices that a group shares are not supported"
        return msgspec.structs.replace(rules, problem=why)
    if spec.parent_composite_pod_group_name:
        why = "spec.parentCompositePodGroupName: groups of groups are not supported"
        return msgspec.structs.replace(rules, problem=why)
    return _with_checked_keys(rules)


# --- scheduling.x-k8s.io ----------------------------------------------------------------------


class XPodGroupSpec(ApiStruct, frozen=True):
    """The specification of a PodGroup of ``scheduling.x-k8s.io``."""

    min_member: int | None = None
    min_resources: Mapping[str, Quantity] = EMPTY_QUANTITIES
    schedule_timeout_seconds: int | None = None


class XPodGroupStatus(ApiStruct, frozen=True):
    """The status of a PodGroup of ``scheduling.x-k8s.io``."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class XPodGroup(ApiStruct, frozen=True):
    """A PodGroup of ``scheduling.x-k8s.io``."""

    metadata: PodMeta = PodMeta()
    spec: XPodGroupSpec = XPodGroupSpec()
    status: XPodGroupStatus = XPodGroupStatus()


class UnreadableXPodGroup(XPodGroup, frozen=True):
    """Stands for a PodGroup of ``scheduling.x-k8s.io`` whose rules cannot be read."""

    problem: str = ""


def rules_of_x_pod_group(group: XPodGroup) -> GroupRules:
    """Return the rules that a PodGroup of ``scheduling.x-k8s.io`` describes.

    A minimum that is absent or 0 is 1; a timeout that is not positive is the default.
    """
    metadata, spec = group.metadata, group.spec
    if isinstance(group, UnreadableXPodGroup):
        return _unreadable_rules(metadata, GroupSource.LABEL, group.problem)
    minimum = spec.min_member or 1
    timeout_s = float(spec.schedule_timeout_seconds or 0)
    annotations = metadata.annotations
    rules = GroupRules(
        GroupKey(metadata.namespace, metadata.name, GroupSource.LABEL),
        metadata.uid,
        max(minimum, 1),
        topology_key=annotations.get(TOPOLOGY_KEY, ""),
        preferred_topology_key=annotations.get(PREFERRED_TOPOLOGY_KEY, ""),
        timeout_s=timeout_s if timeout_s > 0 else DEFAULT_SCHEDULE_TIMEOUT_S,
        partial_grace=annotations.get(PARTIAL_GANG_GRACE, ""),
    )
    if not 1 <= minimum <= _MAX_INT32:
        size = "negative" if minimum < 0 else f"more than {_MAX_INT32}"
        return msgspec.structs.replace(rules, problem=f"spec.minMember: {minimum} is {size}")
    try:
        least = resource_amounts(spec.min_resources, "spec.minResources")
    except MalformedObjectError as error:
        return msgspec.structs.replace(rules, problem=_shown(str(error)))
    rules = msgspec.structs.replace(rules, min_resources=MappingProxyType(least))
    return _with_checked_keys(rules)


def _unreadable_rules(metadata: PodMeta, source: GroupSource, problem: str) -> GroupRules:
    """Return the rules of a group of which no more is known than that it is refused."""
    key = GroupKey(metadata.namespace, metadata.name, source)
    return GroupRules(key, metadata.uid, problem=f"the PodGroup cannot be read: {problem}")


def _shown(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _with_checked_keys(rules: GroupRules) -> GroupRules:
    """Return rules that refuse the group if a topology key is none that a node can have."""
    for name, key in (
        (TOPOLOGY_KEY, rules.topology_key),
        (PREFERRED_TOPOLOGY_KEY, rules.preferred_topology_key),
    ):
        if key and not is_qualified_name(key):
            why = f"metadata.annotations[{name}]: {_shown(key)!r} is no key of a label"
            return msgspec.structs.replace(rules, problem=why)
    return rules

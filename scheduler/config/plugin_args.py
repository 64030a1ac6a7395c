"""Arguments of kube-scheduler's plugins that are not among ours: checked all the same.

A file that kube-scheduler takes must load, and a mistake in it must be found, whether or not the
plugin that it is for exists here.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go and types.go (0.36); kube-scheduler
1.36, pkg/scheduler/apis/config/v1/defaults.go and validation/validation_pluginargs.go, with the
feature gates as they stand by default: StorageCapacityScoring off, those of dynamic resource
allocation on.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cache.objects import TopologySpreadConstraint
from cache.resources import is_qualified_name
from plugins import names
from plugins.framework.args import ArgsError
from scheduler.config.go_duration import GoDuration, duration_of_seconds
from scheduler.config.profile import FileStruct, Int32, Int64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SYSTEM: Final = "System"
_LIST: Final = "List"

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")

_ONE_SECOND: Final = duration_of_seconds(1)


class PluginArgs(FileStruct, frozen=True):
    """Base of all arguments; ``api_version`` and ``kind`` are checked by who knows the plugin."""

    api_version: str = ""
    kind: str = ""

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong with the arguments; by default nothing."""
        yield from ()


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many nodes a dry run of preemption looks at: the larger of the two."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        share, count = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= share <= 100:
            why = f"must be from 0 to 100, not {share}"
            yield ArgsError("minCandidateNodesPercentage", why)
        if count < 0:
            yield ArgsError("minCandidateNodesAbsolute", f"must be at least 0, not {count}")
        if share == 0 and count == 0:
            why = "must not be 0 together with minCandidateNodesAbsolute"
            yield ArgsError("minCandidateNodesPercentage", why)


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """What the required affinity of pods that run already is worth in a score."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield ArgsError("hardPodAffinityWeight", f"must be from 0 to 100, not {weight}")


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """A spread constraint, decoded strictly, of which nothing is taken for granted."""

    max_skew: Int32 = 0
    when_unsatisfiable: str = ""


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Spread constraints for pods without any: the built-in ones, or those of a list."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = ""

    def defaulted(self) -> PodTopologySpreadArgs:
        """Return the arguments with the default filled in."""
        return PodTopologySpreadArgs(
            self.api_version, self.kind, self.default_constraints, self.defaulting_type or _SYSTEM
        )

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        defaulting = self.defaulting_type or _SYSTEM
        if defaulting not in (_SYSTEM, _LIST):
            why = f"{defaulting[:80]!r} is none of {_LIST}, {_SYSTEM}"
            yield ArgsError("defaultingType", why)
        if defaulting == _SYSTEM and self.default_constraints:
            yield ArgsError("defaultingType", f"must be {_LIST} where there are defaultConstraints")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{index}]"
            yield from _problems_of(constraint, path)
            key = (constraint.topology_key, constraint.when_unsatisfiable)
            if key in seen:
                yield ArgsError(path, f"{' with '.join(key)} stands there twice")
            seen.add(key)


def _problems_of(constraint: DefaultConstraint, path: str) -> Iterator[ArgsError]:
    if constraint.max_skew <= 0:
        yield ArgsError(f"{path}.maxSkew", f"must be more than 0, not {constraint.max_skew}")
    key = constraint.topology_key
    if not key:
        yield ArgsError(f"{path}.topologyKey", "is required")
    elif not is_qualified_name(key):
        yield ArgsError(f"{path}.topologyKey", f"{key[:80]!r} cannot be the key of a label")
    action = constraint.when_unsatisfiable
    if not action:
        yield ArgsError(f"{path}.whenUnsatisfiable", "is required")
    elif action not in _ACTIONS:
        why = f"{action[:80]!r} is none of {', '.join(_ACTIONS)}"
        yield ArgsError(f"{path}.whenUnsatisfiable", why)
    if constraint.label_selector is not None:
        why = "must not be given: each pod's own Services and sets decide"
        yield ArgsError(f"{path}.labelSelector", why)


class UtilizationPoint(FileStruct, frozen=True):
    """A point of a score over utilization."""

    utilization: Int32 = 0
    score: Int32 = 0


class VolumeBindingArgs(PluginArgs, frozen=True):
    """How long binding may wait for volumes; 0 does not wait."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationPoint, ...] | None = None

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        if self.bind_timeout_seconds < 0:
            why = f"must be at least 0, not {self.bind_timeout_seconds}"
            yield ArgsError("bindTimeoutSeconds", why)
        if self.shape is not None:
            why = "is only known with the feature gate StorageCapacityScoring, which is off"
            yield ArgsError("shape", why)


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """How long one node is searched for devices (0: for ever) and how long binding waits."""

    filter_timeout: GoDuration = duration_of_seconds(10)
    binding_timeout: GoDuration = duration_of_seconds(600)

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        if self.filter_timeout.ns < 0:
            yield ArgsError("filterTimeout", f"must be at least 0s, not {self.filter_timeout}")
        if self.binding_timeout < _ONE_SECOND:
            yield ArgsError("bindingTimeout", f"must be at least 1s, not {self.binding_timeout}")


PLUGIN_ARGS: Final[Mapping[str, type[PluginArgs]]] = MappingProxyType(
    {
        names.DEFAULT_PREEMPTION: DefaultPreemptionArgs,
        names.DYNAMIC_RESOURCES: DynamicResourcesArgs,
        names.INTER_POD_AFFINITY: InterPodAffinityArgs,
        names.POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs,
        names.VOLUME_BINDING: VolumeBindingArgs,
    }
)
"""What the arguments of a plugin must be while the plugin does not say so itself."""

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

from plugins import names
from plugins.framework.args import ArgsError
from scheduler.config.go_duration import GoDuration, duration_of_seconds
from scheduler.config.profile import FileStruct, Int32, Int64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        names.VOLUME_BINDING: VolumeBindingArgs,
    }
)
"""What the arguments of a plugin must be while the plugin does not say so itself."""

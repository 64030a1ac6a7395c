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
from plugins.framework.args import ArgsError, PluginArgs
from scheduler.config.go_duration import GoDuration, duration_of_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ONE_SECOND: Final = duration_of_seconds(1)


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
        names.DYNAMIC_RESOURCES: DynamicResourcesArgs,
    }
)
"""What the arguments of a plugin must be while the plugin does not say so itself."""

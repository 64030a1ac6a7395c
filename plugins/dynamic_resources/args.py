"""The arguments of DynamicResources.

*Source*: k8s.io/kube-scheduler config/v1/types_pluginargs.go, DynamicResourcesArgs (0.36);
pkg/scheduler/apis/config/{v1/defaults.go, validation/validation_pluginargs.go} (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.args import ArgsError, PluginArgs
from plugins.framework.go_duration import GoDuration, duration_of_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

_ONE_SECOND: Final = duration_of_seconds(1)


class DynamicResourcesArgs(PluginArgs, frozen=True):
    """The arguments of DynamicResources.

    Parameters
    ----------
    filter_timeout
        Limit of the search for devices on one node; 0 for none.
    binding_timeout
        Time from an allocation until the binding conditions of its devices must be met.
    """

    filter_timeout: GoDuration = duration_of_seconds(10)
    binding_timeout: GoDuration = duration_of_seconds(600)

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        if self.filter_timeout.ns < 0:
            yield ArgsError("filterTimeout", f"must be at least 0s, not {self.filter_timeout}")
        if self.binding_timeout < _ONE_SECOND:
            yield ArgsError("bindingTimeout", f"must be at least 1s, not {self.binding_timeout}")

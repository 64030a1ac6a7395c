"""The arguments of VolumeBinding.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go, VolumeBindingArgs (0.36);
kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go and
validation/validation_pluginargs.go, with the feature gate StorageCapacityScoring off, its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from plugins.framework.args import ArgsError, PluginArgs

if TYPE_CHECKING:
    from collections.abc import Iterator

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class UtilizationPoint(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A point of a score over utilization."""

    utilization: _Int32 = 0
    score: _Int32 = 0


class VolumeBindingArgs(PluginArgs, frozen=True):
    """How long binding may wait for volumes.

    Parameters
    ----------
    bind_timeout_seconds
        Seconds from the first write until every claim must be bound; 0 does not wait.
    shape
        For a feature that is off; must be absent.
    """

    bind_timeout_seconds: _Int64 = 600
    shape: tuple[UtilizationPoint, ...] | None = None

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong."""
        if self.bind_timeout_seconds < 0:
            why = f"must be at least 0, not {self.bind_timeout_seconds}"
            yield ArgsError("bindTimeoutSeconds", why)
        if self.shape is not None:
            why = "is only known with the feature gate StorageCapacityScoring, which is off"
            yield ArgsError("shape", why)

"""The arguments of PodTopologySpread.

*Source*: k8s.io/kube-scheduler config/v1/types_pluginargs.go, PodTopologySpreadArgs (0.36);
kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go and
validation/validation_pluginargs.go, ValidatePodTopologySpreadArgs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from cache.objects import TopologySpreadConstraint
from cache.resources import is_qualified_name
from plugins.framework.args import ArgsError, PluginArgs

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM: Final = "System"
LIST: Final = "List"

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """A spread constraint, decoded strictly; its values are not checked yet."""

    max_skew: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    when_unsatisfiable: str = ""


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Spread constraints for pods without any: the built-in ones, or those of a list.

    Parameters
    ----------
    default_constraints
        The list.
    defaulting_type
        ``System`` or ``List``; empty means ``System``.
    """

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = ""

    def defaulted(self) -> PodTopologySpreadArgs:
        """Return the arguments with the default filled in."""
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM)

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments, before or after :meth:`defaulted`."""
        defaulting = self.defaulting_type or SYSTEM
        if defaulting not in (SYSTEM, LIST):
            why = f"{defaulting[:80]!r} is none of {LIST}, {SYSTEM}"
            yield ArgsError("defaultingType", why)
        if defaulting == SYSTEM and self.default_constraints:
            yield ArgsError("defaultingType", f"must be {LIST} where there are defaultConstraints")
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

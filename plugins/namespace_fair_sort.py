"""Orders the active queue by priority, and shares attempts between the namespaces of one priority.

# Differs: kube-scheduler has no such plugin; a configuration that names it works with Berth only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from plugins.framework.args import ArgsError, PluginArgs
from plugins.priority_sort import PrioritySort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.objects import Pod
    from plugins.framework.handle import Handle

MAX_WEIGHT: Final = 1000.0


class NamespaceFairSortArgs(PluginArgs, frozen=True):
    """The arguments.

    Parameters
    ----------
    weights
        By namespace: a namespace with weight 2 gets twice the time of one with weight 1, which is
        the weight of namespaces that are not named here. Above 0, at most 1 000.
    """

    weights: dict[str, float] = msgspec.field(default_factory=dict)

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        for namespace, weight in self.weights.items():
            if not (math.isfinite(weight) and 0 < weight <= MAX_WEIGHT):
                why = f"must be above 0 and at most {MAX_WEIGHT:.0f}, not {weight}"
                yield ArgsError(f"weights[{namespace}]", why)


class NamespaceFairSort(PrioritySort):
    """Sorts by priority; within a priority, the namespace that used the least time comes first.

    The weighted CPU time of attempts counts, not their number.
    """

    name = "NamespaceFairSort"
    args_type: ClassVar[type[msgspec.Struct] | None] = NamespaceFairSortArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._weights = NamespaceFairSortArgs.checked(args).weights

    def account(self, pod: Pod) -> tuple[str, float]:
        """Return the pod's namespace and its weight."""
        namespace = pod.metadata.namespace
        return namespace, self._weights.get(namespace, 1.0)

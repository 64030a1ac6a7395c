"""The arguments of DefaultPreemption.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go, DefaultPreemptionArgs (0.36);
kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go and
validation/validation_pluginargs.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from plugins.framework.args import ArgsError, PluginArgs

if TYPE_CHECKING:
    from collections.abc import Iterator


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """On how many nodes victims are looked for at least: the larger of the two.

    Parameters
    ----------
    min_candidate_nodes_percentage
        A share of the nodes that preemption may help on, 0..100.
    min_candidate_nodes_absolute
        A number of nodes, 0 or more.
    """

    min_candidate_nodes_percentage: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 10
    min_candidate_nodes_absolute: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 100

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong with the arguments."""
        share, count = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= share <= 100:
            why = f"must be from 0 to 100, not {share}"
            yield ArgsError("minCandidateNodesPercentage", why)
        if count < 0:
            yield ArgsError("minCandidateNodesAbsolute", f"must be at least 0, not {count}")
        if share == 0 and count == 0:
            why = "must not be 0 together with minCandidateNodesAbsolute"
            yield ArgsError("minCandidateNodesPercentage", why)

    def candidates_wanted(self, num_nodes: int) -> int:
        """Return how many candidates are enough, out of the nodes that preemption may help on."""
        share = num_nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), num_nodes)

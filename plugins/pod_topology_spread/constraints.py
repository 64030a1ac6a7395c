"""The spread constraints of one pod: compiled, with every default filled in.

*Source*: kube-scheduler 1.36, plugins/podtopologyspread/common.go and plugin.go (getConstraints,
systemDefaultConstraints), with the feature gates as they stand by default:
MatchLabelKeysInPodTopologySpread and NodeInclusionPolicyInPodTopologySpread on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.affinity_terms import compile_selector_once
from cache.label_selectors import Selector, selector_of_labels
from cache.objects import TopologySpreadConstraint
from cache.pod_table import PodQuery
from cache.taints import find_untolerated
from cache.value import Value
from plugins.framework.attempt_budget import UNLIMITED
from plugins.pod_topology_spread.args import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM,
    PodTopologySpreadArgs,
)
from plugins.pod_topology_spread.default_selectors import DefaultSelectors
from plugins.taint_tables import HARD_EFFECTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import Pod, Toleration
    from cache.workloads import Workloads
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.required_node_affinity import RequiredNodeAffinity

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

_SOME: Final = 64
"""Constraints between two checks of the budget: ordinary pods have fewer."""

_HONOR: Final = "Honor"
_IGNORE: Final = "Ignore"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""The default constraints of pods without constraints of their own."""


class Constraint(Value, frozen=True):
    """A constraint of one pod.

    Parameters
    ----------
    max_skew, topology_key
        As the API has them.
    selector
        Which pods of the pod's namespace are spread.
    query
        The query for them; None when no pod is counted: the empty selector counts no pod, although
        the pod itself satisfies it.
    min_domains
        With fewer domains than this, the minimum of matching pods counts as 0.
    honors_affinity
        Whether only nodes count that the pod's nodeSelector and node affinity allow.
    honors_taints
        Whether only nodes count whose hard taints the pod tolerates.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    query: PodQuery | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def includes(
        self,
        node_info: NodeInfo,
        affinity: RequiredNodeAffinity,
        tolerations: Sequence[Toleration],
    ) -> bool:
        """Return whether a node counts, by the inclusion policies."""
        if self.honors_affinity and not affinity.matches(node_info):
            return False
        if not self.honors_taints:
            return True
        taints = () if node_info.node is None else node_info.node.spec.taints
        return find_untolerated(taints, tolerations, HARD_EFFECTS) is None


class ConstraintSource:
    """Returns the constraints of pods.

    Parameters
    ----------
    args
        The arguments, checked and with defaults filled in.
    """

    def __init__(self, args: PodTopologySpreadArgs) -> None:
        self.is_system_defaulted = args.defaulting_type == SYSTEM
        self._defaults: tuple[TopologySpreadConstraint, ...] = (
            SYSTEM_DEFAULTS if self.is_system_defaulted else args.default_constraints
        )
        self.has_hard_defaults = any(
            each.when_unsatisfiable == DO_NOT_SCHEDULE for each in self._defaults
        )
        self._selectors = DefaultSelectors()

    def hard(
        self, pod: Pod, workloads: Workloads, budget: AttemptBudget = UNLIMITED
    ) -> tuple[Constraint, ...]:
        """Return the constraints that nodes must satisfy.

        Raises
        ------
        MalformedObjectError
            When a label selector cannot be one.

        *Cost*: some 5 us for each constraint of the pod.
        """
        own = pod.spec.topology_spread_constraints
        if not own and not self.has_hard_defaults:
            return ()
        return self._of(pod, workloads, DO_NOT_SCHEDULE, budget)

    def soft(
        self, pod: Pod, workloads: Workloads, budget: AttemptBudget = UNLIMITED
    ) -> tuple[Constraint, ...]:
        """Return the constraints that nodes are scored by.

        Raises
        ------
        MalformedObjectError
            When a label selector cannot be one.
        """
        return self._of(pod, workloads, SCHEDULE_ANYWAY, budget)

    def requires_all_topologies(self, pod: Pod) -> bool:
        """Return whether nodes that lack one of the labels get no score.

        Not for the built-in defaults: a cluster without zones still spreads over hosts.
        """
        return bool(pod.spec.topology_spread_constraints) or not self.is_system_defaulted

    def _of(
        self, pod: Pod, workloads: Workloads, action: str, budget: AttemptBudget
    ) -> tuple[Constraint, ...]:
        own = pod.spec.topology_spread_constraints
        namespace = pod.metadata.namespace
        if own:
            labels = pod.metadata.labels
            constraints = []
            for at, each in enumerate(own):
                if at % _SOME == _SOME - 1:
                    budget.check()
                if each.when_unsatisfiable == action:
                    selector = _selector_of(each, labels, budget)
                    constraints.append(_compiled(each, selector, namespace))
            return tuple(constraints)
        wanted = [each for each in self._defaults if each.when_unsatisfiable == action]
        if not wanted:
            return ()
        selector = self._selectors.of(pod, workloads)
        if selector.empty:
            return ()
        return tuple(_compiled(each, selector, namespace) for each in wanted)


def any_selects(constraints: Iterable[Constraint], labels: Mapping[str, str]) -> bool:
    """Return whether a pod with these labels is spread by one of the constraints."""
    return any(each.selector.matches(labels) for each in constraints)


def _selector_of(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str], budget: AttemptBudget
) -> Selector:
    selector = compile_selector_once(constraint.label_selector, check=budget.glance)
    same = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    # The selector that matches nothing has no requirements to extend and is kept.
    return selector.with_requirements(selector_of_labels(same).requirements) if same else selector


def _compiled(
    constraint: TopologySpreadConstraint, selector: Selector, namespace: str
) -> Constraint:
    query = None
    if not selector.empty:
        query = PodQuery(frozenset((namespace,)), selector, with_terminating=False)
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        query=query,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=(constraint.node_affinity_policy or _HONOR) == _HONOR,
        honors_taints=(constraint.node_taints_policy or _IGNORE) == _HONOR,
    )

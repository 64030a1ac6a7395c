"""PodTopologySpread as the words say it: every pod of every node is looked at, one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cache.label_selectors import Selector, compile_label_selector, selector_of_labels
from cache.objects import TopologySpreadConstraint
from cache.taints import find_untolerated
from plugins.framework.status import SUCCESS, Status, unresolvable, unschedulable
from plugins.required_node_affinity import required_node_affinity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import OwnerReference, Pod
    from tests.plugins.related_pods import World

NO_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")

HOSTNAME = "kubernetes.io/hostname"

SYSTEM = (
    TopologySpreadConstraint(3, HOSTNAME, "ScheduleAnyway"),
    TopologySpreadConstraint(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


class Naive:
    """Answers about one pod in one cluster."""

    def __init__(
        self,
        pod: Pod,
        world: World,
        nodes: Sequence[NodeInfo],
        defaults: Sequence[TopologySpreadConstraint] | None,
    ) -> None:
        self.pod = pod
        self.world = world
        self.nodes = nodes
        self.defaults = SYSTEM if defaults is None else defaults
        self.requires_all = bool(pod.spec.topology_spread_constraints) or defaults is not None

    # --- constraints --------------------------------------------------------------------------

    def constraints(self, action: str) -> list[tuple[TopologySpreadConstraint, Selector]]:
        own = self.pod.spec.topology_spread_constraints
        if own:
            return [(c, self._own_selector(c)) for c in own if c.when_unsatisfiable == action]
        selector = self.default_selector()
        if selector.empty:
            return []
        return [(c, selector) for c in self.defaults if c.when_unsatisfiable == action]

    def _own_selector(self, constraint: TopologySpreadConstraint) -> Selector:
        labels = self.pod.metadata.labels
        selector = compile_label_selector(constraint.label_selector)
        same = {key: labels[key] for key in constraint.match_label_keys if key in labels}
        if selector.nothing or not same:
            return selector
        return Selector((*selector_of_labels(same).requirements, *selector.requirements))

    def default_selector(self) -> Selector:
        pod, namespace = self.pod, self.pod.metadata.namespace
        merged: dict[str, str] = {}
        for service in self.world.services:
            wanted = service.spec.selector
            if service.metadata.namespace != namespace or not wanted:
                continue
            if selector_of_labels(wanted).matches(pod.metadata.labels):
                merged.update(wanted)
        owner = next((o for o in pod.metadata.owner_references if o.controller), None)
        if owner is None:
            return selector_of_labels(merged)
        if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
            for controller in self.world.controllers:
                if controller.metadata.namespace == namespace:
                    merged.update(controller.spec.selector)
        requirements = [*selector_of_labels(merged).requirements]
        for each in self._owning_sets(owner):
            if each.metadata.namespace == namespace and each.spec.selector is not None:
                requirements += compile_label_selector(each.spec.selector).requirements
        return Selector(requirements)

    def _owning_sets(self, owner: OwnerReference):
        if owner.api_version != "apps/v1":
            return ()
        kinds = {"ReplicaSet": self.world.replica_sets, "StatefulSet": self.world.stateful_sets}
        return kinds.get(owner.kind, ())

    # --- counting -----------------------------------------------------------------------------

    def count(self, node: NodeInfo, selector: Selector) -> int:
        if selector.empty:
            return 0
        return sum(
            info.namespace == self.pod.metadata.namespace
            and not info.is_terminating
            and selector.matches(info.labels)
            for info in node.pods.values()
        )

    def includes(self, node: NodeInfo, constraint: TopologySpreadConstraint) -> bool:
        honors_affinity = (constraint.node_affinity_policy or "Honor") == "Honor"
        if honors_affinity and not required_node_affinity(self.pod.spec).matches(node):
            return False
        if (constraint.node_taints_policy or "Ignore") == "Honor":
            taints, tolerations = node.node.spec.taints, self.pod.spec.tolerations
            return find_untolerated(taints, tolerations, {"NoSchedule", "NoExecute"}) is None
        return True

    # --- filter -------------------------------------------------------------------------------

    def statuses(self) -> dict[str, Status] | None:
        """By node name; None where the filter is skipped."""
        constraints = self.constraints("DoNotSchedule")
        if not constraints:
            return None
        domains: list[dict[str, int]] = [{} for _ in constraints]
        for node in self.nodes:
            if any(c.topology_key not in node.labels for c, _ in constraints):
                continue
            for found, (constraint, selector) in zip(domains, constraints, strict=True):
                if self.includes(node, constraint):
                    value = node.labels[constraint.topology_key]
                    found[value] = found.get(value, 0) + self.count(node, selector)
        return {node.name: self._status(node.labels, constraints, domains) for node in self.nodes}

    def _status(self, labels: Mapping[str, str], constraints, domains) -> Status:
        for found, (constraint, selector) in zip(domains, constraints, strict=True):
            value = labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            wanted = 1 if constraint.min_domains is None else constraint.min_domains
            minimum = 0 if len(found) < wanted else min(found.values())
            own = int(selector.matches(self.pod.metadata.labels))
            if found.get(value, 0) + own - minimum > constraint.max_skew:
                return SKEWED
        return SUCCESS

    # --- score --------------------------------------------------------------------------------

    def scores(self, feasible: Sequence[NodeInfo]) -> tuple[list[int], list[int]] | None:
        """Raw and final scores of feasible nodes; None where scoring is skipped."""
        constraints = self.constraints("ScheduleAnyway")
        if not constraints or not self.nodes:
            return None
        keys = [c.topology_key for c, _ in constraints]
        ignored = [
            self.requires_all and any(key not in node.labels for key in keys) for node in feasible
        ]
        counts: list[dict[str, int]] = [{} for _ in constraints]
        for node, is_ignored in zip(feasible, ignored, strict=True):
            if not is_ignored:
                for found, key in zip(counts, keys, strict=True):
                    if key != HOSTNAME:
                        found[node.labels.get(key, "")] = 0
        weights = [
            math.log((len(feasible) - sum(ignored) if key == HOSTNAME else len(found)) + 2)
            for found, key in zip(counts, keys, strict=True)
        ]
        for node in self.nodes:
            if self.requires_all and any(key not in node.labels for key in keys):
                continue
            for found, (constraint, selector) in zip(counts, constraints, strict=True):
                value = node.labels.get(constraint.topology_key, "")
                if self.includes(node, constraint) and value in found:
                    found[value] += self.count(node, selector)
        raw = []
        for node, is_ignored in zip(feasible, ignored, strict=True):
            score = 0.0
            for found, weight, (constraint, selector) in zip(
                counts, weights, constraints, strict=True
            ):
                value = node.labels.get(constraint.topology_key)
                if value is None or is_ignored:
                    continue
                by_host = constraint.topology_key == HOSTNAME
                count = self.count(node, selector) if by_host else found[value]
                score += float(count) * weight + float(constraint.max_skew - 1)
            raw.append(math.floor(score + 0.5))
        return raw, _normalized(raw, ignored)


def _normalized(raw: list[int], ignored: list[bool]) -> list[int]:
    kept = [score for score, is_ignored in zip(raw, ignored, strict=True) if not is_ignored]
    if not kept:
        return [0] * len(raw)
    low, high = min(kept), max(kept)
    return [
        0 if is_ignored else 100 if high == 0 else 100 * (high + low - score) // high
        for score, is_ignored in zip(raw, ignored, strict=True)
    ]

"""The pod binding cache: the claims and volumes that a pod would bind or provision on each node.

kube-scheduler once kept these decisions in a cache outside the cycle, by pod and node. Today they
are part of the cycle state, and so they are here, under the old name. They are computed from the
state that PreFilter read, so that all nodes of a cycle are judged by the same claims and volumes.
Only the scalar form stores a decision for a node: the vector form returns only whether there is
one.

*Source*: pkg/scheduler/framework/plugins/volumebinding/binder.go, FindPodVolumes, checkBoundClaims,
findMatchingVolumes and checkVolumeProvisions (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.storage import claim_class
from cache.value import Value
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import Status, unresolvable
from plugins.volume_binding import reachability
from plugins.volume_binding.matching import NO_VOLUME, claim_to_match, requested_size
from plugins.volume_binding.provisioning import Provisioning

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import Node
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray
    from plugins.volume_binding.free_volumes import FreeVolumes, FreeVolumesByClass
    from plugins.volume_binding.matching import ClaimToMatch
    from plugins.volume_binding.pod_claims import PodClaims
    from plugins.volume_binding.provisioning import CapacityMemory

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim with the node for which its provisioner makes the volume."""

NODE_CONFLICT: Final = 1
BIND_CONFLICT: Final = 2
NO_ROOM: Final = 4
VOLUME_GONE: Final = 8

_REASONS: Final = (
    (NODE_CONFLICT, "node(s) didn't match PersistentVolume's node affinity"),
    (BIND_CONFLICT, "node(s) didn't find available persistent volumes to bind"),
    (NO_ROOM, "node(s) did not have enough free storage"),
    (VOLUME_GONE, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
)

REJECTIONS: Final[tuple[Status, ...]] = tuple(
    unresolvable(*(reason for bit, reason in _REASONS if code & bit)) for code in range(1, 16)
)
"""The status of each combination of reasons; that of ``code`` is at ``code - 1``."""


class VolumeDecision(Value, frozen=True):
    """The bindings and provisions for a pod's volumes on one node.

    Attributes
    ----------
    code
        The reasons why the node is rejected, as bits; 0 for none.
    bindings
        Existing volumes, and the claims that they are bound to.
    provisions
        Claims for which a volume has to be provisioned.
    """

    code: int
    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


class PodBindingCache:
    """The decisions for one pod.

    Parameters
    ----------
    claims
        The pod's claims; none of them waits for another controller.
    budget
        The attempt's budget, which is checked between claims.

    Notes
    -----
    *Concurrency*: as the cycle state that contains it.

    It does not depend on the pods of a node, so what-ifs share it.
    """

    def __init__(
        self,
        claims: PodClaims,
        storage: Storage,
        free: FreeVolumesByClass,
        capacities: CapacityMemory,
        nodes: NodesView,
        budget: AttemptBudget = UNLIMITED,
    ) -> None:
        self._storage = storage
        self._budget = budget
        self._capacities = capacities
        self._nodes = nodes
        self._decisions: dict[str, tuple[Node | None, VolumeDecision]] = {}
        self._bound = tuple(storage.volumes.get(each.spec.volume_name) for each in claims.bound)
        annotated = [c for c in claims.delayed if SELECTED_NODE in c.metadata.annotations]
        self._selected = {c.metadata.annotations[SELECTED_NODE] for c in annotated}
        self._annotated = tuple(self._provisioning(claim) for claim in annotated)
        unmatched = [c for c in claims.delayed if SELECTED_NODE not in c.metadata.annotations]
        # The smallest claim chooses first.
        unmatched.sort(key=requested_size)
        # Each class is read once, so that all claims number its volumes alike.
        classes = {name: free.of_class(storage, name) for name in map(claim_class, unmatched)}
        numbers: dict[str, int] = {}
        self._to_match = tuple(
            self._matched(claim, classes[claim_class(claim)], numbers) for claim in unmatched
        )
        self._offers = tuple(self._provisioning(claim) for claim in unmatched)

    def _matched(
        self, claim: PersistentVolumeClaim, free: FreeVolumes, numbers: dict[str, int]
    ) -> ClaimToMatch:
        self._budget.check()
        return claim_to_match(claim, self._storage, free, numbers)

    def _provisioning(self, claim: PersistentVolumeClaim) -> Provisioning:
        return Provisioning(claim, self._storage, self._capacities)

    # --- one node -----------------------------------------------------------------------------

    def decision(self, node_info: NodeInfo) -> VolumeDecision:
        """Return the decision for a node.

        Raises
        ------
        MalformedObjectError, ValueError
            When the decision fails.

        *Cost*: a few passes over the free volumes of the classes; a second call costs nothing.
        """
        known = self._decisions.get(node_info.name)
        if known is None or known[0] is not node_info.node:
            known = (node_info.node, self._decide(node_info))
            self._decisions[node_info.name] = known
        return known[1]

    def decision_for(self, node_name: str) -> VolumeDecision | None:
        """Return the decision for a node of the cycle, or None if it has no such node."""
        known = self._decisions.get(node_name)
        if known is not None:
            return known[1]
        row = self._nodes.columns.row_of.get(node_name)
        return None if row is None else self.decision(self._nodes.columns.node_infos[row])

    def _decide(self, node_info: NodeInfo) -> VolumeDecision:
        labels, name = node_info.labels, node_info.name
        code = 0
        for volume in self._bound:
            if volume is None:
                code = VOLUME_GONE
                break
            if not reachability.reachable(volume, labels, name, self._storage):
                code = NODE_CONFLICT
                break
        if self._selected - {name}:
            return VolumeDecision(code | BIND_CONFLICT)
        taken: set[str] = set()
        bindings = []
        wanted = list(self._annotated)
        for to_match, offer in zip(self._to_match, self._offers, strict=True):
            self._budget.check()
            chosen = to_match.choose_one(labels, taken)
            if chosen is None:
                wanted.append(offer)
            else:
                taken.add(chosen.metadata.name)
                bindings.append((chosen, to_match.claim))
        for offer in wanted:
            if offer.error:
                raise ValueError(offer.error)
            if not offer.is_allowed(labels):
                return VolumeDecision(code | BIND_CONFLICT)
            if not offer.has_room(labels):
                return VolumeDecision(code | NO_ROOM)
        return VolumeDecision(code, tuple(bindings), tuple(offer.claim for offer in wanted))

    # --- all nodes ----------------------------------------------------------------------------

    def verdicts(self, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of a view.

        Raises
        ------
        MalformedObjectError, ValueError
            When the decision for one of them fails.

        *Cost*: a few passes over columns for each claim and each distinct demand of a volume.
        """
        codes: npt.NDArray[np.int8] = np.zeros(len(nodes), dtype=np.int8)
        self._judge_bound(nodes, codes)
        if self._selected:
            self._judge_selected(nodes, codes)
        elif self._to_match:
            self._judge_unbound(nodes, codes)
        passed: BoolArray = codes == 0
        if passed.all():
            return ALL_PASS

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            return np.maximum(codes - 1, 0), REJECTIONS

        return NodeVerdicts(passed, detail=detail)

    def _judge_bound(self, nodes: NodesView, codes: npt.NDArray[np.int8]) -> None:
        for volume in self._bound:
            self._budget.check()
            if volume is None:
                codes[codes == 0] = VOLUME_GONE
                return
            within = reachability.reachable_mask(volume, nodes, self._storage, codes == 0)
            if within is not None:
                codes[~within] = NODE_CONFLICT

    def _judge_selected(self, nodes: NodesView, codes: npt.NDArray[np.int8]) -> None:
        """Judge a pod with a claim that is being provisioned: at most one node passes."""
        row = nodes.row(next(iter(self._selected))) if len(self._selected) == 1 else None
        kept = 0 if row is None else self.decision(nodes.node_info(row)).code
        codes |= BIND_CONFLICT
        if row is not None:
            codes[row] = kept

    def _judge_unbound(self, nodes: NodesView, codes: npt.NDArray[np.int8]) -> None:
        chosen: list[IntArray] = []
        by_class: dict[str, list[IntArray]] = {}
        for to_match in self._to_match:
            self._budget.check()
            taken = by_class.setdefault(claim_class(to_match.claim), [])
            taken.append(to_match.choose(nodes, taken))
            chosen.append(taken[-1])
        found = np.zeros(len(nodes), dtype=np.int8)
        for of_claim, offer in zip(chosen, self._offers, strict=True):
            self._budget.check()
            needy: BoolArray = (of_claim == NO_VOLUME) & (found == 0)
            if not needy.any():
                continue
            if offer.error:
                raise ValueError(offer.error)
            allowed, room = offer.allowed_mask(nodes), offer.room_mask(nodes)
            if allowed is not None:
                found[needy & ~allowed] = BIND_CONFLICT
                needy &= allowed
            if room is not None:
                found[needy & ~room] = NO_ROOM
        codes |= found

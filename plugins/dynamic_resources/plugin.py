"""DynamicResources: places pods where devices can be allocated to their claims.

Not built: what is behind feature gates that are off by default (DRADeviceTaintRules,
DRANodeAllocatableResources, DRAListTypeAttributes, DRAWorkloadResourceClaims).

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (1.36), with the
feature gates as they stand by default.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from cache.device_classes import may_be_devices
from cache.label_selectors import compile_node_selector
from plugins import names
from plugins.dynamic_resources.args import DynamicResourcesArgs
from plugins.dynamic_resources.binding import PodBinding
from plugins.dynamic_resources.binding_conditions import conditional_results
from plugins.dynamic_resources.claims_of_pod import (
    FINALIZER,
    ClaimsNotReadyError,
    claims_of_pod,
    is_reserved_for,
    key_of,
)
from plugins.dynamic_resources.cycle_claims import CycleClaims
from plugins.dynamic_resources.extended_resources import find_special_claim, new_special_claim
from plugins.dynamic_resources.hints import ClaimHints
from plugins.dynamic_resources.node_verdicts import (
    NO_DEVICES,
    NOT_AVAILABLE,
    NodeVerdictError,
    NodeVerdictMaker,
)
from plugins.dynamic_resources.scoring import raw_score
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import (
    FilterPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import default_normalize
from plugins.framework.read_ahead import ReadAheadPlugin
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    SKIP_PRE_BIND,
    NodeVerdicts,
    PreFilterResult,
    PreFlight,
)
from plugins.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from cache.columns import NodesView
    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.dynamic_resources.device_report import DeviceReport
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.node_statuses import NodeStatuses
    from plugins.framework.results import IntArray

_CLAIMS: Final = StateKey[CycleClaims]("DynamicResources")

NO_CLAIMS: Final = CycleClaims()
"""The claims of a pod without any, and of one that PreFilter rejects."""

NOTHING_TO_DEALLOCATE: Final = unschedulable("no new claims to deallocate")
DEALLOCATED: Final = unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = unschedulable("deletion of ResourceClaim completed")
NOT_SCHEDULABLE: Final = unschedulable("still not schedulable")
NOT_FOUND: Final = Status(Code.ERROR, ("not found",))
"""What a cycle state of kube-scheduler says when another PreFilter has rejected the pod first."""


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    ReadAheadPlugin,
):
    """Rejects nodes on which devices cannot be allocated, and allocates them on the chosen one."""

    name = names.DYNAMIC_RESOURCES
    args_type = DynamicResourcesArgs
    is_eased_by_removals = True
    reads_pods = False
    judges_survivors = True
    scores_only_what_it_filters = True

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        checked = DynamicResourcesArgs.checked(args)
        self._binding_timeout_s = checked.binding_timeout.seconds
        self._verdicts = NodeVerdictMaker(
            handle, checked.filter_timeout.seconds, self._binding_timeout_s
        )
        self.search_times = self._verdicts.times

    def read_ahead(self, nodes: NodesView, budget: AttemptBudget) -> None:
        """Read the devices of all nodes, and which of them belong to classes."""
        if self.handle.devices.slices.version:
            self._verdicts.read_ahead(nodes.columns, budget)

    # --- before the nodes ---------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold a pod until all of its claims can be used."""
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            claims_of_pod(pod, self.handle.devices.claims.get)
        except ClaimsNotReadyError as error:
            return unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Look up the pod's claims, and what is there to be allocated."""
        state.write(_CLAIMS, NO_CLAIMS)
        resources = self._device_resources(info)
        if not info.pod.spec.resource_claims and not resources:
            return SKIP_FILTER
        try:
            of_pod = claims_of_pod(info.pod, self.handle.devices.claims.get)
        except ClaimsNotReadyError as error:
            return PreFilterResult(unresolvable(str(error)))
        special = self._special_claim(info.pod) if resources else None
        if not of_pod and special is None:
            return SKIP_FILTER
        cycle = CycleClaims(of_pod, special)
        cycle.resources = resources
        for index, claim in enumerate(cycle.claims):
            status = self._look_at(cycle, index, claim)
            if not status.is_success:
                return PreFilterResult(status)
        if any(cycle.to_allocate()):
            self._verdicts.begin_cycle(nodes.columns)
        state.write(_CLAIMS, cycle)
        return PROCEED

    def _device_resources(self, info: PodInfo) -> Mapping[str, int]:
        """Return the extended resources of a pod, if any of them can be devices."""
        found = {
            name: amount
            for name, amount in info.requests.items()
            if amount and may_be_devices(name)
        }
        classes = self.handle.devices.classes if found else None
        if classes is None or all(classes.for_resource(name) is None for name in found):
            return {}
        return found

    def _special_claim(self, pod: Pod) -> ResourceClaim:
        owned = self.handle.devices.claims.by_owner(pod.metadata.uid)
        found = find_special_claim(pod, owned)
        if found is not None:
            return found
        return new_special_claim(pod, self.handle.claim_writer.new_uid())

    def _look_at(self, cycle: CycleClaims, index: int, claim: ResourceClaim) -> Status:
        """Return whether a claim can be used or allocated anywhere."""
        allocation = claim.status.allocation
        if allocation is not None:
            if allocation.node_selector is not None:
                matcher = compile_node_selector(allocation.node_selector, "nodeSelector")
                for error in matcher.errors:
                    raise error
                cycle.available[index] = matcher
            return SUCCESS
        if self.handle.devices.claims.in_flight(claim.metadata.uid) is not None:
            why = f"resource claim {key_of(claim)} is in the process of being allocated"
            return unresolvable(why)
        return SUCCESS if cycle.is_special(index) else self._check_classes(claim)

    def _check_classes(self, claim: ResourceClaim) -> Status:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                wanted = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                wanted = [
                    (f"{request.name}/{each.name}", each.device_class_name)
                    for each in request.first_available
                ]
            else:
                key = key_of(claim)
                why = f"resource claim {key}, request {request.name}: unknown request type"
                return unresolvable(why)
            for name, class_name in wanted:
                if not class_name:
                    return Status(Code.ERROR, (f"request {name}: unsupported request type",))
                if self.handle.devices.classes.get(class_name) is None:
                    why = f"request {name}: device class {class_name} does not exist"
                    return unresolvable(why)
        return SUCCESS

    # --- nodes --------------------------------------------------------------------------------

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Count the free devices of the nodes, and judge one by one where that does not decide.

        Raises
        ------
        NodeVerdictError
            When one of them cannot be judged, which ends the cycle.
        """
        cycle = state.get(_CLAIMS)
        if not cycle:
            return ALL_PASS
        usable = self._verdicts.usable(cycle, nodes, state.budget)
        if usable is not None:
            return NodeVerdicts(usable, status=NOT_AVAILABLE)
        counted = self._verdicts.count(cycle, info.pod, nodes, state.budget)
        which = np.zeros(len(nodes), dtype=np.intp)
        if counted is None:
            unsure = np.arange(len(nodes))
        else:
            enough, is_unsure = counted
            which[enough] = 1
            unsure = np.flatnonzero(is_unsure)
        statuses = [NO_DEVICES, SUCCESS]
        numbers = {id(status): number for number, status in enumerate(statuses)}
        for index in unsure.tolist():
            state.budget.check()
            status = self._verdicts.judge(cycle, info.pod, nodes.node_info(index), state.budget)
            number = numbers.get(id(status))
            if number is None:
                number = numbers[id(status)] = len(statuses)
                statuses.append(status)
            which[index] = number
        passed = np.array([status.is_success for status in statuses], dtype=np.bool_)[which]
        return NodeVerdicts(passed, detail=lambda: (which, statuses))

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node.

        Raises
        ------
        NodeVerdictError
            When it cannot be judged.
        """
        cycle = state.get(_CLAIMS)
        if not cycle:
            return SUCCESS
        return self._verdicts.judge(cycle, info.pod, node_info, state.budget)

    def explain_devices(
        self, state: CycleState, info: PodInfo, nodes: Sequence[Node]
    ) -> tuple[DeviceReport, ...]:
        """Return the devices on nodes for the claims that the pod's cycle has to allocate."""
        cycle = state.get(_CLAIMS)
        return self._verdicts.explain_devices(cycle, info.pod, nodes) if cycle else ()

    def post_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        """Give back a claim of the pod that keeps it from all nodes.

        Differs: kube-scheduler waits until the API server has answered, and of several claims takes
        one at random. Here the first is taken and nobody waits; the change of the claim wakes the
        pod.
        """
        cycle = state.get(_CLAIMS)
        if cycle is None:
            return None, NOT_FOUND
        if not cycle:
            return None, NOTHING_TO_DEALLOCATE
        writer = self.handle.claim_writer
        for index in sorted(cycle.unavailable):
            claim = cycle.claims[index]
            users = {each.uid for each in claim.status.reserved_for}
            if not cycle.is_special(index) and users <= {info.uid}:
                writer.deallocate_soon(claim)
                return None, DEALLOCATED
        left_over = cycle.left_over
        if left_over is not None:
            writer.delete_soon(left_over)
            return None, DELETED
        return None, NOT_SCHEDULABLE

    # --- what was found -----------------------------------------------------------------------

    def has_claims(self, state: CycleState) -> bool:
        """Return whether the pod has claims, after :meth:`pre_filter` has let it pass."""
        cycle = state.get(_CLAIMS)
        return bool(cycle)

    def allocations(
        self, state: CycleState, info: PodInfo, node_name: str
    ) -> tuple[tuple[ResourceClaim, AllocationResult], ...]:
        """Return what claims without an allocation would get on a node that passed.

        The claim that stands for extended resources has the requests for this node. Nothing is
        returned when the search fails.

        Notes
        -----
        *Cost*: a search, if the devices of the node were only counted.
        """
        cycle = state.get(_CLAIMS)
        if not cycle or not any(cycle.to_allocate()):
            return ()
        with suppress(NodeVerdictError):
            self._search_counted(cycle, state, info, node_name)
        found = cycle.by_node.get(node_name)
        if found is None:
            return ()
        return tuple(
            (found.special if found.special and cycle.is_special(index) else claim, allocation)
            for (index, claim), allocation in zip(cycle.to_allocate(), found.results, strict=True)
        )

    # --- scoring ------------------------------------------------------------------------------

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Score all nodes. *Cost*: a pass over the nodes where their devices were counted."""
        cycle = state.get(_CLAIMS)
        if cycle and cycle.by_node:
            return super().score(state, info, nodes)
        if not cycle or cycle.counted_scores is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return nodes.take(cycle.counted_scores)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return how early in their lists the alternatives stand that were found on the node."""
        cycle = state.get(_CLAIMS)
        if not cycle:
            return 0
        found = cycle.by_node.get(node_info.name)
        if found is not None:
            return raw_score(cycle.claims, found.results)
        if cycle.counted_scores is None or cycle.counted_on is None:
            return 0
        row = cycle.counted_on.row_of.get(node_info.name)
        return 0 if row is None else int(cycle.counted_scores[row])

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Stretch the scores to 0..100."""
        return default_normalize(scores)

    # --- binding ------------------------------------------------------------------------------

    def reserve(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Put the allocations for the node in flight: from now on their devices are in use."""
        cycle = state.get(_CLAIMS)
        waiting = list(cycle.to_allocate()) if cycle else []
        if cycle is None or not waiting:
            return SUCCESS
        self._search_counted(cycle, state, info, node_name)
        found = cycle.by_node.get(node_name)
        if found is None or not found.results:
            if all(cycle.is_special(index) for index, _ in waiting):
                # A device plugin of the node provides the extended resources.
                return SUCCESS
            return _error("claim allocation not found for node")
        count = len(found.results)
        if count != len(waiting):
            return _error(
                f"internal error, have {count} allocations, {len(waiting)} claims to allocate, "
                f"want {len(waiting)} claims"
            )
        for (index, claim), allocation in zip(waiting, found.results, strict=True):
            special = found.special if cycle.is_special(index) else None
            self._begin_flight(claim if special is None else special, allocation)
            cycle.reserved[index] = allocation
        return SUCCESS

    def _search_counted(
        self, cycle: CycleClaims, state: CycleState, info: PodInfo, node_name: str
    ) -> None:
        """Find the devices on a node of which only the number is known."""
        columns = cycle.counted_on
        row = None if columns is None else columns.row_of.get(node_name)
        node_info = None if columns is None or row is None else columns.info_at(row)
        if node_info is not None:
            self._verdicts.judge(cycle, info.pod, node_info, state.budget)

    def _begin_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        metadata = claim.metadata
        if FINALIZER not in metadata.finalizers:
            metadata = replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))
        status = replace(claim.status, allocation=allocation)
        self.handle.devices.claims.begin_flight(replace(claim, metadata=metadata, status=status))

    def unreserve(self, state: CycleState, info: PodInfo, node_name: str) -> None:
        """Take back what :meth:`reserve` and :meth:`pre_bind` did, but for written allocations.

        A claim that was allocated stays so: the next attempt is bound to its node.

        Differs: kube-scheduler waits until the API server has answered.
        """
        cycle = state.get(_CLAIMS)
        if not cycle:
            return
        known, writer = self.handle.devices.claims, self.handle.claim_writer
        for index, claim in enumerate(cycle.claims):
            metadata = claim.metadata
            special = cycle.is_special(index)
            if cycle.reserved.pop(index, None) is not None:
                known.end_flight(cycle.special_uid if special else metadata.uid)
                known.restore(metadata.namespace, metadata.name)
            if not special and claim.status.allocation and is_reserved_for(claim, info.uid):
                writer.release_soon(claim, info.uid)
                kept = tuple(each for each in claim.status.reserved_for if each.uid != info.uid)
                status = replace(claim.status, reserved_for=kept)
                cycle.claims[index] = replace(claim, status=status)
        if cycle.left_over is not None:
            writer.delete_soon(cycle.left_over)

    def pre_bind_pre_flight(self, state: CycleState, info: PodInfo, node_name: str) -> PreFlight:
        """Return Skip unless the pod has claims; other plugins may run meanwhile."""
        cycle = state.get(_CLAIMS)
        if not cycle:
            return SKIP_PRE_BIND
        return PreFlight(allow_parallel=True, is_brief=not _has_conditions(cycle))

    async def pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Write the claims, and wait until their devices are ready.

        Raises
        ------
        Exception
            When a claim cannot be written, or a device does not become ready; the pod is then
            scheduled again from the start.
        """
        cycle = state.get(_CLAIMS)
        if not cycle:
            return SUCCESS
        binding = PodBinding(self.handle, cycle, info.pod, node_name)
        return await binding.run(self._binding_timeout_s)

    # --- waking up ----------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: changes of nodes, claims, classes, slices and generated claims."""
        return ClaimHints(lambda: self.handle.devices.claims.get).registrations()


def _has_conditions(cycle: CycleClaims) -> bool:
    """Return whether the binding has to wait for conditions of devices."""
    new = (each.devices.results for each in cycle.reserved.values())
    return any(conditional_results(cycle.claims)) or any(
        result.binding_conditions for results in new for result in results
    )


def _error(why: str) -> Status:
    return Status(Code.ERROR, (why,))

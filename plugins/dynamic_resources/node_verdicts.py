"""The verdict on one node: whether the claims of a pod can be used or allocated there.

*Source*: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, Filter, and
extendeddynamicresources.go, filterExtendedResources (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.device_objects import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.binding_conditions import (
    DeviceBindingFailedError,
    is_ready,
    is_timed_out,
)
from plugins.dynamic_resources.cycle_claims import NodeAllocation, Variant
from plugins.dynamic_resources.deadline import Deadline, SearchTimes
from plugins.dynamic_resources.device_report import device_reports
from plugins.dynamic_resources.errors import (
    AllocationError,
    InvalidPoolsError,
    SearchCancelledError,
    SearchTimeoutError,
)
from plugins.dynamic_resources.extended_resources import device_requests, with_requests
from plugins.dynamic_resources.free_devices import FreeDevices, countable
from plugins.dynamic_resources.pools import PoolIndex
from plugins.dynamic_resources.requests import EXACT_COUNT, RequestReader
from plugins.dynamic_resources.scoring import MAX_ALTERNATIVES
from plugins.dynamic_resources.selector_cache import SelectorCache
from plugins.framework.status import SUCCESS, Status, unresolvable
from plugins.required_node_affinity import any_term_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.columns import Columns, NodesView
    from cache.node_info import NodeInfo
    from cache.objects import ContainerExtendedResourceRequest, Node, Pod
    from plugins.dynamic_resources.cycle_claims import CycleClaims
    from plugins.dynamic_resources.device_report import DeviceReport
    from plugins.dynamic_resources.free_devices import Countable
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.handle import Handle
    from plugins.framework.results import BoolArray

LEFT_OVER: Final = unresolvable("cannot schedule extended resource claim")
NO_SUCH_RESOURCE: Final = unresolvable("cannot fit resource")
NO_DEVICES: Final = unresolvable("cannot allocate all claims")
NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")

SELECTORS: Final = SelectorCache()
"""The selectors of all profiles: their results depend on nothing but expression and device."""

MAX_READ_AHEAD: Final = 16
"""Classes whose devices are counted ahead: each weighs a megabyte for 5 000 nodes and may cost a
tenth of a second. Pods pay for those of further classes themselves."""

_NOTHING: Final[frozenset[str]] = frozenset()


class NodeVerdictError(Exception):
    """A node cannot be judged, which ends the cycle; the message is kube-scheduler's."""


class NodeVerdictMaker:
    """Judges nodes.

    Parameters
    ----------
    handle
        Lends the classes, the slices and the clock that stamps allocations.
    filter_timeout_s
        Limit of the search on one node; 0 for none.
    binding_timeout_s
        How long after its allocation a claim with binding conditions may be used.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self, handle: Handle, filter_timeout_s: float, binding_timeout_s: float) -> None:
        self._handle = handle
        self._filter_timeout_s = filter_timeout_s
        self._binding_timeout_s = binding_timeout_s
        self.times = SearchTimes()
        self._free: FreeDevices | None = None

    def begin_cycle(self, columns: Columns) -> None:
        """Read the slices and the devices in use: all nodes of a cycle are judged by these."""
        devices = self._handle.devices
        if self._free is None or self._free.columns is not columns:
            self._free = FreeDevices(columns, PoolIndex(devices.slices.view()), devices)
        self._free.follow()

    def read_ahead(self, columns: Columns, budget: AttemptBudget) -> None:
        """Count the free devices of each class before a pod asks for them.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up; what was counted is kept.
        """
        self.begin_cycle(columns)
        if self._free is None:
            return
        reader = RequestReader(self._handle.devices.classes.get, SELECTORS)
        for name in self._handle.devices.classes.names(MAX_READ_AHEAD):
            for wanted in countable((reader.read(0, _one_device(name)),)):
                if self._free.is_kept(wanted):
                    self._free.enough(wanted, budget, exempt=0)

    def count(
        self, cycle: CycleClaims, pod: Pod, nodes: NodesView, budget: AttemptBudget
    ) -> tuple[BoolArray, BoolArray] | None:
        """Return which nodes have enough free devices, and which have to be judged one by one.

        The scores of these nodes are stored in ``cycle`` if the claims have alternatives.

        Returns
        -------
        bool (n_nodes,) twice, or None when counting cannot decide.

        Raises
        ------
        AttemptBudgetExceededError
            When the attempt has used up its budget.
        """
        free = self._free
        if free is None or free.columns is not nodes.columns or not cycle.is_unallocated:
            return None
        classes = self._handle.devices.classes
        resources = frozenset(cycle.resources)
        if any(classes.for_resource(each) is None for each in resources):
            return None
        if cycle.special is not None and cycle.special.spec.devices.requests:
            return None
        alternatives = countable(self._variant_for(cycle, pod, resources).allocator.requests)
        if not alternatives:
            return None
        enough, unsure = self._first_enough(free, alternatives, cycle, budget)
        enough, unsure = nodes.take(enough), nodes.take(unsure)
        for each in resources:
            # Where a device plugin provides one of them, fewer devices are wanted.
            unsure |= nodes.allocatable(each) != 0
        cycle.counted_on = nodes.columns
        return enough & ~unsure, unsure

    def _first_enough(
        self,
        free: FreeDevices,
        alternatives: Sequence[Countable],
        cycle: CycleClaims,
        budget: AttemptBudget,
    ) -> tuple[BoolArray, BoolArray]:
        """Return the rows with enough devices for an alternative, and those to be searched."""
        enough, unsure = free.enough(alternatives[0], budget)
        if alternatives[0].request.alternative:
            cycle.counted_scores = np.where(enough, MAX_ALTERNATIVES, 0)
            for index, wanted in enumerate(alternatives[1:], start=1):
                also, also_unsure = free.enough(wanted, budget)
                undecided = ~(enough | unsure)
                cycle.counted_scores[undecided & also] = MAX_ALTERNATIVES - index
                enough = enough | (undecided & also)
                unsure = unsure | (undecided & also_unsure)
        return enough, unsure

    def usable(
        self, cycle: CycleClaims, nodes: NodesView, budget: AttemptBudget
    ) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes that can use the pod's claims, which have allocations.

        The claims that some node cannot use are stored in ``cycle``.

        Returns
        -------
        None when one of the claims has no allocation.
        """
        if cycle.special is not None or any(cycle.to_allocate()):
            return None
        usable = np.ones(len(nodes), dtype=np.bool_)
        now_s = self._handle.claim_writer.now_s()
        for index, claim in enumerate(cycle.claims):
            matcher = cycle.available.get(index)
            if self._has_failed(claim, now_s):
                mask = np.zeros(len(nodes), dtype=np.bool_)
            elif matcher is not None:
                mask = any_term_mask(matcher, nodes, budget)
            else:
                continue
            if not mask.all():
                cycle.unavailable.add(index)
            usable &= mask
        return usable

    def explain_devices(
        self, cycle: CycleClaims, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[DeviceReport, ...]:
        """Return the devices on nodes for the claims to be allocated.

        All extended resources that a class maps count as devices.
        """
        if self._free is None or not any(cycle.to_allocate()) or cycle.left_over is not None:
            return ()
        classes = self._handle.devices.classes
        resources = frozenset(
            each for each in cycle.resources if classes.for_resource(each) is not None
        )
        claims = self._variant_for(cycle, pod, resources).allocator.requests
        return device_reports(claims, nodes, self._free.pools, self._free.allocated)

    def judge(
        self, cycle: CycleClaims, pod: Pod, node_info: NodeInfo, budget: AttemptBudget
    ) -> Status:
        """Return the verdict on a node, and store in ``cycle`` what was found there.

        Raises
        ------
        NodeVerdictError
            When the node cannot be judged.
        AttemptBudgetExceededError
            When the attempt has used up its budget.
        """
        known = cycle.judged.get(node_info.name)
        if known is not None and known[0] is node_info.node:
            return known[1]
        status = self._judge(cycle, pod, node_info, budget)
        cycle.judged[node_info.name] = (node_info.node, status)
        return status

    def _judge(
        self, cycle: CycleClaims, pod: Pod, node_info: NodeInfo, budget: AttemptBudget
    ) -> Status:
        resources = self._device_resources(cycle, node_info)
        if isinstance(resources, Status):
            return resources
        if not cycle.user_claims and not resources:
            # Device plugins provide all of the extended resources.
            return SUCCESS
        unavailable = self._unavailable(cycle, node_info)
        allocation: NodeAllocation | None = None
        if any(cycle.to_allocate()):
            found = self._allocate(cycle, pod, node_info, resources, budget)
            if isinstance(found, Status):
                return found
            allocation = found
        if unavailable:
            cycle.unavailable.update(unavailable)
            return NOT_AVAILABLE
        if allocation is not None:
            cycle.by_node[node_info.name] = allocation
        return SUCCESS

    def _device_resources(self, cycle: CycleClaims, node_info: NodeInfo) -> frozenset[str] | Status:
        """Return the requested extended resources that are devices on a node, or a rejection."""
        special = cycle.special
        if special is None:
            return _NOTHING
        if special.spec.devices.requests:
            return LEFT_OVER
        classes, allocatable = self._handle.devices.classes, node_info.allocatable
        found = []
        for resource in cycle.resources:
            if not allocatable.get(resource) and classes.for_resource(resource) is not None:
                found.append(resource)
            elif resource not in allocatable:
                return NO_SUCH_RESOURCE
        return frozenset(found)

    def _unavailable(self, cycle: CycleClaims, node_info: NodeInfo) -> list[int]:
        """Return the indices of the allocated claims that a node cannot use, or nobody."""
        found = []
        now_s: float | None = None
        for index, claim in enumerate(cycle.claims):
            matcher = cycle.available.get(index)
            if matcher is not None and not matcher.matches(node_info.labels, node_info.name):
                found.append(index)
            elif claim.status.allocation is not None:
                now_s = self._handle.claim_writer.now_s() if now_s is None else now_s
                if self._has_failed(claim, now_s):
                    found.append(index)
        return found

    def _has_failed(self, claim: ResourceClaim, now_s: float) -> bool:
        try:
            return not is_ready(claim) and is_timed_out(claim, self._binding_timeout_s, now_s)
        except DeviceBindingFailedError:
            return True

    def _allocate(
        self,
        cycle: CycleClaims,
        pod: Pod,
        node_info: NodeInfo,
        resources: frozenset[str],
        budget: AttemptBudget,
    ) -> NodeAllocation | Status:
        """Return what can be allocated on a node, or a rejection."""
        variant = self._variant_for(cycle, pod, resources)
        node = node_info.node
        if node is None:
            return NO_DEVICES
        try:
            if self.times.has_timed_out(pod.metadata.uid, node_info.name):
                raise SearchTimeoutError
            deadline = Deadline(self._filter_timeout_s, self.times.clock, budget)
            results = variant.allocator.allocate(node, deadline)
        except SearchTimeoutError as error:
            self.times.on_timeout(pod.metadata.uid, node_info.name)
            why = f"node {node_info.name}: timed out trying to allocate devices"
            raise NodeVerdictError(why) from error
        except InvalidPoolsError as error:
            return unresolvable(str(error))
        except SearchCancelledError:
            return unresolvable("asked by caller to stop allocating devices: context canceled")
        except AllocationError as error:
            raise NodeVerdictError(str(error)) from error
        if results is None:
            return NO_DEVICES
        return NodeAllocation(results, variant.special, variant.mappings)

    def _variant_for(self, cycle: CycleClaims, pod: Pod, resources: frozenset[str]) -> Variant:
        variant = cycle.variants.get(resources)
        if variant is None:
            variant = cycle.variants[resources] = self._variant(cycle, pod, resources)
        return variant

    def _variant(self, cycle: CycleClaims, pod: Pod, resources: frozenset[str]) -> Variant:
        devices = self._handle.devices
        special = cycle.special
        mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
        if special is not None:
            names = {each: devices.classes.for_resource(each) for each in resources}
            wanted = device_requests(
                pod, {each: known.metadata.name for each, known in names.items() if known}
            )
            special, mappings = with_requests(special, wanted), wanted.mappings
        claims = [
            claim if special is None or not cycle.is_special(index) else special
            for index, claim in cycle.to_allocate()
        ]
        if self._free is None:
            raise RuntimeError("no cycle has begun")
        allocator = Allocator(
            claims,
            self._free.allocated,
            self._free.pools,
            devices.classes.get,
            SELECTORS,
            self._handle.claim_writer.new_uid,
        )
        return Variant(allocator, special, mappings)


def _one_device(class_name: str) -> ResourceClaim:
    """Return a claim on one device of a class."""
    wanted = ExactDeviceRequest(class_name, allocation_mode=EXACT_COUNT, count=1)
    request = DeviceRequest("ahead", exactly=wanted)
    return ResourceClaim(spec=ResourceClaimSpec(DeviceClaim((request,))))

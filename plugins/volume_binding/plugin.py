"""VolumeBinding: places pods where their volumes are or can be, and binds volumes before pods.

*Source*: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (1.36), with the feature
gates as they stand by default: StorageCapacityScoring off, VolumeAttributesClass on. For the
arguments k8s.io/kube-scheduler config/v1/types_pluginargs.go, VolumeBindingArgs (0.36) and
pkg/scheduler/apis/config/{v1/defaults.go, validation/validation_pluginargs.go}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from plugins import names
from plugins.framework.args import ArgsError, PluginArgs
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import (
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.results import (
    PROCEED,
    SKIP_FILTER,
    SKIP_PRE_BIND,
    PreFilterResult,
    PreFlight,
)
from plugins.framework.status import SKIP, SUCCESS, Status, unresolvable
from plugins.volume_binding.binding import PodVolumes
from plugins.volume_binding.free_volumes import FreeVolumesByClass
from plugins.volume_binding.hints import REGISTRATIONS
from plugins.volume_binding.pod_binding_cache import REJECTIONS, PodBindingCache
from plugins.volume_binding.pod_claims import (
    ClaimsNotReadyError,
    all_bound,
    has_claims,
    pod_claims,
)
from plugins.volume_binding.provisioning import CapacityMemory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray, NodeVerdicts

UNBOUND_IMMEDIATE: Final = PreFilterResult(
    unresolvable("pod has unbound immediate PersistentVolumeClaims")
)

_CACHE: Final = StateKey[PodBindingCache]("VolumeBinding.cache")
_VOLUMES: Final = StateKey[PodVolumes]("VolumeBinding.volumes")

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class UtilizationPoint(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A point of a score over utilization."""

    utilization: _Int32 = 0
    score: _Int32 = 0


class VolumeBindingArgs(PluginArgs, frozen=True):
    """The arguments of VolumeBinding.

    Parameters
    ----------
    bind_timeout_seconds
        Seconds from the first write until every claim must be bound; 0 does not wait.
    shape
        The shape of a score whose feature gate is off; must be absent.
    """

    bind_timeout_seconds: _Int64 = 600
    shape: tuple[UtilizationPoint, ...] | None = None

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        if self.bind_timeout_seconds < 0:
            why = f"must be at least 0, not {self.bind_timeout_seconds}"
            yield ArgsError("bindTimeoutSeconds", why)
        if self.shape is not None:
            why = "is only known with the feature gate StorageCapacityScoring, which is off"
            yield ArgsError("shape", why)


class VolumeBinding(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Rejects nodes that cannot reach the pod's volumes, and binds claims that wait for the pod.

    A pod without claims costs one pass over its volumes.
    """

    name = names.VOLUME_BINDING
    is_eased_by_removals = True
    reads_pods = False
    args_type = VolumeBindingArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        checked = VolumeBindingArgs.checked(args)
        self._bind_timeout_s = float(checked.bind_timeout_seconds)
        self._free = FreeVolumesByClass()
        self._capacities = CapacityMemory()

    # --- filtering ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Look up the pod's claims and the volumes that could be bound to them.

        Returns
        -------
        Skip for a pod without claims; a rejection when a claim is missing, has lost its volume
        or waits for another controller; else Success.

        Raises
        ------
        MalformedObjectError, ValueError
            When a class or a claim is malformed.
        """
        pod = info.pod
        if not pod.spec.volumes:
            return SKIP_FILTER
        storage = self.handle.storage
        try:
            if not has_claims(pod, storage):
                return SKIP_FILTER
        except ClaimsNotReadyError as error:
            return PreFilterResult(unresolvable(str(error)))
        claims = pod_claims(pod, storage)
        if claims.immediate:
            return UNBOUND_IMMEDIATE
        cache = PodBindingCache(claims, storage, self._free, self._capacities, nodes, state.budget)
        state.write(_CACHE, cache)
        return PROCEED

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view, by the labels of the nodes alone."""
        return state.read(_CACHE).verdicts(nodes)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        code = state.read(_CACHE).decision(node_info).code
        return REJECTIONS[code - 1] if code else SUCCESS

    # --- scoring ------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Return Skip: volumes are only scored with a feature gate that is off."""
        return SKIP

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return 0 for each node."""
        return np.zeros(len(nodes), dtype=np.int64)

    # --- binding ------------------------------------------------------------------------------

    def reserve(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Assume the decided bindings and provisions on the node.

        Raises
        ------
        AssumeError
            When a claim or a volume has changed since the decision.
        """
        cache = state.get(_CACHE)
        decision = None if cache is None else cache.decision_for(node_name)
        storage = self.handle.storage
        if decision is None or all_bound(info.pod, storage):
            return SUCCESS
        volumes = PodVolumes(storage, node_name)
        volumes.assume(decision)
        state.write(_VOLUMES, volumes)
        return SUCCESS

    def unreserve(self, state: CycleState, info: PodInfo, node_name: str) -> None:
        """Revert the assumptions of :meth:`reserve` that were not written."""
        volumes = state.get(_VOLUMES)
        if volumes is not None:
            volumes.revert()

    def pre_bind_pre_flight(self, state: CycleState, info: PodInfo, node_name: str) -> PreFlight:
        """Return Skip unless a claim has to be bound; other plugins may run meanwhile."""
        if state.get(_VOLUMES) is None:
            return SKIP_PRE_BIND
        return PreFlight(allow_parallel=True)

    async def pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Write the assumed changes and wait until every claim is bound.

        Raises
        ------
        VolumeBindingError
            When binding has become impossible, or takes longer than the arguments allow; the pod is
            then scheduled again from the start.
        """
        volumes = state.get(_VOLUMES)
        if volumes is not None:
            await volumes.bind(self.handle, info, self._bind_timeout_s)
        return SUCCESS

    # --- waking up ----------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: changes of nodes, claims, volumes, classes and drivers."""
        return REGISTRATIONS

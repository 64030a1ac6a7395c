"""Pods that a kubelet rejected, and the nodes that their replacements should avoid.

A kubelet checks a pod again before it runs it, and knows more than the API: allocated devices, the
NUMA nodes of its CPUs, its static pods. A pod that it rejects has failed for good. Its controller
creates another one, which would be placed on the same node and rejected again, as fast as the
controller, the scheduler and the kubelet work. Pods without a controller are successors of those
of their namespace that have the same containers: workflow engines create such pods.

Where no other node is feasible, one successor goes after a pause. The others wait for what the
kubelet says of it: if nothing comes within another pause, two go, then four, and so on.

*Source*: pkg/kubelet/lifecycle/predicate.go and handlers.go, pkg/kubelet/cm (1.36).
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec.structs import replace

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.locks import MakeLock
    from cache.objects import Pod
    from scheduler.api_writes.event_recorder import EventRecorder
    from scheduler.metrics import Metrics

AVOID_S: Final = 30.0
MAX_AVOID_S: Final = 600.0
"""For how long a node is avoided after a first rejection; twice as long after each further one, up
to the maximum."""

PAUSE_S: Final = 2.0
MAX_PAUSE_S: Final = 60.0
"""The same for successors that have no other node: so long they wait before the first of them goes
there, and again after it, until the kubelet has had time to reject it."""

MAX_REMEMBERED: Final = 4096
"""Pairs of a family of pods and a node. Beyond it those that are over are forgotten, and if that
does not help all of them."""

_OUT_OF: Final = frozenset({"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods"})
_REASONS: Final = _OUT_OF | {
    "AppArmor",
    "EmptyPodSharedPoolError",
    "InitContainerRestartPolicyForbidden",
    "InvalidNodeInfo",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeShutdown",
    "PodLevelResourcesNotSupported",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "SMTAlignmentError",
    "SupplementalGroupsPolicyNotSupported",
    "TaintToleration",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
    "UnexpectedPredicateFailureType",
    "UnknownReason",
}

_TEMPLATE: Final = "template:"
"""No UID begins like this."""

_NOWHERE: Final[Mapping[str, float]] = {}

log = structlog.get_logger(__name__)


class _Rejection(Value, frozen=True):
    """The number of times a node has rejected pods of one owner, and the end of its avoidance.

    Attributes
    ----------
    pause_s
        The length of each pause.
    wave
        The number of pods that may go there between the present pause and the next one.
    gone
        The number of them that have gone.
    """

    count: int
    avoided_until_s: float
    forgotten_s: float
    pause_s: float
    paused_until_s: float
    wave: int = 1
    gone: int = 0

    def after_one_more(self, now_s: float) -> _Rejection:
        """Return what holds after one more pod has gone there without being rejected yet."""
        if self.gone + 1 < self.wave:
            return replace(self, gone=self.gone + 1)
        paused_until_s = max(now_s, self.paused_until_s) + self.pause_s
        return replace(self, gone=0, wave=2 * self.wave, paused_until_s=paused_until_s)


_NEVER: Final[Mapping[str, _Rejection]] = {}


class KubeletRejections:
    """Count and report rejections, and return the nodes that an owner's pods should avoid.

    Parameters
    ----------
    clock
        Seconds of a monotonic clock.
    make_lock
        Creates the lock.

    Notes
    -----
    *Concurrency*: :meth:`see` on the I/O loop, :meth:`count_assumed` on the scheduling thread,
    :meth:`avoided` from any thread.
    """

    def __init__(
        self,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
        make_lock: MakeLock = threading.Lock,
    ) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        # Family of pods to nodes; what is in it is replaced, never changed.
        self._by_family: dict[str, Mapping[str, _Rejection]] = {}
        self._has_templates = False
        self._size = 0
        self._lock = make_lock()  # for those who replace what is in it

    def see(self, pod: Pod) -> None:
        """Count a terminated pod of our profiles if a kubelet rejected it."""
        reason = _rejection(pod)
        if not reason:
            return
        metadata, node_name = pod.metadata, pod.spec.node_name
        self._metrics.kubelet_rejected(reason)
        log.warning(
            "pod was rejected by its kubelet",
            pod=f"{metadata.namespace}/{metadata.name}",
            node=node_name,
            reason=pod.status.reason,
        )
        note = f"Node {node_name} rejected the pod ({pod.status.reason})"
        self._recorder.event(pod, "Warning", "RejectedByNode", "Scheduling", note)
        family = _controller(pod)
        if not family:
            family, self._has_templates = _template(pod), True
        with self._lock:
            self._remember(family, node_name)

    def count_assumed(self, pod: Pod, node_name: str) -> None:
        """Count a pod that was assumed on a node, in case that node rejected others of its family.

        *Cost*: as :meth:`avoided`.
        """
        if not self._by_family:
            return
        family = self._family(pod)
        with self._lock:
            rejections = self._by_family.get(family, _NEVER)
            if node_name in rejections:
                after = rejections[node_name].after_one_more(self._clock())
                self._by_family[family] = {**rejections, node_name: after}

    def avoided(self, pod: Pod) -> Mapping[str, float]:
        """Return the nodes that a pod should avoid, each with the seconds of its pause.

        It is to wait for so long where no other node will do; 0 when the pause is over. *Cost*: a
        comparison, as long as no pod was rejected. While one without a controller is remembered,
        proportional to the containers of another one.
        """
        if not self._by_family:
            return _NOWHERE
        rejections = self._by_family.get(self._family(pod))
        if rejections is None:
            return _NOWHERE
        now_s = self._clock()
        return {
            name: max(each.paused_until_s - now_s, 0.0)
            for name, each in rejections.items()
            if now_s < each.avoided_until_s
        }

    def _family(self, pod: Pod) -> str:
        """Return what stands for the pod's family; empty where no pod of its kind was rejected."""
        family = _controller(pod)
        return family or (_template(pod) if self._has_templates else "")

    def _remember(self, family: str, node_name: str) -> None:
        now_s = self._clock()
        if self._size >= MAX_REMEMBERED:
            self._forget(now_s)
        before = self._by_family.get(family, {})
        count = before[node_name].count + 1 if node_name in before else 1
        growth = 2.0 ** min(count - 1, 16)
        avoided_s = min(AVOID_S * growth, MAX_AVOID_S)
        pause_s = min(PAUSE_S * growth, MAX_PAUSE_S)
        rejection = _Rejection(
            count,
            now_s + avoided_s,
            # Whoever rejects again soon after has not been avoided for long enough.
            now_s + avoided_s + MAX_AVOID_S,
            pause_s,
            now_s + pause_s,
        )
        self._size += node_name not in before
        self._by_family[family] = {**before, node_name: rejection}

    def _forget(self, now_s: float) -> None:
        kept: dict[str, Mapping[str, _Rejection]] = {}
        for family, rejections in self._by_family.items():
            left = {name: each for name, each in rejections.items() if now_s < each.forgotten_s}
            if left:
                kept[family] = left
        self._size = sum(len(each) for each in kept.values())
        if self._size >= MAX_REMEMBERED:
            kept, self._size = {}, 0
        self._by_family = kept
        self._has_templates = any(family.startswith(_TEMPLATE) for family in kept)


def _rejection(pod: Pod) -> str:
    """Return why a kubelet rejected a pod, out of a bounded number of reasons; or nothing."""
    reason = pod.status.reason
    if pod.status.phase != "Failed" or not pod.spec.node_name:
        return ""
    if reason in _REASONS:
        return reason
    return "OutOfExtendedResource" if reason.startswith("OutOf") else ""


def _controller(pod: Pod) -> str:
    """Return the UID of the pod's controller; empty where there is none."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return owner.uid
    return ""


def _template(pod: Pod) -> str:
    """Return what stands for the pods of a namespace with the same containers.

    Other fields differ from pod to pod, such as the volume with its token.
    """
    spec = pod.spec
    told = msgspec.json.encode((pod.metadata.namespace, spec.init_containers, spec.containers))
    return _TEMPLATE + hashlib.blake2b(told, digest_size=16).hexdigest()

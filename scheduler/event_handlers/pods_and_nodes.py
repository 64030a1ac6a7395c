"""Apply changes of pods and nodes: decide whether a pod is assigned, ours and pending, or foreign.

Only this module makes that decision. A pod is in one of three states: *assigned* (it uses a node),
*ours* (it is pending for one of our profiles), *foreign* (of another scheduler, ended, or deleted).
A change from one state to another is applied as a removal from one and an addition to the other.

*Source*: pkg/scheduler/eventhandlers.go (1.36).
"""

from __future__ import annotations

from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from cache.node_info import NodeInfo
from cache.pod_info import PodInfo, is_terminal, on_node, readable_info
from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    Action,
    Resource,
    update_events,
)
from scheduler.informers import Delta, DeltaKind
from scheduler.queueing import QueueState
from scheduler.queueing.pod_changes import pod_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.objects import Node, Pod
    from cache.pod_groups import PodGroups
    from scheduler.event_handlers.pods_elsewhere import PodsElsewhere
    from scheduler.metrics import Metrics
    from scheduler.pools.ownership import Ownership
    from scheduler.runtime.known_pods import KnownPods
    from scheduler.runtime.profile_map import Profiles

_RESIZE_CONDITIONS = frozenset({"PodResizePending", "PodResizeInProgress"})

log = structlog.get_logger(__name__)


class OnForeign(Protocol):
    """Receives pods that others placed."""

    def __call__(self, info: PodInfo, *, is_choice: bool, was_pending: bool) -> None:
        """Take note of a pod."""
        ...


class Land(Enum):
    """Where a pod belongs."""

    ASSIGNED = "assigned"
    OURS = "ours"
    FOREIGN = "foreign"

    __hash__ = object.__hash__
    """Enum's own is a Python function, and every event looks its pod's land up."""


_ARRIVED = {Land.ASSIGNED: ASSIGNED_POD_ADD.label, Land.OURS: UNSCHEDULED_POD_ADD.label}
_UPDATED = {Land.ASSIGNED: "AssignedPodUpdate", Land.OURS: UNSCHEDULED_POD_UPDATE.label}
_LEFT = {Land.ASSIGNED: ASSIGNED_POD_DELETE.label, Land.OURS: "UnschedulablePodDelete"}


class EventHandlers:
    """Carries changes of pods and nodes into the cache and the queue.

    Parameters
    ----------
    pod_groups
        Receives each change of a pod before the cache and the queue do: whether a pod can be
        queued depends on the other members of its group.
    on_ended
        Receives each pod of ours that ends.
    on_foreign
        Receives each pod that has a node now which we did not place there, whether another
        scheduler may have chosen it, and whether the watch has shown the pod without a node before.
        The cache counts the pod already.
    elsewhere
        Keeps the pods on unknown nodes; None where all nodes are known, and where a pod on an
        unknown one has arrived before its node.
    ownership
        Decides which pending pods are this pool's; None where all are.

    Notes
    -----
    *Concurrency*: called from the I/O loop, one batch after another.

    *Cost*: this is the price of a watch event besides decoding it: keep it within microseconds.
    """

    def __init__(
        self,
        pods: KnownPods,
        pod_groups: PodGroups,
        profiles: Profiles,
        metrics: Metrics,
        on_ended: Callable[[Pod], object] = is_terminal,
        on_foreign: OnForeign | None = None,
        elsewhere: PodsElsewhere | None = None,
        ownership: Ownership | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._ownership = ownership
        self._on_foreign = on_foreign
        self._on_ended = on_ended
        self._pod_groups = pod_groups
        self._cache = pods.cache
        self._queue = pods.queue
        self._waiting_pods = pods.waiting
        self._profiles = profiles
        self._metrics = metrics
        self._unreadable: dict[str, set[str]] = {"pods": set(), "nodes": set()}

    def land(self, pod: Pod | None) -> Land:
        """Tell where a pod belongs; an absent one is foreign."""
        if pod is None or is_terminal(pod):
            return Land.FOREIGN
        if pod.spec.node_name:
            return Land.ASSIGNED
        if not self._profiles.is_ours(pod):
            return Land.FOREIGN
        ownership = self._ownership
        return Land.OURS if ownership is None or ownership.owns(pod) else Land.FOREIGN

    def is_elsewhere(self, pod: Pod) -> bool:
        """Return whether a pod is on a node of another pool."""
        return self._elsewhere is not None and pod in self._elsewhere

    def elsewhere(self) -> float:
        """Return how many pods are on nodes of other pools. *Cost*: the number of these nodes."""
        return 0.0 if self._elsewhere is None else float(len(self._elsewhere))

    def unreadable(self) -> dict[str, float]:
        """Return how many objects of each resource cannot be read as they are now."""
        return {resource: float(len(uids)) for resource, uids in self._unreadable.items()}

    def on_pods(self, deltas: Sequence[Delta[Pod]]) -> None:
        """Take in changes of pods."""
        for delta in deltas:
            started = perf_counter()
            try:
                event = self._pod_changed(delta.old, delta.new)
                if event:
                    self._metrics.handled(event, perf_counter() - started)
            except MalformedObjectError as error:
                self._malformed("pods", delta.new, error, "pod cannot be decoded and is not queued")

    def on_nodes(self, deltas: Sequence[Delta[Node]]) -> None:
        """Take in changes of nodes."""
        for delta in deltas:
            started = perf_counter()
            try:
                event = self._node_changed(delta.old, delta.new)
                if event:
                    self._metrics.handled(event, perf_counter() - started)
            except MalformedObjectError as error:
                note = "node cannot be decoded, keeping the last readable version"
                self._malformed("nodes", delta.new, error, note)

    def _malformed(
        self, resource: str, obj: Pod | Node | None, error: MalformedObjectError, note: str
    ) -> None:
        self._metrics.malformed(resource)
        name = ""
        if obj is not None:
            namespace = getattr(obj.metadata, "namespace", "")
            name = f"{namespace}/{obj.metadata.name}" if namespace else obj.metadata.name
            self._unreadable[resource].add(obj.metadata.uid)
        log.warning(note, resource=resource, object=name, error=str(error))

    def take_in(self, pods: Iterable[Pod], scheduler_names: frozenset[str]) -> int:
        """Queue the pods that wait for profiles which have not been ours until now.

        Parameters
        ----------
        pods
            All that the watch knows.
        scheduler_names
            The profiles.

        Returns
        -------
        How many there were.
        """
        found = 0
        for pod in pods:
            if pod.spec.scheduler_name not in scheduler_names or self.land(pod) is not Land.OURS:
                continue
            try:
                info = PodInfo(pod)
            except MalformedObjectError as error:
                self._metrics.malformed("pods")
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                log.warning("pod cannot be decoded and is not queued", pod=name, error=str(error))
                continue
            if not self._cache.is_assumed_pod(info.uid):
                self._queue.add(info)
                found += 1
        return found

    def is_lost(self, pod: Pod) -> bool:
        """Tell whether a pod waits for us, and neither the queue nor the cache knows of it."""
        uid = pod.metadata.uid
        # First the queue: a pod in flight is in the cache before it leaves.
        return (
            self.land(pod) is Land.OURS
            and self._queue.state_of(uid) is QueueState.NOWHERE
            and not self._cache.is_placed_pod(uid)
            and uid not in self._unreadable["pods"]
        )

    def requeue(self, pod: Pod) -> None:
        """Queue a pod that was lost, as if the watch had just shown it."""
        self.on_pods([Delta(DeltaKind.ADDED, None, pod)])

    # --- pods ---------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> str:
        """Take in a change; return the label of what happened, or the empty string."""
        self._pod_groups.pod_changed(old, new)
        if self._unreadable["pods"]:
            subject = new if new is not None else old
            self._unreadable["pods"].discard("" if subject is None else subject.metadata.uid)
        if self._elsewhere is not None:
            old, new = self._elsewhere.sort_out(old, new)
        was, now = self.land(old), self.land(new)
        if self._ownership is not None:
            self._ownership.saw(old, new)
        if new is None or (now is Land.FOREIGN and is_terminal(new)):
            # Once: a pod that has ended was in one of our lands before, and is in none from here.
            if new is not None and was is not Land.FOREIGN and self._profiles.is_ours(new):
                self._on_ended(new)
            return self._left(old if old is not None else new, was)
        if was is now:
            if now is Land.ASSIGNED:
                self._assigned_updated(old, self._read(new))
            elif now is Land.OURS and old is not None:
                self._waiting_updated(old, PodInfo(new))
            return _UPDATED.get(now, "")
        if was is Land.ASSIGNED and old is not None:
            self._unassigned(old)
        elif was is Land.OURS and old is not None:
            nominated = self._nominated_node(old)
            self._queue.delete(old.metadata.uid)
            if now is Land.ASSIGNED:
                self._bound(old, self._read(new), nominated)
                return _ARRIVED[now]
            if not self._given_up(old) and nominated:
                self._left_nomination(old, nominated)
        if now is Land.ASSIGNED:
            self._bound_by_others(old, self._read(new))
        elif now is Land.OURS:
            self._queue.add(PodInfo(new))
        return _ARRIVED.get(now) or _LEFT.get(was, "")

    def _left(self, pod: Pod | None, was: Land) -> str:
        """Take in that a pod is gone or has ended: whatever it holds, it holds no longer.

        By its UID alone, whatever the cache and the watch make of its state: the reaper may have
        confirmed a pod that the watch has never shown with a node, and a last version that cannot
        be read leaves as well.
        """
        if pod is None:
            return ""
        nominated = ""
        if was is Land.OURS:
            nominated = self._nominated_node(pod)
            self._queue.delete(pod.metadata.uid)
        if not self._given_up(pod) and nominated:
            self._left_nomination(pod, nominated)
        return _LEFT.get(was, "")

    def _read(self, pod: Pod) -> PodInfo:
        """Return the facts of an assigned pod, which holds room even if it cannot be read.

        What was known of it before stands, on the node that it has now. Where nothing was, amounts
        that cannot be read count as all that there can be: the node is not chosen for their sake.
        """
        try:
            return PodInfo(pod)
        except MalformedObjectError as error:
            known = self._cache.get_pod(pod.metadata.uid)
            note = "pod cannot be read and counts as it was known"
            if known is None:
                note = "pod cannot be read and counts as if it held all of its node"
            self._malformed("pods", pod, error, note)
        if known is None:
            return readable_info(pod)
        spec = msgspec.structs.replace(known.pod.spec, node_name=pod.spec.node_name)
        return PodInfo(msgspec.structs.replace(known.pod, metadata=pod.metadata, spec=spec))

    def _assigned(self, info: PodInfo) -> None:
        self._cache.add_pod(info)
        self._queue.move_all(ASSIGNED_POD_ADD, None, info.pod)

    def _bound_by_others(self, old: Pod | None, info: PodInfo) -> None:
        """Take in an assigned pod that did not wait for us, as all are when a watch begins."""
        is_news = self._on_foreign is not None and not self._cache.is_placed_pod(info.uid)
        self._assigned(info)
        if is_news and self._on_foreign is not None:
            was_pending = old is not None and not old.spec.node_name
            is_choice = not self._profiles.is_ours(info.pod)
            self._on_foreign(info, is_choice=is_choice, was_pending=was_pending)

    def _bound(self, old: Pod, info: PodInfo, nominated: str) -> None:
        """Take in that a pod which waited for us is bound, by us or behind our back.

        # Differs: kube-scheduler tells nobody of the room that is free on another node then
        (kubernetes/kubernetes#134859), and lets a Permit plugin hold the pod until its time is up.
        """
        assumed = self._cache.assumed_node(info.uid)
        is_ours = assumed == info.node_name or self._cache.is_placed_pod(info.uid)
        self._assigned(info)
        if self._on_foreign is not None and (not is_ours or assumed not in (None, info.node_name)):
            self._on_foreign(info, is_choice=False, was_pending=True)
        if assumed is not None and assumed != info.node_name:
            waiting = self._waiting_pods.get(info.uid)
            if waiting is not None:
                waiting.reject("", "bound elsewhere")
            self._queue.move_all(ASSIGNED_POD_DELETE, on_node(old, assumed), None)
        elif nominated and nominated != info.node_name:
            self._left_nomination(old, nominated)

    def _assigned_updated(self, old: Pod | None, info: PodInfo) -> None:
        if not self._cache.update_pod(info):
            self._cache.add_pod(info)
        if old is not None:
            for event in update_events(Resource.ASSIGNED_POD, pod_update(old, info)):
                self._queue.move_all(event, old, info.pod)

    def _unassigned(self, old: Pod) -> bool:
        """Free what a pod holds, if it holds anything; return whether it did."""
        left = self._cache.remove_uid(old.metadata.uid)
        if left is None:
            return False
        self._queue.move_all(ASSIGNED_POD_DELETE, on_node(left.info.pod, left.node_name), None)
        self._wake_nominated(left.node_name)
        return True

    def _wake_nominated(self, node_name: str) -> None:
        """Try the pods again that are nominated for a node on which a pod has ended.

        Their hints would not wake them if the node has no room for them any more, and until their
        next attempt their nominations keep others out.
        """
        nominated = self._queue.nominator.nominated_pods_for_node(node_name)
        refused = [
            info.uid
            for info in nominated
            if self._queue.state_of(info.uid) is QueueState.UNSCHEDULABLE
        ]
        if refused:
            self._queue.activate(refused, after_backoff=True)

    def _waiting_updated(self, old: Pod, info: PodInfo) -> None:
        """Take in an update of a pod that waits for us, by all that the watch has shown."""
        if self._cache.is_placed_pod(info.uid):
            # One that the reaper has confirmed meanwhile runs, and keeps its room until it ends.
            asked_to_go = info.is_terminating and old.metadata.deletion_timestamp is None
            if asked_to_go and self._cache.is_assumed_pod(info.uid):
                self._given_up(old)
            return
        self._queue.update(old, info)
        told = old.status.nominated_node_name
        if told and told != info.pod.status.nominated_node_name:
            self._left_nomination(old, told)

    def _given_up(self, old: Pod) -> bool:
        """Free whatever a pod holds that is gone, or going, and return whether it held anything."""
        waiting = self._waiting_pods.get(old.metadata.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        return self._unassigned(old)

    def _nominated_node(self, pod: Pod) -> str:
        """Return the node that a pod counts on; it does so before the API has heard of it."""
        return self._queue.nominator.node_of(pod.metadata.uid) or pod.status.nominated_node_name

    def give_up_room(self, info: PodInfo) -> bool:
        """Take the nomination of a waiting pod away, and wake those that it kept out.

        Returns whether there was one.
        """
        node_name = self._queue.nominator.node_of(info.uid)
        if not node_name:
            return False
        self._queue.nominator.delete(info.uid)
        self._left_nomination(info.pod, node_name)
        return True

    def _left_nomination(self, old: Pod, node_name: str) -> None:
        """Wake those for whom a pod counted on the node it was nominated for."""
        priority = old.spec.priority or 0
        # Hints take a pod for one that used nothing unless it shows a node of either kind.
        left = old if old.status.nominated_node_name else on_node(old, node_name)
        self._queue.move_all(
            ASSIGNED_POD_DELETE, left, None, lambda pod: (pod.spec.priority or 0) <= priority
        )

    # --- nodes --------------------------------------------------------------------------------

    def _node_changed(self, old: Node | None, new: Node | None) -> str:
        """Take in a change; return the label of what happened, or the empty string."""
        if self._unreadable["nodes"]:
            subject = new if new is not None else old
            self._unreadable["nodes"].discard("" if subject is None else subject.metadata.uid)
        if new is None:
            if old is not None and self._cache.remove_node(old.metadata.name):
                self._set_aside(old.metadata.name)
                self._queue.move_all(NODE_DELETE, old, None)
            return NODE_DELETE.label
        self._count_pods_on(new)
        if old is None or old.metadata.uid != new.metadata.uid:
            self._cache.add_node(new)
            self._queue.move_all(NODE_ADD, None, new)
            return NODE_ADD.label
        self._cache.update_node(new)
        events = update_events(Resource.NODE, node_update(old, new))
        for event in events:
            self._queue.move_all(event, old, new)
        return events[0].label if events else ""

    def _count_pods_on(self, node: Node) -> None:
        """Count the pods of a node that enters the pool, before any decision can take the node."""
        name = node.metadata.name
        if self._elsewhere is None or self._elsewhere.knows(name):
            return
        NodeInfo(name).set_node(node)  # one that cannot be read does not enter
        for pod in self._elsewhere.node_entered(name):
            self._cache.add_pod(self._read(pod))

    def _set_aside(self, name: str) -> None:
        """Take the pods of a node that has left the pool out of the cache.

        One that is assumed stays until its binding has ended.
        """
        if self._elsewhere is None:
            return
        self._elsewhere.node_left(name)
        left = self._cache.node_info(name)
        for info in [] if left is None else list(left.pods.values()):
            if not self._cache.is_assumed_pod(info.uid):
                self._cache.remove_uid(info.uid)
                self._elsewhere.keep(info.pod)


def node_update(old: Node, new: Node) -> Action:
    """Return what of a node changed that may make a pod schedulable.

    A node that is cordoned is no news to anybody; one that is uncordoned counts as one whose
    taints changed. Only annotations that are kept count.

    *Source*: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36).
    """
    action = Action(0)
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if uncordoned or old.spec.taints != new.spec.taints:
        action |= Action.UPDATE_NODE_TAINT
    if old.status.allocatable != new.status.allocatable:
        action |= Action.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        action |= Action.UPDATE_NODE_LABEL
    if old.metadata.annotations != new.metadata.annotations:
        action |= Action.UPDATE_NODE_ANNOTATION
    if _statuses(old) != _statuses(new):
        action |= Action.UPDATE_NODE_CONDITION
    if old.status.declared_features != new.status.declared_features:
        action |= Action.UPDATE_NODE_DECLARED_FEATURE
    return action


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def pod_update(old: Pod, new: PodInfo) -> Action:
    """Return what of an assigned pod changed that may make another pod schedulable.

    # Differs: in kube-scheduler each report of a kubelet is an event too, for those who want to
    hear of every update of every pod.
    """
    # Kubelets report all the time, and hardly ever what a pod holds: most of it is settled here.
    if old.spec == new.pod.spec and _held(old) == _held(new.pod):
        labels = old.metadata.labels != new.pod.metadata.labels
        return Action.UPDATE_POD_LABEL if labels else Action(0)
    return pod_changes(readable_info(old), new)


def _held(pod: Pod) -> tuple[object, ...]:
    """Return what of a pod's status counts when its requests are summed up."""
    status = pod.status
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.allocated_resources,
        status.resources,
        [each for each in status.conditions if each.type in _RESIZE_CONDITIONS],
    )

"""The cluster of the other policy: it follows the records, but for the pods that were decided.

Nodes, other objects and the pods of others come and go as recorded. A pod that the journal has a
decision about is where the other policy put it, from then on until the journal says that it is
gone; what the records say about its node, its volumes and its devices is translated or left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.device_objects import ResourceClaim
from cache.pod_info import on_node, readable_info
from plugins.framework.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
    Resource,
    update_events,
)
from scheduler.event_handlers.pods_and_nodes import node_update, pod_update
from scheduler.journal.replayed_state import ReplayedState, group_key_of
from scheduler.kinds import WATCHED
from scheduler.policy_replay.fates import NOWHERE, Fate, Placing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo

ZONE: Final = "topology.kubernetes.io/zone"

_EVENT_OF: Final = {kind.struct: kind.event for kind in WATCHED if kind.event is not None}


def zone_of(nodes: dict[str, Node], name: str) -> str:
    """Return the zone that a node's label names; empty if it has none."""
    node = nodes.get(name)
    return "" if node is None else node.metadata.labels.get(ZONE, "")


class OtherWorld(ReplayedState):
    """A cluster that follows the records of one file, and the placements of the other policy.

    Parameters
    ----------
    fates
        The pods with decisions by UID; they outlast the files.
    evicted
        The UIDs of the pods that the other policy has evicted, and that still exist in the journal.
    on_end
        Receives each of these pods when the journal says that it is gone.

    Attributes
    ----------
    now_s
        The replayed time, in seconds since the epoch.
    hear
        Receives the cluster events, for those who wait.
    on_bound
        Receives each pod that got its node without a decision.
    leaving
        The UIDs of victims that the other policy has chosen as they were chosen then, and that are
        not shown to be leaving yet: they leave as recorded.
    """

    def __init__(
        self, fates: dict[str, Fate], evicted: set[str], on_end: Callable[[Fate], object]
    ) -> None:
        super().__init__()
        self.fates = fates
        self.evicted = evicted
        self.now_s = 0.0
        self.leaving: dict[str, None] = {}
        self.evictions_as_then: set[tuple[str, ...]] = set()
        self.hear: Callable[[ClusterEvent, object, object], object] = lambda *_: None
        self.on_bound: Callable[[Fate], object] = lambda _: None
        self._on_end = on_end
        self._checkpoint: set[str] | None = set()
        self._flights: dict[str, tuple[str, ResourceClaim]] = {}
        """The claims whose devices placements use, with the UIDs of their pods."""
        self._claims_of: dict[str, list[str]] = {}
        """The UIDs of these claims by that of the pod."""
        self._is_first = True
        self._reserved: dict[str, ResourceClaim] = {}
        claims = self.cluster.known.devices.claims
        self._begin_flight = claims.begin_flight
        claims.begin_flight = self._reserve  # type: ignore[method-assign]
        self._appliers |= {
            "assume": self._assume,
            "add": self._add,
            "update": self._update,
            "node_gone": self._node_gone,
            "not_nominated": self._nominate_no_more,
            "remove": self._gone,
            "expire": self._forget,
        }

    # --- the beginning of a file --------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether the checkpoint that the file begins with has been read."""
        return self._checkpoint is None

    def _cut(self, names: Sequence[str], more: str) -> None:
        """End the checkpoint: pods that it does not have are gone, unless they waited then."""
        seen, self._checkpoint = self._checkpoint or set(), None
        for fate in list(self.fates.values()):
            if fate.uid in seen:
                pass
            elif fate.then.is_placed:
                self._gone(fate.uid)
                continue
            elif fate.now.is_placed and not fate.is_evicted:
                self.assume(fate)
            if fate.nominated:
                self.cluster.nominator.add(self.info_now(fate), fate.nominated)
        super()._cut(names, more)

    def go_on_from(self, before: OtherWorld) -> None:
        """Take over what the records of another file do not tell."""
        self._is_first = False
        self.now_s, self.leaving = before.now_s, before.leaving
        self.evictions_as_then = before.evictions_as_then
        self._flights, self._claims_of = before._flights, before._claims_of
        for _, claim in self._flights.values():
            self._begin_flight(claim)

    # --- pods ---------------------------------------------------------------------------------

    def info_now(self, fate: Fate) -> PodInfo:
        """Return a pod without a node, with the nomination that it has in this cluster."""
        pod = fate.pod
        if fate.nominated != fate.nominated_then:
            status = msgspec.structs.replace(pod.status, nominated_node_name=fate.nominated)
            pod = msgspec.structs.replace(pod, status=status)
            return readable_info(pod)
        return self.info_of(pod)

    def assume(self, fate: Fate) -> None:
        """Count a pod on its node, as an assumed pod."""
        info = self.info_now(fate)
        self.cluster.cache.assume_pod(info, fate.now.node_name)
        groups = self.cluster.known.pod_groups
        key = groups.key_of(info.pod) if groups.has_any else None
        if key is not None:
            groups.assume(key, (fate.uid,))

    def place(self, fate: Fate, node_name: str, now_s: float) -> None:
        """Give a pod its node by the other policy."""
        fate.now = Placing(node_name, zone_of(self.cluster.nodes, node_name), now_s)
        self.assume(fate)
        fate.nominated = ""
        self.cluster.nominator.delete(fate.uid)
        self.hear(ASSIGNED_POD_ADD, None, on_node(fate.pod, node_name))

    def displace(self, fate: Fate) -> None:
        """Take a pod off its node: it waits again."""
        fate.now = NOWHERE
        self._leave(fate.uid)
        groups = self.cluster.known.pod_groups
        key = groups.key_of(fate.pod) if groups.has_any else None
        if key is not None:
            groups.forget_all(key, (fate.uid,))

    def evict(self, victims: Iterable[PodInfo]) -> None:
        """Let the victims of a preemption leave at once."""
        for victim in victims:
            uid, fate = victim.uid, self.fates.get(victim.uid)
            self.evicted.add(uid)
            if fate is not None:
                fate.is_evicted = True
            self.cluster.nominator.delete(uid)
            self.cluster.known.pod_groups.pod_changed(victim.pod, None)
            self._leave(uid)

    def _leave(self, uid: str) -> None:
        left = self.cluster.cache.remove_uid(uid)
        claims = self.cluster.known.devices.claims
        for claim_uid in self._claims_of.pop(uid, ()):
            if self._flights.pop(claim_uid, None) is not None:
                claims.end_flight(claim_uid)
        if left is not None:
            self.hear(ASSIGNED_POD_DELETE, on_node(left.info.pod, left.node_name), None)

    def version_here(self, pod: Pod) -> Pod:
        """Return a version of a pod as it would be in this cluster."""
        fate = self.fates.get(pod.metadata.uid)
        if fate is None:
            return pod
        if pod.spec.node_name == fate.now.node_name:
            return pod
        return on_node(pod, fate.now.node_name)

    def _assume(self, number: int, node_name: str) -> None:
        info = self.info(number)
        fate = self.fates.get(info.uid)
        if self._checkpoint is None:
            if fate is None:  # of a profile that the other configuration does not have
                self.cluster.cache.assume_pod(info, node_name)
            return
        self._checkpoint.add(info.uid)
        if info.uid in self.evicted:
            return
        if fate is None:
            self.cluster.cache.assume_pod(info, node_name)
        elif fate.now.is_placed:
            self.assume(fate)

    def _add(self, number: int, _: str) -> None:
        info = self._shown(number)
        if info is not None:
            is_new = not self.cluster.cache.is_placed_pod(info.uid)
            self.cluster.cache.add_pod(info)
            if is_new:
                self.hear(ASSIGNED_POD_ADD, None, info.pod)

    def _update(self, number: int, _: str) -> None:
        info = self._shown(number)
        known = None if info is None else self.cluster.cache.get_pod(info.uid)
        if info is not None and known is not None:
            self.cluster.cache.update_pod(info)
            for event in update_events(Resource.ASSIGNED_POD, pod_update(known.pod, info)):
                self.hear(event, known.pod, info.pod)

    def _shown(self, number: int) -> PodInfo | None:
        """Take note of a pod that has a node then; return it as it is here, None without a node."""
        pod = self.decoder.pod(number)
        uid = pod.metadata.uid
        fate = self.fates.get(uid)
        if self._checkpoint is not None:
            self._checkpoint.add(uid)
        if pod.metadata.deletion_timestamp is not None:
            self.leaving.pop(uid, None)
        if uid in self.evicted:
            return None
        if fate is not None:
            fate.pod, fate.is_bound_then = on_node(pod, ""), True
            if fate.then.node_name != pod.spec.node_name:
                self._bound_unawares(fate, pod.spec.node_name)
            if not fate.now.is_placed:
                return None
        return self.info_of(self.version_here(pod))

    def _bound_unawares(self, fate: Fate, node_name: str) -> None:
        """Take note that a pod was bound otherwise than the last decision about it says.

        Either a binding that was taken for failed took effect, or another scheduler bound the pod:
        then it is on that node in both clusters.
        """
        then, now = fate.lost
        if then.node_name != node_name:
            then = now = Placing(node_name, zone_of(self.cluster.nodes, node_name), self.now_s)
            fate.now = now
        fate.then = then
        if not fate.now.is_placed:
            fate.now = now
        if fate.now.is_placed:
            self.cluster.nominator.delete(fate.uid)
            self.on_bound(fate)

    def _gone(self, uid: str) -> None:
        fate = self.fates.pop(uid, None)
        self.evicted.discard(uid)
        self.leaving.pop(uid, None)
        self._infos.pop(uid, None)
        self._leave(uid)
        if fate is not None:
            self.cluster.nominator.delete(uid)
            self._on_end(fate)

    def _forget(self, uid: str) -> None:
        """Take back a placement whose binding failed then; it is tried again when it was then."""
        fate = self.fates.get(uid)
        if fate is not None and not fate.is_bound_then and fate.then.is_placed:
            fate.lost = fate.then, fate.now
            fate.then = NOWHERE
        if not self.cluster.cache.is_assumed_pod(uid):
            return
        if fate is None:
            self._leave(uid)
        else:
            self.displace(fate)

    # --- nodes and nominations ----------------------------------------------------------------

    def _node(self, number: int) -> None:
        node: Node = self.decoder.object(number)
        info = self.cluster.cache.node_info(node.metadata.name)
        old = None if info is None else info.node
        super()._node(number)
        if old is None or old.metadata.uid != node.metadata.uid:
            self.hear(NODE_ADD, None, node)
            return
        for event in update_events(Resource.NODE, node_update(old, node)):
            self.hear(event, old, node)

    def _node_gone(self, _: None, name: str) -> None:
        info = self.cluster.cache.node_info(name)
        old = None if info is None else info.node
        if self.cluster.cache.remove_node(name):
            self.hear(NODE_DELETE, old, None)

    def _nominate(self, number: int, node_name: str) -> None:
        if self._follows_nomination(self.decoder.pod(number).metadata.uid, node_name):
            super()._nominate(number, node_name)

    def _nominate_newer(self, number: int, node_name: str) -> None:
        if self._follows_nomination(self.decoder.pod(number).metadata.uid, node_name):
            super()._nominate_newer(number, node_name)

    def _nominate_no_more(self, _: None, uid: str) -> None:
        if self._follows_nomination(uid, ""):
            self.cluster.nominator.delete(uid)

    def _follows_nomination(self, uid: str, node_name: str) -> bool:
        """Take note of a nomination; return whether it is so in this cluster as well."""
        fate = self.fates.get(uid)
        if fate is None:
            return True
        is_same = fate.nominated == fate.nominated_then
        fate.nominated_then = node_name
        if not is_same or not fate.waits or fate.then.is_placed:
            return False
        fate.nominated = node_name
        return True

    # --- all else -----------------------------------------------------------------------------

    def _object(self, verb: str, is_own: bool, old: int | None, new: int | None) -> None:
        before, after = self.decoder.object(old), self.decoder.object(new)
        subject = after if after is not None else before
        if isinstance(subject, ResourceClaim) and after is not None and self._is_elsewhere(after):
            return
        super()._object(verb, is_own, old, new)
        event = _EVENT_OF.get(type(subject))
        if event is not None:
            action = Action.ADD if before is None else Action.UPDATE
            if after is None:
                action = Action.DELETE
            self.hear(ClusterEvent(event, action, event.value), before, after)

    def _reserve(self, claim: ResourceClaim) -> None:
        self._reserved[claim.metadata.uid] = claim
        self._begin_flight(claim)

    def _is_elsewhere(self, claim: ResourceClaim) -> bool:
        """Return whether a claim's pod has other devices here than it had then."""
        flight = self._flights.get(claim.metadata.uid)
        fate = None if flight is None else self.fates.get(flight[0])
        return fate is not None and fate.now.node_name != fate.then.node_name

    def begin_attempt(self) -> None:
        """Forget the claims that earlier attempts reserved in vain."""
        self._reserved.clear()

    def keep_claims(self, fate: Fate) -> None:
        """Keep the claims of a pod whose devices were just reserved for it."""
        claims = self.cluster.known.devices.claims
        names = _claim_names(fate.pod)
        for claim in list(self._reserved.values()):
            owners = {owner.uid for owner in claim.metadata.owner_references}
            if claim.metadata.name in names or fate.uid in owners:
                uid = claim.metadata.uid
                del self._reserved[uid]
                if claims.in_flight(uid) is not None:
                    self._flights[uid] = fate.uid, claim
                    self._claims_of.setdefault(fate.uid, []).append(uid)

    def _assumed(self, verb: str, is_own: bool, part: str, number: int) -> None:
        if self._checkpoint is not None:
            super()._assumed(verb, is_own, part, number)

    def _claim(self, verb: str, is_own: bool, *arguments: Any) -> None:
        if self._checkpoint is None and verb in ("begin_flight", "stored"):
            return
        if verb == "end_flight":
            flight = self._flights.get(arguments[0])
            if flight is not None and self._is_elsewhere(flight[1]):
                return
            self._flights.pop(arguments[0], None)
        super()._claim(verb, is_own, *arguments)

    def _group(self, verb: str, _: bool, *arguments: Any) -> None:
        groups = self.cluster.known.pod_groups
        if verb == "pod_changed":
            self._member(*map(self.decoder.object, arguments))
        elif verb in ("assume", "forget_all"):
            others = [uid for uid in arguments[1] if uid not in self.fates]
            getattr(groups, verb)(group_key_of(arguments[0]), others)
        elif self._is_evicted_as_then(tuple(arguments[0])):
            getattr(groups, verb)(group_key_of(arguments[0]), *arguments[1:])

    def _is_evicted_as_then(self, key: tuple[str, ...]) -> bool:
        """Return whether a group is evicted here as well."""
        if self._checkpoint is not None and self._is_first:
            self.evictions_as_then.add(key)
        return key in self.evictions_as_then

    def _member(self, old: Pod | None, new: Pod | None) -> None:
        subject = new if new is not None else old
        if subject is None or subject.metadata.uid in self.evicted:
            return
        before = None if old is None else self.version_here(old)
        after = None if new is None else self.version_here(new)
        self.cluster.known.pod_groups.pod_changed(before, after)


def _claim_names(pod: Pod) -> set[str | None]:
    """Return the names of the claims that a pod refers to."""
    named = {each.resource_claim_name for each in pod.spec.resource_claims}
    return named | {each.resource_claim_name for each in pod.status.resource_claim_statuses}

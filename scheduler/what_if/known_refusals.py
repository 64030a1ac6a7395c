"""What was refused, so that pods that are alike are not tried in vain.

Pods of one template wait by the hundred, and every change would be a reason to try all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from plugins.framework.status import Code
from plugins.names import IN_TREE
from scheduler.pod_groups.counting import is_counting, is_fixed, is_lasting
from scheduler.pod_groups.shapes import has_claims
from scheduler.what_if.changed_cluster import UNSCHEDULABLE

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from scheduler.decision.decision import Decision
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.what_if.changed_cluster import ChangedCluster, Changes

MAX_KNOWN: Final = 10_000
"""Refusals that are kept at one time."""

pack: Final = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why pods were refused, and what must change for another try.

    Attributes
    ----------
    needs_room
        Whether only more room helps: on nodes that are not cordoned.
    is_lasting
        Whether placements of other pods do not help.
    """

    message: str
    at: Changes
    needs_room: bool
    is_lasting: bool

    def holds(self, now: Changes) -> bool:
        if self.needs_room:
            return self.at.room == now.room
        return self.at.left == now.left and (self.is_lasting or self.at.bound == now.bound)


class KnownRefusals:
    """The refusals that still hold, by what plugins can tell of the pods.

    Pods with claims, members of groups, and pods of profiles with users' plugins are always tried.

    Notes
    -----
    *Cost*: some 5 us for each pod, once anything was refused.
    """

    def __init__(self, changed: ChangedCluster) -> None:
        self._changed = changed
        self._known: dict[Hashable, _Refusal] = {}

    def get(self, framework: FrameworkRunner, info: PodInfo) -> str:
        """Return why a pod is refused, or nothing if that is not known."""
        if not self._known:
            return ""
        key = self._key(framework, info)
        refusal = None if key is None else self._known.get(key)
        if refusal is None:
            return ""
        if refusal.holds(self._changed.changes):
            return refusal.message
        del self._known[key]
        return ""

    def add(self, framework: FrameworkRunner, state: CycleState, decision: Decision) -> None:
        """Remember a refusal."""
        info = decision.info
        key = self._key(framework, info)
        if key is None or decision.status.code is Code.ERROR or len(self._known) >= MAX_KNOWN:
            return
        names = decision.diagnosis.plugins_with()
        filters = [p for p in framework.judges.filters if p.name in names]
        is_known = len(filters) == len(names)
        self._known[key] = _Refusal(
            decision.message(),
            replace(self._changed.changes),
            is_known
            and all(is_counting(p) or is_fixed(p, info) for p in filters)
            and not _tolerates_cordons(info),
            is_known and all(is_lasting(p, state, info) for p in filters),
        )

    def _key(self, framework: FrameworkRunner, info: PodInfo) -> Hashable | None:
        pod = info.pod
        groups = self._changed.cluster.known.pod_groups
        if has_claims(info) or (groups.has_any and groups.key_of(pod) is not None):
            return None
        if any(plugin.name not in IN_TREE for plugin in framework.plugins):
            return None
        metadata = pod.metadata
        owners = tuple(owner.uid for owner in metadata.owner_references)
        nominated = self._changed.cluster.nominator.node_of(info.uid)
        parts = metadata.namespace, sorted(metadata.labels.items()), owners, nominated, pod.spec
        return framework, blake2b(pack(parts), digest_size=16).digest()


def _tolerates_cordons(info: PodInfo) -> bool:
    return any(each.key in ("", UNSCHEDULABLE.key) for each in info.pod.spec.tolerations)

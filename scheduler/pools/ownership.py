"""Decide which pool owns a pending pod: exactly one does, at every moment.

1. A pod whose ``schedulerName`` one pool serves is that pool's.
2. Else the annotation ``scheduling.berth.dev/pool`` names its owner, if that is a pool which serves
   the name.
3. Else the owner is the first pool in the declared order which serves the name and whose nodes the
   pod's node selector and required node affinity do not exclude; the first one that serves the
   name where all are excluded. A pod of a group belongs to the first one that serves the name,
   whatever it selects, so that a group has one owner.

The annotation is written by the present owner, with the pod's resourceVersion, while no attempt and
no binding of the pod is in flight. From then on the writer counts the pod as given away, although
its watch may still show it as its own. A binding of a pod that several pools may own names the
version of the pod that showed the binding pool as its owner: the API server refuses it if anything
was written since. So the order in etcd decides, and no view of a watch can be too old.

A pool without a live leader cannot give anything away. Its pods are taken by the next pool that has
one, with the same precondition on the version.

*Concurrency*: loop-confined, but for :meth:`Ownership.owns`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from cache.label_selectors import compile_node_selector
from cache.pod_group_objects import group_key
from cache.pod_info import is_terminal
from cache.resource_versions import INCOMPARABLE, parse_resource_version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from cache.label_selectors import Requirement
    from cache.objects import Pod
    from scheduler.pools.options import Pool

POOL: Final = "scheduling.berth.dev/pool"
"""The annotation that names the owner."""

ROUND: Final = "scheduling.berth.dev/pool-round"
"""The annotation that says which pools have refused a pod in its present round: ``2:a,b``."""

_GIVING: Final = math.inf


class Round(NamedTuple):
    """How far a pod has come on its way through the pools.

    Attributes
    ----------
    number
        From 1.
    refused
        The pools that have given it away in this round.
    """

    number: int = 1
    refused: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.number}:{','.join(sorted(self.refused))}"


def round_of(pod: Pod) -> Round:
    """Return the round of a pod; what cannot be read is the first one."""
    number, _, names = pod.metadata.annotations.get(ROUND, "").partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) <= 9):
        return Round()
    return Round(max(1, int(number)), frozenset(filter(None, names.split(","))))


class Ownership:
    """Who owns which pod, as one pool sees it.

    Parameters
    ----------
    own
        The name of this pool.
    pools
        All pools, in the declared order.
    """

    def __init__(self, own: str, pools: Sequence[Pool]) -> None:
        self.own = own
        self._pools = pools
        self._serving: dict[str, tuple[Pool, ...]] = {
            name: tuple(pool for pool in pools if name in pool.scheduler_names)
            for name in {name for pool in pools for name in pool.scheduler_names}
        }
        self._given: dict[str, float] = {}
        """By UID, the version from which on the pod names its new owner."""
        self._others: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        """Pending pods that several pools may own, by owner and UID; not those of this pool."""

    # --- the rule -----------------------------------------------------------------------------

    def candidates(self, pod: Pod) -> tuple[Pool, ...]:
        """Return the pools that serve a pod's ``schedulerName``, in the declared order."""
        return self._serving.get(pod.spec.scheduler_name, ())

    def is_shared(self, pod: Pod) -> bool:
        """Return whether several pools may own a pod."""
        return len(self.candidates(pod)) > 1

    def owner_of(self, pod: Pod) -> str:
        """Return the name of a pod's owner; empty where no pool serves its ``schedulerName``.

        *Cost*: a microsecond; more for a pod with node affinity and without an annotation.
        """
        candidates = self.candidates(pod)
        if len(candidates) < 2:
            return candidates[0].name if candidates else ""
        named = pod.metadata.annotations.get(POOL)
        if named is not None and any(pool.name == named for pool in candidates):
            return named
        if group_key(pod) is None:
            for pool in candidates:
                if may_run_in(pod, pool):
                    return pool.name
        return candidates[0].name

    def owns(self, pod: Pod) -> bool:
        """Return whether a pod is this pool's, and was not given away since. Any thread."""
        if self.owner_of(pod) != self.own:
            return False
        given = self._given.get(pod.metadata.uid)
        return given is None or parse_resource_version(pod.metadata.resource_version) >= given

    def next_pools(self, pod: Pod, after: str, live: Collection[str]) -> list[str]:
        """Return the pools to which a pod may go, the next in the declared order first.

        Parameters
        ----------
        after
            The pool that it comes from, which is not among them.
        live
            The pools with a live leader.
        """
        if group_key(pod) is not None:
            return []
        candidates = self.candidates(pod)
        names = [pool.name for pool in candidates]
        start = names.index(after) + 1 if after in names else 0
        return [
            pool.name
            for pool in (*candidates[start:], *candidates[:start])
            if pool.name != after and pool.name in live and may_run_in(pod, pool)
        ]

    # --- what is given away -------------------------------------------------------------------

    def begin_giving(self, uid: str) -> None:
        """Count a pod as given away from now on, until :meth:`keep` is called."""
        self._given[uid] = _GIVING

    def gave(self, pod: Pod, version: str, shown: Pod | None) -> None:
        """Record that a pod names its new owner from a version on.

        Parameters
        ----------
        shown
            The pod as the watch has shown it by now.
        """
        number = parse_resource_version(version)
        if shown is None or number == INCOMPARABLE or _version(shown) >= number:
            del self._given[pod.metadata.uid]
        else:
            self._given[pod.metadata.uid] = number

    def keep(self, uid: str) -> None:
        """Record that a pod was not given away after all."""
        self._given.pop(uid, None)

    # --- what the watch shows -----------------------------------------------------------------

    def saw(self, old: Pod | None, new: Pod | None) -> None:
        """Take in a change of a pod, after it was judged by :meth:`owns`."""
        pod = new if new is not None else old
        if pod is None or not self.is_shared(pod):
            return
        uid = pod.metadata.uid
        given = self._given.get(uid)
        if given is not None and given is not _GIVING and (new is None or _version(pod) >= given):
            del self._given[uid]
        if old is not None:
            self._others[self.owner_of(old)].pop(uid, None)
        if new is not None and not new.spec.node_name and not is_terminal(new):
            owner = self.owner_of(new)
            if owner != self.own:
                self._others[owner][uid] = new

    def pending_pods_of(self, pool: str) -> Sequence[Pod]:
        """Return the pending pods of another pool that this one might take."""
        return tuple(self._others.get(pool, {}).values())

    @property
    def peers(self) -> Sequence[Pool]:
        """The other pools that share a ``schedulerName`` with this one."""
        mine = next(pool for pool in self._pools if pool.name == self.own).scheduler_names
        return [p for p in self._pools if p.name != self.own and p.scheduler_names & mine]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many pods are remembered: given away, and those of others."""
        return {"given": len(self._given), "others": sum(map(len, self._others.values()))}


def may_run_in(pod: Pod, pool: Pool) -> bool:
    """Return False if a pod's node selector or required node affinity excludes all of a pool.

    Only what follows from the selector of the pool is seen, not which nodes there are.
    """
    selected, affinity = pod.spec.node_selector, pod.spec.affinity
    for requirement in pool.node_selector.requirements:
        value = selected.get(requirement.key)
        if value is not None and not requirement.matches_value(value):
            return False
    node = None if affinity is None else affinity.node_affinity
    wanted = None if node is None else node.required_during_scheduling_ignored_during_execution
    if wanted is None:
        return True
    terms = compile_node_selector(wanted).terms
    return any(_may_match(term.requirements, pool.node_selector.requirements) for term in terms)


def _may_match(wanted: Sequence[Requirement], given: Iterable[Requirement]) -> bool:
    """Return False if no labels can satisfy both."""
    for mine in given:
        theirs = [each for each in wanted if each.key == mine.key]
        # What a label of the pool's nodes may be: its listed values, absent, or anything.
        known: Iterable[str | None] = mine.values if mine.operator == "In" else ()
        if mine.operator == "DoesNotExist":
            known = (None,)
        if known and not any(all(r.matches_value(v) for r in theirs) for v in known):
            return False
        if mine.operator == "Exists" and any(r.operator == "DoesNotExist" for r in theirs):
            return False
        if mine.operator == "NotIn" and any(
            r.operator == "In" and r.values <= mine.values for r in theirs
        ):
            return False
    return True


def _version(pod: Pod) -> int:
    return parse_resource_version(pod.metadata.resource_version)

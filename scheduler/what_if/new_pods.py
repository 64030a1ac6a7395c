"""Creates the pods and groups of a question, and places them until one does not fit."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cache.objects import PodSchedulingGroup
from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource, group_key
from cache.pod_info import PodInfo
from scheduler.offline.cluster import ClusterObjectError, kind_of
from scheduler.what_if.question import MAX_REPLICAS, QuestionError
from scheduler.what_if.queue import group_would_fit, place_all, place_group
from scheduler.what_if.result import GROUP, PODS
from scheduler.what_if.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.objects import Pod
    from scheduler.what_if.manifests import Manifests, NewPods
    from scheduler.what_if.placer import Outcome, Placer
    from scheduler.what_if.result import Part


class Copies:
    """Copies of one pod, created one by one.

    Parameters
    ----------
    placer
        Holds the cluster.
    new
        The pod, and how many of it are wanted.
    """

    def __init__(self, placer: Placer, new: NewPods, count: int) -> None:
        self._placer = placer
        self._pod = new.pod
        metadata = new.pod.metadata
        self.key = f"{metadata.namespace}/{metadata.name}"
        self.left = count
        self.tally = Tally(PODS, self.key)
        self._is_one = count == 1
        self._numbers = itertools.count(1)
        self.stopped_at = -1
        """How many pods had been placed in all when one was refused; -1 before that."""
        self._reason: Outcome | None = None
        self._first_refused = self.key

    @property
    def priority(self) -> int:
        """The priority of the pods."""
        return self._pod.spec.priority or 0

    def create(self) -> Pod:
        """Create the next copy under a free name."""
        metadata, pods = self._pod.metadata, self._placer.cluster.pods
        name = metadata.name
        if not self._is_one or self.key in pods:
            numbered = (f"{metadata.name}-{number}" for number in self._numbers)
            name = next(n for n in numbered if f"{metadata.namespace}/{n}" not in pods)
        return self._placer.changed.create(
            replace(self._pod, metadata=replace(metadata, name=name))
        )

    def place_one(self, placed_in_all: int) -> bool:
        """Place one more copy; return whether it has a node. One that does not fit is dropped."""
        pod = self.create()
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for other, outcome in place_all(self._placer, [pod]):
            if other.metadata.uid != pod.metadata.uid:
                continue  # another member of a group of the cluster
            if outcome.node_name:
                self.left -= 1
                self.tally.count(key, outcome)
                return True
            self._reason, self._first_refused = outcome, key
        self.stopped_at = placed_in_all
        self._placer.changed.delete(pod)
        return False

    def end(self) -> Part:
        """Count the copies that were not placed; say what stops one more if all were."""
        if self.left and self._reason is not None:
            if self._reason.reason:
                self.tally.refuse(self._first_refused, self._reason.reason, self.left)
            else:
                self.tally.undecided += self.left
        elif not self._placer.is_out_of_time():
            pod = self.create()
            decision = self._placer.would_fit(PodInfo(pod))
            self._placer.changed.delete(pod)
            self.tally.next = "" if decision.is_placed else decision.message()
        return self.tally.part()


def place_pods(placer: Placer, pods: Sequence[NewPods], replicas: int | None) -> list[Part]:
    """Place copies of pods, those of the highest priority first, the others in turn.

    A copy that does not fit ends its kind, because the next one is like it; unless pods of another
    kind are placed later, whose company it may need.
    """
    counts = [new.count if replicas is None else replicas for new in pods]
    _check_count(sum(counts))
    parts = [
        _place_members(placer, new, count)
        for new, count in zip(pods, counts, strict=True)
        if group_key(new.pod) is not None
    ]
    copies = [
        Copies(placer, new, count)
        for new, count in zip(pods, counts, strict=True)
        if group_key(new.pod) is None
    ]
    by_priority = sorted(copies, key=lambda each: -each.priority)
    placed = 0
    for _, same in itertools.groupby(by_priority, key=lambda each: each.priority):
        turn = list(same)
        while turn:
            turn = [each for each in turn if each.left and each.stopped_at != placed]
            for each in turn:
                placed += each.place_one(placed)
    return parts + [each.end() for each in copies]


def _place_members(placer: Placer, new: NewPods, count: int) -> Part:
    """Create further members of a group of the cluster, and place them with those that wait."""
    copies = Copies(placer, new, count)
    for pod, outcome in place_all(placer, [copies.create() for _ in range(count)]):
        copies.tally.count(f"{pod.metadata.namespace}/{pod.metadata.name}", outcome)
    return copies.tally.part()


def _check_count(count: int) -> None:
    if count > MAX_REPLICAS:
        raise QuestionError("replicas", f"{count} pods are more than {MAX_REPLICAS}")


# --- groups -----------------------------------------------------------------------------------


def place_groups(placer: Placer, found: Manifests, replicas: int | None) -> list[Part]:
    """Create copies of the groups of a question with their members, and place them.

    One pod stands for all members that the group needs; the pods of groups are taken out of
    ``found.pods``.

    Raises
    ------
    QuestionError
        When a group cannot be read, or has no members among the objects.
    """
    parts = []
    for raw in found.groups:
        data: dict[str, Any] = msgspec.json.decode(raw)
        metadata = data["metadata"]
        is_x = kind_of(raw).endswith(GroupSource.LABEL.value)
        source = GroupSource.LABEL if is_x else GroupSource.FIELD
        key = GroupKey(metadata["namespace"], metadata["name"], source)
        members = [new for new in found.pods if group_key(new.pod) == key]
        if not members:
            raise QuestionError("objects", f"no pod is a member of the pod group {key}")
        found.pods = [new for new in found.pods if group_key(new.pod) != key]
        parts.append(_place_copies(placer, data, key, members, replicas or 1))
    return parts


def _place_copies(
    placer: Placer, data: dict[str, Any], key: GroupKey, members: Sequence[NewPods], copies: int
) -> Part:
    tally = Tally(GROUP, str(key))
    for number in range(1, copies + 1):
        own, pods = _create_group(placer, data, key, members, number if copies > 1 else 0)
        if number == 1:
            _check_count(copies * len(pods))
        outcomes = list(place_group(placer, own))
        for pod, outcome in outcomes:
            tally.count(f"{pod.metadata.namespace}/{pod.metadata.name}", outcome)
        if not any(outcome.node_name for _, outcome in outcomes):
            rest = (copies - number) * len(pods)
            if rest and outcomes:
                _count_rest(tally, outcomes[0], rest)
            return tally.part()
    own, pods = _create_group(placer, data, key, members, copies + 1)
    tally.next = group_would_fit(placer, own)
    for pod in pods:
        placer.changed.delete(pod)
    return tally.part()


def _count_rest(tally: Tally, first: tuple[Pod, Outcome], rest: int) -> None:
    pod, outcome = first
    if outcome.reason:
        tally.refuse(f"{pod.metadata.namespace}/{pod.metadata.name}", outcome.reason, rest)
    else:
        tally.undecided += rest


def _create_group(
    placer: Placer, data: dict[str, Any], key: GroupKey, members: Sequence[NewPods], number: int
) -> tuple[GroupKey, list[Pod]]:
    """Create a group and its members; ``number`` tells copies apart, 0 stands for the only one."""
    own = key._replace(name=f"{key.name}-{number}") if number else key
    metadata = {**data["metadata"], "name": own.name, "uid": f"what-if-{own}"}
    raw = msgspec.Raw(msgspec.json.encode({**data, "metadata": metadata}))
    try:
        placer.cluster.add(raw)
    except ClusterObjectError as error:
        raise QuestionError("objects", str(error)) from error
    rules = placer.cluster.known.pod_groups.rules(own)
    least = 1 if rules is None else rules.minimum
    _check_count(least)
    if len(members) == 1 and members[0].count == 1:
        counts = [least]
    else:
        counts = [new.count for new in members]
    pods: list[Pod] = []
    for new, count in zip(members, counts, strict=True):
        pods.extend(placer.changed.create(pod) for pod in _numbered(placer, new.pod, own, count))
    return own, pods


def _numbered(placer: Placer, pod: Pod, key: GroupKey, count: int) -> Iterator[Pod]:
    """Yield members of a group under free names."""
    metadata, spec = pod.metadata, pod.spec
    labels = metadata.labels
    if key.source is GroupSource.LABEL:
        labels = {**labels, GROUP_LABEL: key.name}
    else:
        spec = replace(spec, scheduling_group=PodSchedulingGroup(key.name))
    numbers = itertools.count(1)
    for _ in range(count):
        first = (metadata.name,) if count == 1 else ()
        names = itertools.chain(first, (f"{metadata.name}-{number}" for number in numbers))
        name = next(n for n in names if f"{metadata.namespace}/{n}" not in placer.cluster.pods)
        yield replace(pod, metadata=replace(metadata, name=name, labels=labels), spec=spec)

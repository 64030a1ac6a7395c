"""Creates the pods and groups of a question, and places them until one does not fit."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cache.objects import PodSchedulingGroup
from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource, group_key
from cache.pod_info import PodInfo
from scheduler.offline.cluster import ClusterObjectError, kind_of
from scheduler.runtime.judgement import LikePods
from scheduler.what_if.alike_pods import made, may_be_counted, place_alike
from scheduler.what_if.placer import Outcome
from scheduler.what_if.question import MAX_REPLICAS, QuestionError
from scheduler.what_if.queue_order import group_would_fit, place_all, place_group
from scheduler.what_if.result import GROUP, PODS
from scheduler.what_if.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cache.objects import Pod
    from scheduler.what_if.manifests import Manifests, NewPods
    from scheduler.what_if.placer import Placer
    from scheduler.what_if.result import Part

MANY: Final = 50
"""Copies from which on they are counted."""


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
        """Create the next copy, which was admitted, under a free name."""
        metadata, pods = self._pod.metadata, self._placer.cluster.pods
        name = metadata.name
        if not self._is_one or self.key in pods:
            name = next(self._names())
        return self._placer.changed.create(
            replace(self._pod, metadata=replace(metadata, name=name))
        )

    def admit(self) -> str:
        """Count the next copy, or return why the API server would refuse it."""
        return self._placer.changed.admission.admit(self._pod)

    def place_one(self, placed_in_all: int, like: LikePods | None = None) -> bool:
        """Place one more copy; return whether it has a node. One that does not fit is dropped."""
        why = self.admit()
        if why:
            self._reason, self.stopped_at = Outcome("", why), placed_in_all
            return False
        pod = self.create()
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for other, outcome in place_all(self._placer, [pod], like):
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

    def place_alike(self) -> int:
        """Place copies by counting, as far as that goes; return how many.

        The first one is placed as usual: whether counting is enough shows then.
        """
        placer = self._placer
        framework = placer.framework(self._pod)
        if self.left < MANY or not may_be_counted(framework, self._pod):
            return 0
        like = LikePods()
        if not self.place_one(0, like):
            return 0
        wanted = 0
        while wanted < self.left and not self.admit():
            wanted += 1
        rows = list(place_alike(placer, framework, self._pod, wanted, like))
        for _ in range(wanted - len(rows)):
            placer.changed.admission.release(self._pod)
        infos = list(made(placer, self._pod, self._names(), rows))
        placer.bind_alike(infos)
        for info in infos:
            self.tally.place(info.key, info.node_name)
        self.left -= len(rows)
        return len(rows) + 1

    def _names(self) -> Iterator[str]:
        """Yield free names."""
        metadata, pods = self._pod.metadata, self._placer.cluster.pods
        numbered = (f"{metadata.name}-{number}" for number in self._numbers)
        return (name for name in numbered if f"{metadata.namespace}/{name}" not in pods)

    def end(self) -> Part:
        """Count the copies that were not placed; say what stops one more if all were."""
        if self.left and self._reason is not None:
            if self._reason.reason:
                self.tally.refuse(self._first_refused, self._reason.reason, self.left)
            else:
                self.tally.undecided += self.left
        elif not self._placer.is_out_of_time():
            self.tally.next = self.admit()
            if self.tally.next:
                return self.tally.part()
            pod = self.create()
            decision = self._placer.would_fit(PodInfo(pod))
            self._placer.changed.delete(pod)
            self.tally.next = "" if decision.is_placed else decision.message()
        return self.tally.part()


def place_pods(
    placer: Placer,
    pods: Sequence[NewPods],
    replicas: int | None,
    between: Callable[[], None],
) -> list[Part]:
    """Place copies of pods, those of the highest priority first, the others in turn.

    A copy that does not fit ends its kind, because the next one is like it; unless pods of another
    kind are placed later, whose company it may need.

    Parameters
    ----------
    between
        Called after each placement: others may come in between.
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
        if len(turn) == 1:
            placed += turn[0].place_alike()
            between()
        while turn:
            turn = [each for each in turn if each.left and each.stopped_at != placed]
            for each in turn:
                placed += each.place_one(placed)
                between()
    return parts + [each.end() for each in copies]


def _place_members(placer: Placer, new: NewPods, count: int) -> Part:
    """Create further members of a group of the cluster, and place them with those that wait."""
    copies = Copies(placer, new, count)
    pods = []
    for number in range(count):
        why = copies.admit()
        if why:
            copies.tally.refuse(copies.key, why, count - number)
            break
        pods.append(copies.create())
    for pod, outcome in place_all(placer, pods):
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
        When a group cannot be read, has no members among the objects, or there are too many.
    """
    parts = []
    left = MAX_REPLICAS
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
        groups = Groups(placer, data, key, members)
        left -= groups.size * (replicas or 1)
        if left < 0:
            raise QuestionError("objects", f"all groups have more than {MAX_REPLICAS} members")
        parts.append(groups.place(replicas or 1))
    return parts


class Groups:
    """Copies of one group with its members.

    Parameters
    ----------
    placer
        Holds the cluster.
    data
        The PodGroup as the question has it.
    key
        The group.
    members
        Its members; a single one stands for all that the group needs.

    Raises
    ------
    QuestionError
        When the group cannot be read.
    """

    def __init__(
        self, placer: Placer, data: dict[str, Any], key: GroupKey, members: Sequence[NewPods]
    ) -> None:
        self._placer = placer
        self._data = data
        self._key = key
        self._members = members
        self._counts = [new.count for new in members]
        if self._counts == [1]:
            self._describe(key)
            rules = placer.cluster.known.pod_groups.rules(key)
            self._counts = [1 if rules is None else rules.minimum]

    @property
    def size(self) -> int:
        """The members of each copy."""
        return sum(self._counts)

    def place(self, copies: int) -> Part:
        """Place copies until one does not fit; say what stops one more if all fit."""
        tally = Tally(GROUP, str(self._key))
        for number in range(1, copies + 1):
            own, _, why = self._create(number if copies > 1 else 0)
            if why:
                tally.refuse(str(own), why, (copies - number + 1) * self.size)
                return tally.part()
            outcomes = list(place_group(self._placer, own))
            for pod, outcome in outcomes:
                tally.count(_pod_key(pod), outcome)
            if not any(outcome.node_name for _, outcome in outcomes):
                _count_rest(tally, outcomes[0], (copies - number) * self.size)
                return tally.part()
        own, pods, why = self._create(copies + 1)
        tally.next = why or group_would_fit(self._placer, own)
        for pod in pods:
            self._placer.changed.delete(pod)
        return tally.part()

    def _create(self, number: int) -> tuple[GroupKey, list[Pod], str]:
        """Create a group and its members; numbers tell copies apart, 0 is the only one.

        None of them if the API server would refuse one, with the reason.
        """
        own = self._key._replace(name=f"{self._key.name}-{number}") if number else self._key
        self._describe(own)
        pods: list[Pod] = []
        changed = self._placer.changed
        for new, count in zip(self._members, self._counts, strict=True):
            for pod in _numbered(self._placer, new.pod, own, count):
                why = changed.admission.admit(pod)
                if why:
                    for created in pods:
                        changed.delete(created)
                    return own, [], why
                pods.append(changed.create(pod))
        return own, pods, ""

    def _describe(self, key: GroupKey) -> None:
        metadata = {**self._data["metadata"], "name": key.name, "uid": f"what-if-{key}"}
        raw = msgspec.Raw(msgspec.json.encode({**self._data, "metadata": metadata}))
        try:
            self._placer.cluster.add(raw)
        except ClusterObjectError as error:
            raise QuestionError("objects", str(error)) from error


def _count_rest(tally: Tally, first: tuple[Pod, Outcome], rest: int) -> None:
    pod, outcome = first
    if outcome.reason and rest:
        tally.refuse(_pod_key(pod), outcome.reason, rest)
    else:
        tally.undecided += rest


def _pod_key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


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

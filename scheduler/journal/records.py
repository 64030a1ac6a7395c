"""What a journal records: its entries as they wait in memory, and as they stand in a file.

An entry is what happened, what it happened to, and one more text: as
:data:`cache.observer.Observer` gets it. In a file it is a list that begins with what happened.
Objects are written once in a file, as ``["o", number, type, bytes]``, and named by their number
afterwards; ``["x", numbers]`` tells that these numbers are not named any more.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from cache.objects import Namespace
from cache.pod_group_objects import GroupKey, UnreadablePodGroup, UnreadableXPodGroup
from cache.value import PLAIN_VALUES
from scheduler.journal.forms import decision_form, plan_form, victims_form
from scheduler.kinds import WATCHED
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.plan import GroupPlan, GroupTask
    from scheduler.runtime.framework_runner import FrameworkRunner

Entry: TypeAlias = tuple[str, Any, str]

TYPES: Final[tuple[type[msgspec.Struct], ...]] = (
    *(kind.struct for kind in WATCHED),
    UnreadablePodGroup,
    UnreadableXPodGroup,
)
"""The types of objects by the number that stands for each in a file: new ones come last."""

TYPE_OF: Final = {struct: index for index, struct in enumerate(TYPES)}

POST_FILTER: Final = "post_filter"
"""Not a change, but the place among the changes at which preemption begins within a decision."""

OFF: Final = "off"
"""Among what was asked: the calls into a user's plugin at one method were not made, and why. None
for some that were made and some that were not."""

SEARCHED: Final = "searched"
"""Among what was asked: the extent of a search for candidates of a preemption, if it was not all
nodes (:class:`plugins.default_preemption.candidates.Extent`)."""

TIMEOUT: Final = "timeout"
"""Among what was asked: a search for the devices of a pod on a node took too long."""

RESERVE: Final = "reserve"
"""Among what was asked: the sizes of pods of others for which room was left
(:data:`scheduler.cycle.soft_reserve.Sizes`)."""

SPENT: Final = "spent"
"""Among what was asked: what was decided about a group by the time that it took
(:class:`plugins.framework.attempt_budget.Spent`). Decisions that have no such entry and took too
long are not compared."""

OBJECT: Final = "o"
DROPPED: Final = "x"

_MOST_NAMED: Final = 32_768
"""Objects that can be named again, at least; at most twice as many."""

_DROPPED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Asked(NamedTuple):
    """What a decision began with, besides what is known of the cluster.

    Attributes
    ----------
    number
        Decides between equals.
    next_start
        Where in the visiting order a partial search starts.
    now_s
        Seconds since the epoch.
    version
        Of the profiles.
    reads
        What the scheduler's own parts were asked meanwhile, with their answers.
    """

    number: int
    next_start: int
    now_s: float
    version: int
    reads: list[list[Any]]


class Decided(NamedTuple):
    """A decision about one pod.

    Attributes
    ----------
    group
        The group of which it is a late member, or None.
    asks_extenders
        Whether other programs were asked: their answers are not recorded.
    """

    asked: Asked
    decision: Decision
    group: GroupKey | None
    asks_extenders: bool


class Planned(NamedTuple):
    """A plan for a group.

    Attributes
    ----------
    is_late
        Whether time was so short that the plan depends on it.
    preempts
        Whether victims follow.
    """

    asked: Asked
    task: GroupTask
    plan: GroupPlan
    is_late: bool
    preempts: bool
    asks_extenders: bool


class Objects:
    """The numbers of the objects in one file."""

    def __init__(self, out: list[list[Any]]) -> None:
        self._out = out
        self._young: dict[int, tuple[int, msgspec.Struct]] = {}
        self._old: dict[int, tuple[int, msgspec.Struct]] = {}
        self._count = 0

    def number(self, known: msgspec.Struct | None) -> int | None:
        """Return the number of an object, after recording the object if it has none yet."""
        if known is None:
            return None
        key = id(known)
        found = self._young.get(key)
        if found is None:
            found = self._old.pop(key, None)
            if found is None:
                self._count += 1
                found = (self._count, known)
                self._out.append([OBJECT, self._count, TYPE_OF[type(known)], packed(known)])
            if len(self._young) >= _MOST_NAMED:
                self._out.append([DROPPED, [number for number, _ in self._old.values()]])
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found[0]


def packed(known: msgspec.Struct) -> bytes:
    """Return an object as it stands in a file: without what no decision reads."""
    if isinstance(known, Namespace):
        bare = msgspec.structs.replace(known.metadata, annotations={})
        known = msgspec.structs.replace(known, metadata=bare)
    else:
        subject: Any = known
        # Not every kind keeps annotations.
        annotations = getattr(subject.metadata, "annotations", {})
        if _DROPPED_ANNOTATION in annotations:
            kept = {key: text for key, text in annotations.items() if key != _DROPPED_ANNOTATION}
            metadata = msgspec.structs.replace(subject.metadata, annotations=kept)
            known = msgspec.structs.replace(subject, metadata=metadata)
    return _encode(known)


def _plain(value: Any) -> Any:
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise NotImplementedError(type(value).__name__)


_encode: Final = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_plain_args: Final = str


class RecordEncoder:
    """Turns entries into what stands in a file.

    Attributes
    ----------
    out
        The records that are not taken yet.
    """

    def __init__(self) -> None:
        self.out: list[list[Any]] = []
        self._objects = Objects(self.out)

    def take(self) -> list[list[Any]]:
        """Return the records since the last call."""
        taken = self.out.copy()
        self.out.clear()
        return taken

    def add(self, entry: Entry) -> None:
        """Encode an entry."""
        what, subject, more = entry
        out, number = self.out, self._objects.number
        if what in _OF_PODS:
            out.append([what, number(subject.pod), more])
        elif what in _OF_UIDS:
            out.append([what, subject.uid])
        elif what == "node":
            out.append([what, number(subject)])
        elif what in ("object", "assumed", "claim", "group"):
            verb, is_own, *arguments = subject
            out.append([what, verb, is_own, *map(self._argument, arguments)])
        elif what == "decision":
            self._add_decision(subject)
        elif what == "plan":
            self._add_plan(subject)
        elif what == "victims":
            reads, found, is_late = subject
            out.append([what, self._reads(reads), victims_form(found), is_late])
        elif what == "config":
            version, frameworks = subject
            out.append([what, version, [_profile(each) for each in frameworks]])
        else:
            out.append([what, subject, more])

    def _argument(self, value: Any) -> Any:
        if isinstance(value, msgspec.Struct) and not isinstance(value, PLAIN_VALUES):
            return self._objects.number(value)
        if isinstance(value, GroupKey):
            return [value.namespace, value.name, value.source.value]
        if isinstance(value, set | frozenset):
            return sorted(value)
        return value

    def _asked(self, asked: Asked) -> list[Any]:
        reads = self._reads(asked.reads)
        return [asked.number, asked.next_start, asked.now_s, asked.version, reads]

    def _reads(self, reads: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [list(map(self._argument, read)) for read in reads]

    def _add_decision(self, decided: Decided) -> None:
        decision = decided.decision
        self.out.append(
            [
                "decision",
                self._asked(decided.asked),
                self._objects.number(decision.info.pod),
                decision.profile,
                self._argument(decided.group),
                decided.asks_extenders,
                decision_form(decision),
                decision.duration_s,
                decision.budget_s,
            ]
        )

    def _add_plan(self, planned: Planned) -> None:
        task = planned.task
        self.out.append(
            [
                "plan",
                self._asked(planned.asked),
                [self._objects.number(info.pod) for info in task.members],
                task.framework.profile_name,
                self._argument(task.rules.key),
                task.needed,
                planned.asks_extenders or planned.is_late,
                planned.preempts,
                plan_form(planned.plan),
            ]
        )


_OF_PODS: Final = frozenset({"assume", "add", "update", "nominate", "nominated"})
_OF_UIDS: Final = frozenset({"finish_binding", "forget", "remove", "expire"})


class RecordDecoder:
    """Finds the objects that records name."""

    def __init__(self) -> None:
        self._objects: dict[int, msgspec.Struct] = {}
        self._decoders = tuple(msgspec.msgpack.Decoder(struct) for struct in TYPES)

    def is_about_objects(self, record: Sequence[Any]) -> bool:
        """Take up an object, or drop some; return False for any other record."""
        if record[0] == OBJECT:
            _, number, index, text = record
            self._objects[number] = self._decoders[index].decode(text)
            return True
        if record[0] == DROPPED:
            for number in record[1]:
                self._objects.pop(number, None)
            return True
        return False

    def object(self, number: int | None) -> Any:
        """Return an object by its number; None for None."""
        return None if number is None else self._objects[number]

    def pod(self, number: int) -> Pod:
        """Return a pod by its number."""
        found: Pod = self.object(number)
        return found


def _profile(framework: FrameworkRunner) -> dict[str, Any]:
    """Return what a profile was built from, with the digests and sources of users' plugins."""
    points = {
        point: [plugin.name for plugin in plugins] for point, plugins in framework.points.items()
    }
    made_of = framework.effective
    args = {} if made_of is None else made_of.args
    classes = {} if made_of is None else made_of.classes
    sources = {name: source for name, cls in classes.items() if (source := _source(cls))}
    return {
        "name": framework.profile_name,
        "policy": framework.policy.text,
        "points": points,
        "weights": dict(framework.score_weights),
        "percentage": framework.percentage_of_nodes_to_score,
        "args": {
            name: msgspec.to_builtins(each, enc_hook=_plain_args) for name, each in args.items()
        },
        "sources": sources,
        "extenders": framework.extenders is not None,
    }


def _source(cls: type) -> list[str] | None:
    """Return kind, name, digest and text of the code of a user's plugin; None for Berth's own."""
    source = getattr(cls, SOURCE_ATTRIBUTE, None)
    if source is None:
        return None
    return [source.kind, source.name, source.digest, source.text or ""]

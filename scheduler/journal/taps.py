"""Listen to the parts of the known state that change without the cache's lock.

Each method that changes one of them is wrapped: the change is recorded, then made.
"""

from __future__ import annotations

from functools import wraps
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeGuard

from cache.pod_group_objects import group_key
from cache.pod_info import is_terminal
from scheduler.kinds import WATCHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.known import Known
    from cache.objects import Pod
    from cache.observer import Observer
    from cache.pod_groups import PodGroups
    from cache.scheduler_cache import SchedulerCache
    from scheduler.journal.recorder import Journal


def listen_to_known(known: Known, record: Observer, is_own: Callable[[], bool]) -> None:
    """Record every change of what is known besides nodes and the pods on them.

    Parameters
    ----------
    is_own
        Returns whether the calling thread is the scheduling thread.

    *Concurrency*: before anything else has any of these methods.
    """
    for kind in WATCHED:
        take: Any = None if kind.goes_to is None else kind.goes_to(known)
        owner = getattr(take, "__self__", None)
        if owner is not None:  # it is not wrapped yet: some kinds share a method
            _put(owner, take.__name__, _recorded_change(take, record, is_own))
    for part in ("volumes", "claims"):
        cache = getattr(known.storage, part)
        for verb in ("assume", "restore"):
            _put(cache, verb, _recorded(cache, verb, "assumed", record, is_own, part))
    for verb in ("stored", "restore", "begin_flight", "end_flight"):
        claims = known.devices.claims
        _put(claims, verb, _recorded(claims, verb, "claim", record, is_own))
    _listen_to_groups(known.pod_groups, known.cache, record, is_own)


def _put(owner: object, name: str, wrapper: Callable[..., Any]) -> None:
    setattr(owner, name, wrapper)


def _recorded_change(
    take: Callable[..., Any], record: Observer, is_own: Callable[[], bool]
) -> Callable[..., Any]:
    @wraps(take)
    def changed(old: Any, new: Any, *, restored: bool = False) -> Any:
        record("object", ("restored" if restored else "", is_own(), old, new), "")
        return take(old, new, restored=True) if restored else take(old, new)

    return changed


def _recorded(
    owner: object,
    verb: str,
    what: str,
    record: Observer,
    is_own: Callable[[], bool],
    *first: str,
) -> Callable[..., Any]:
    real = getattr(owner, verb)

    @wraps(real)
    def method(*arguments: Any) -> Any:
        record(what, (verb, is_own(), *first, *arguments), "")
        return real(*arguments)

    return method


def _listen_to_groups(
    groups: PodGroups, cache: SchedulerCache, record: Observer, is_own: Callable[[], bool]
) -> None:
    pod_changed, assume = groups.pod_changed, groups.assume
    forget_all = groups.forget_all
    begin_eviction, end_eviction = groups.begin_eviction, groups.end_eviction

    def recorded_pod(old: Pod | None, new: Pod | None) -> None:
        # A pod that was a member once stays one that is recorded: its first group may count.
        is_member = (new is not None and group_key(new) is not None) or (
            old is not None and groups.key_of(old) is not None
        )
        if is_member:
            record("group", ("pod_changed", is_own(), old, new), "")
        pod_changed(old, new)
        if _ends_pending(old, new) and not cache.is_placed_pod(old.metadata.uid):
            # The cache tells of pods with a node only; in a replay this one may have one.
            record("remove", old.metadata, "")

    def recorded_assume(key: Any, uids: Any) -> None:
        uids = list(uids)
        record("group", ("assume", is_own(), key, uids), "")
        assume(key, uids)

    def recorded_forget(key: Any, uids: Any) -> None:
        uids = list(uids)
        record("group", ("forget_all", is_own(), key, uids), "")
        forget_all(key, uids)

    def recorded_begin(key: Any) -> None:
        record("group", ("begin_eviction", is_own(), key), "")
        begin_eviction(key)

    def recorded_end(key: Any, leaving: Any) -> None:
        leaving = list(leaving)
        record("group", ("end_eviction", is_own(), key, leaving), "")
        end_eviction(key, leaving)

    _put(groups, "pod_changed", recorded_pod)
    _put(groups, "assume", recorded_assume)
    _put(groups, "forget_all", recorded_forget)
    _put(groups, "begin_eviction", recorded_begin)
    _put(groups, "end_eviction", recorded_end)


def _ends_pending(old: Pod | None, new: Pod | None) -> TypeGuard[Pod]:
    """Return whether a pod without a node is gone or has ended."""
    if old is None or old.spec.node_name or is_terminal(old):
        return False
    return new is None or is_terminal(new)


class Listened:
    """The services of plugins of which the answers in a decision are recorded."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def wrap(
        self,
        owner: Any,
        name: str,
        told: Callable[[Any, tuple[Any, ...]], list[Any]],
        mark: str = "",
    ) -> Any:
        """Return a method that also records its answer while a decision is made.

        Parameters
        ----------
        told
            Returns what to record, of the answer and the arguments.
        mark
            What is recorded among the changes when the method is called; empty for nothing.
        """
        real, journal = getattr(owner, name), self._journal

        @wraps(real)
        def method(*arguments: Any) -> Any:
            reads = journal.reads
            if reads is None or get_ident() != journal.thread:
                return real(*arguments)
            if mark:
                journal.record(mark, None, "")
            answer = real(*arguments)
            reads.append(told(answer, arguments))
            return answer

        return method


class ListenedPreemption:
    """The preemption service, with what it answers to the scheduling thread recorded."""

    def __init__(self, real: Any, listened: Listened) -> None:
        self._real = real
        self.is_running = real.is_running
        self.ask_extenders = real.ask_extenders
        self.leaving = listened.wrap(real, "leaving", lambda uids, _: ["leaving", sorted(uids)])
        self.start = listened.wrap(real, "start", _start_told)

    @property
    def asks_extenders(self) -> bool:
        """Whether extenders narrow candidates."""
        return bool(self._real.asks_extenders)


def _start_told(status: Any, arguments: tuple[Any, ...]) -> list[Any]:
    _, node_name, victims, _ = arguments
    uids = [info.uid for info in victims.pods]
    return ["start", node_name, uids, victims.pdb_violations, int(status.code), *status.reasons]

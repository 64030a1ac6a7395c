"""The other cluster with its scheduler: who is tried when, and what follows from it.

A pod that was refused then too is tried when it was tried then. One that the other policy refuses
and that was placed then, or that has evicted other pods, waits in a queue with the other policy's
hints: :class:`scheduler.policy_replay.retries.Retries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plugins.framework.status import unschedulable
from scheduler.cycle.group_cycle import refusers_of
from scheduler.decision.decision import Decision
from scheduler.pod_groups import Verdict
from scheduler.policy_replay.other_scheduler import OtherScheduler, Turn
from scheduler.policy_replay.other_world import OtherWorld
from scheduler.policy_replay.retries import Retries
from scheduler.queueing import QueuedGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.journal.records import RecordDecoder
    from scheduler.policy_replay.fates import Fate
    from scheduler.policy_replay.other_scheduler import TriedGroup
    from scheduler.policy_replay.tally import Tallies
    from scheduler.queueing import QueuedPod

_LEFT_OVER: Final = "the other members of the pod group left no room that was looked for"


class _Preempting(NamedTuple):
    """A group that was refused, before it is known whether victims were chosen then as now."""

    key: GroupKey
    members: Sequence[Fate]
    tried: TriedGroup
    refused_then: bool


class OtherSide:
    """The cluster of the other policy, and the turns of its scheduler.

    Parameters
    ----------
    profiles, plugins
        The other policy.
    tallies
        What becomes of pods is counted here.
    on_end
        Receives the UID of each pod that is gone.

    Attributes
    ----------
    fates
        The pods with decisions, by UID.
    now_s
        The replayed time, in seconds since the epoch.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(
        self,
        profiles: Sequence[EffectiveProfile],
        plugins: Mapping[str, type[Plugin]],
        tallies: Tallies,
        on_end: Callable[[str], object],
    ) -> None:
        self.fates: dict[str, Fate] = {}
        self.now_s = 0.0
        self._undated: list[Fate] = []
        self._profiles = profiles
        self._plugins = plugins
        self._tallies = tallies
        self._on_end = on_end
        self._evicted: set[str] = set()
        self._victims: set[str] = set()
        self._attempts = 0
        self._build(OtherWorld(self.fates, self._evicted, self._ended))

    def _build(self, world: OtherWorld) -> None:
        self.world = world
        self.scheduler = OtherScheduler(
            world,
            self._profiles,
            self._plugins,
            lambda name, seconds: self._tallies.of(name).now.cycles.add(seconds),
        )
        self.scheduler.on_permit_wait = self._permit_waits
        groups = world.cluster.known.pod_groups
        self._retries = Retries(self.scheduler.frameworks, groups, lambda: self.now_s)
        world.hear = self._retries.hear
        world.on_bound = lambda fate: self._retries.remove(fate.uid)
        self.scheduler.send_away = self._retries.activate
        self._preempting: _Preempting | None = None

    def _permit_waits(self, profile: str) -> None:
        self._tallies.of(profile).permit_waits += 1

    def _ended(self, fate: Fate) -> None:
        self._retries.remove(fate.uid)
        self._victims.discard(fate.uid)
        self._on_end(fate.uid)
        self._tallies.of(fate.profile).end(fate)

    # --- the records --------------------------------------------------------------------------

    def begin_file(self, decoder: RecordDecoder) -> None:
        """Begin another file: its checkpoint follows, and pods keep their nodes of before.

        Pods that waited in the queue are tried again, as after a restart.
        """
        before, world = self.world, OtherWorld(self.fates, self._evicted, self._ended)
        world.decoder = decoder
        if before.is_complete:
            world.go_on_from(before)
        self._build(world)

    def apply(self, record: Sequence[Any]) -> None:
        """Follow a change."""
        is_snapshot, was_complete = record[0] == "snapshot", self.world.is_complete
        if is_snapshot:
            self.decide_victims(())
            self.try_due()
        self.world.apply(record)
        if self.world.is_complete and not was_complete:
            self._queue_again()

    def _queue_again(self) -> None:
        """Try the pods of the queue again, after the checkpoint of another file."""
        for fate in list(self.fates.values()):
            if fate.is_queued and fate.waits:
                self._retries.add(self.world.info_now(fate))

    def pass_time(self, now_s: float) -> None:
        """Let the time of the next decision come.

        What happened since the decision before has no time of its own: pods that were placed
        meanwhile have waited until now.
        """
        self.now_s = self.world.now_s = now_s
        for fate in self._undated:
            fate.now = fate.now._replace(at_s=now_s)
        self._undated.clear()

    def end(self, pause_s: float) -> None:
        """End the journal: woken pods are tried after their pause, and all pods are counted."""
        self.decide_victims(())
        self.try_due()
        self.pass_time(self.now_s + pause_s)
        self.try_due()
        for fate in list(self.fates.values()):
            self._tallies.of(fate.profile).end(fate)
        self.fates.clear()

    # --- turns of pods ------------------------------------------------------------------------

    def try_pod(self, fate: Fate, turn: Turn) -> None:
        """Try a pod when it was tried then, if it waits; with its group if that gathers."""
        if not fate.waits:
            return
        groups = self.world.cluster.known.pod_groups
        key = groups.key_of(fate.pod) if groups.has_any else None
        rules = None if key is None else groups.rules(key)
        if key is not None and rules is not None and not groups.standing(key).has_begun:
            members = [self.fates[uid] for uid in groups.members(key) if uid in self.fates]
            self._try_group(key, [each for each in members if each.waits], turn)
            return
        self._retries.remove(fate.uid)
        fate.is_queued = False
        tried = self.scheduler.try_pod(fate, turn)
        decision = tried.decision
        if not decision.is_placed and (fate.then.is_placed or tried.victims):
            self._refuse(fate, decision)
        self.count_victims(fate.profile, tried.as_then)
        self._evict(fate.profile, tried.victims)

    def _refuse(self, fate: Fate, decision: Decision) -> None:
        fate.is_queued = True
        self._retries.refuse(self.world.info_now(fate), decision)

    def _evict(self, profile: str, victims: Iterable[PodInfo]) -> None:
        victims = tuple(victims)
        self.count_victims(profile, victims)
        self.world.evict(victims)

    def count_victims(self, profile: str, victims: Iterable[PodInfo]) -> None:
        """Count victims that leave, each once."""
        counts = self._tallies.of(profile).now.victims
        for victim in victims:
            if victim.uid not in self._victims:
                self._victims.add(victim.uid)
                counts[victim.priority] += 1

    def try_due(self) -> None:
        """Try the pods and groups of the queue whose turn it is."""
        self._retries.flush()
        for queued in self._retries.due():
            self._attempts += 1
            self.world.cluster.cache.update_snapshot(self.world.snapshot)
            turn = self.scheduler.turn(f"{queued.info.uid}/{self._attempts}", self.now_s)
            if isinstance(queued, QueuedGroup):
                self._try_entry(queued, turn)
            else:
                self._try_queued(queued, turn)

    def _try_queued(self, queued: QueuedPod, turn: Turn) -> None:
        fate = self.fates.get(queued.info.uid)
        if fate is None or not fate.waits:
            self._retries.remove(queued.info.uid)
            return
        tried = self.scheduler.try_pod(fate, turn)
        if tried.decision.is_placed:
            fate.is_queued = False
            self._undated.append(fate)
            self._retries.remove(fate.uid)
        else:
            self._retries.refused(queued, tried.decision)
        self._evict(fate.profile, tried.victims)

    # --- turns of groups ----------------------------------------------------------------------

    def try_members(self, key: GroupKey, fates: Sequence[Fate], turn: Turn) -> None:
        """Try the members of a group that were tried together then."""
        waiting = [fate for fate in fates if fate.waits]
        if not waiting:
            return
        if self.world.cluster.known.pod_groups.standing(key).has_begun:
            for fate in waiting:
                own = self.scheduler.turn(f"{fate.uid}/{turn.number}", turn.now_s)
                self.world.cluster.cache.update_snapshot(self.world.snapshot)
                self.try_pod(fate, own)
            return
        self._try_group(key, waiting, turn)

    def _try_group(self, key: GroupKey, members: Sequence[Fate], turn: Turn) -> None:
        rules = self.world.cluster.known.pod_groups.rules(key)
        if rules is None or not members:
            return
        for fate in members:
            self._retries.remove(fate.uid)
            fate.is_queued = False
        tried = self.scheduler.try_group(rules, members, turn)
        if tried.plan.verdict is Verdict.FITS:
            for fate in members:
                if fate.waits:
                    decision = self._leave_over(tried, fate)
                    if fate.then.is_placed:
                        self._refuse(fate, decision)
            return
        refused_then = not any(fate.then.is_placed for fate in members)
        self._preempting = _Preempting(key, members, tried, refused_then)

    def decide_victims(self, then: Sequence[str]) -> None:
        """Let the victims of a refused group leave, as they left then if they are the same.

        Parameters
        ----------
        then
            The UIDs of the victims that were chosen then.
        """
        preempting, self._preempting = self._preempting, None
        if preempting is None:
            return
        key, members, tried, refused_then = preempting
        victims = None if tried.victims is None else tried.victims.pods
        uids = [each.uid for each in victims or ()]
        if victims and tried.victims is not None and uids == list(then):
            self.count_victims(members[0].profile, victims)
            self.scheduler.leave_as_then(victims, tried.victims.gangs)
            victims = None
        if not refused_then or victims:
            for fate in members:
                fate.is_queued = True
            infos = [self.world.info_now(fate) for fate in members]
            self._retries.refuse_group(key, infos, refusers_of(tried.task, tried.plan))
        self.scheduler.nominate_members(members, tried.victims)
        if victims:
            self._evict(members[0].profile, victims)

    def _try_entry(self, entry: QueuedGroup, turn: Turn) -> None:
        groups, key = self.world.cluster.known.pod_groups, entry.key
        found = [self.fates.get(queued.info.uid) for queued in entry.tried]
        members = [fate for fate in found if fate is not None and fate.waits]
        rules = groups.rules(key)
        if rules is None or not members:
            self._retries.group_refused(entry, {})
            return
        tried = self.scheduler.try_group(rules, members, turn)
        if tried.plan.verdict is not Verdict.FITS:
            self._retries.group_refused(entry, refusers_of(tried.task, tried.plan))
            self.scheduler.nominate_members(members, tried.victims)
            if tried.victims is not None:
                self._evict(members[0].profile, tried.victims.pods)
            return
        self._retries.group_placed(entry)
        for queued in entry.tried:
            fate = self.fates.get(queued.info.uid)
            if fate is None or not fate.waits:
                self._retries.remove(queued.info.uid)
                self._undated += [] if fate is None else [fate]
            else:
                self._retries.refused(queued, self._leave_over(tried, fate))

    def _leave_over(self, tried: TriedGroup, fate: Fate) -> Decision:
        """Return the refusal of a member that is left over when its group is placed."""
        decision, info = tried.plan.refused.get(fate.uid), self.world.info_now(fate)
        if decision is None:
            name = tried.task.framework.profile_name
            status = unschedulable(_LEFT_OVER)
            decision = Decision(0, name, info, status=status, nominated_node_name="")
        if decision.nominated_node_name is not None:
            self.scheduler.nominate(fate, info, decision.nominated_node_name)
        return decision

"""Replay a journal by another policy: two clusters follow the records, side by side.

record of a change    -> both clusters, translated for the other one
record of a decision  -> recorded cluster: decided again by the policy of then
-> other cluster: the other policy's turn, if the pod waits there
between decisions     -> other cluster: the pods of its queue whose turn it is
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugins.framework.status import Code
from scheduler.config import ConfigError
from scheduler.journal import forms
from scheduler.journal.frames import take_each
from scheduler.journal.replayed_state import group_key_of
from scheduler.pod_groups import Verdict
from scheduler.policy_replay.fates import Fate, Placing
from scheduler.policy_replay.other_scheduler import Turn
from scheduler.policy_replay.other_side import OtherSide
from scheduler.policy_replay.other_world import zone_of
from scheduler.policy_replay.packing import Packing, PackingOverTime, packing_of
from scheduler.policy_replay.recorded_side import DECISION, RecordedSide
from scheduler.policy_replay.tally import Tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile

_LAST_PAUSE_S: Final = 10.0
"""The longest pause of a pod: who was woken before the end of the journal is tried once more."""

_SUCCESS: Final = int(Code.SUCCESS)
_FITS: Final = Verdict.FITS.value


class PolicyReplay:
    """Replay the records of one file after another by two policies.

    Parameters
    ----------
    profiles
        The other policy.
    plugins
        The plugins that profiles may name.

    Attributes
    ----------
    recorded, other
        Both clusters.
    tallies
        What became of the pods.
    unserved
        The number of recorded decisions about pods of profiles that the other policy does not
        have, by profile: these pods stay where they were then.
    began_s, now_s
        The times of the first decision and of the last one, in seconds since the epoch.

    Notes
    -----
    *Concurrency*: confined to its owner.

    *Cost*: three decisions for each recorded one. In memory two clusters, and what
    :class:`scheduler.policy_replay.tally.ProfileTally` says.
    """

    def __init__(
        self, profiles: Sequence[EffectiveProfile], plugins: Mapping[str, type[Plugin]]
    ) -> None:
        self.tallies = Tallies()
        self.packing = PackingOverTime()
        self.unserved: dict[str, int] = {}
        self.decisions = 0
        self.began_s: float | None = None
        self.now_s = 0.0
        self._served = frozenset(each.scheduler_name for each in profiles)
        self._victims_then: set[str] = set()
        self._group_profile = ""
        self.recorded = RecordedSide(plugins, profiles, self._measure_then)
        self.other = OtherSide(profiles, plugins, self.tallies, self._victims_then.discard)
        self.recorded.on_change = self.other.apply
        self.recorded.on_decision = self._decided

    def _measure_then(self, profile: str, seconds: float) -> None:
        if profile in self._served:
            self.tallies.of(profile).then.cycles.add(seconds)

    def file(self, frames: Iterable[list[Any]]) -> None:
        """Replay the records of a file, which begins with a checkpoint.

        Raises
        ------
        JournalError
            When a record makes no sense.
        """
        self.recorded.begin()
        self.other.begin_file(self.recorded.state.decoder)
        take_each(frames, self.take)
        self.recorded.settle()

    def take(self, record: Sequence[Any]) -> None:
        """Replay one record."""
        if record[0] == "snapshot":
            self._sample()
        elif record[0] == "victims":
            self._victims(record)
        self.recorded.take(record)

    def end(self) -> tuple[Packing, Packing]:
        """End the journal; return the packing of both clusters at its end.

        Raises
        ------
        ConfigError
            When the other policy has no profile that decided anything.
        """
        if self.unserved and not self.tallies:
            names = ", ".join(sorted(self.unserved))
            why = f"none has the schedulerName of a profile that decided in the journal: {names}"
            raise ConfigError("profiles", why)
        self.other.end(_LAST_PAUSE_S)
        return self._packing()

    def _sample(self) -> None:
        if self.began_s is not None and self.packing.is_due(self.now_s):
            self.packing.add(self.now_s, *self._packing())

    def _packing(self) -> tuple[Packing, Packing]:
        then, now = self.recorded.state.cluster.cache, self.other.world.cluster.cache
        return packing_of(then.dump().nodes.values()), packing_of(now.dump().nodes.values())

    # --- decisions ----------------------------------------------------------------------------

    def _turn(self, asked: Sequence[Any]) -> Turn:
        number, next_start, now_s, _, reads = asked
        self.decisions += 1
        self.now_s = now_s
        self.other.pass_time(now_s)
        if self.began_s is None:
            self.began_s = now_s
        return Turn(number, next_start, now_s, reads)

    def _fate(self, number: int, profile: str) -> Fate:
        """Return a pod that is decided about, in its version of that decision."""
        pod = self.recorded.state.decoder.pod(number)
        fate = self.other.fates.get(pod.metadata.uid)
        if fate is None:
            fate = Fate(pod, profile, self.now_s)
            fate.nominated_then = fate.nominated = pod.status.nominated_node_name
            self.other.fates[fate.uid] = fate
        fate.pod = pod
        return fate

    def _place_then(self, fate: Fate, node_name: str) -> None:
        nodes = self.recorded.state.cluster.nodes
        fate.then = Placing(node_name, zone_of(nodes, node_name), self.now_s)

    def _decided(self, record: Sequence[Any]) -> None:
        if record[0] == DECISION:
            self._decision(record)
        else:
            self._plan(record)

    def _decision(self, record: Sequence[Any]) -> None:
        _, asked, number, profile, _, _, then, *_ = record
        turn = self._turn(asked)
        if profile not in self._served:
            self.unserved[profile] = self.unserved.get(profile, 0) + 1
            return
        fate = self._fate(number, profile)
        if then[forms.NODE]:
            self._place_then(fate, then[forms.NODE])
        elif then[forms.NOMINATED] is not None:
            fate.nominated_then = then[forms.NOMINATED]
        for read in turn.reads:
            if read[0] == "start" and read[4] == _SUCCESS:
                self._count_victims_then(profile, read[2])
        self.other.try_pod(fate, turn)
        self.other.decide_victims(())

    def _count_victims_then(self, profile: str, uids: Iterable[str]) -> None:
        cache, counts = self.recorded.state.cluster.cache, self.tallies.of(profile).then.victims
        for uid in uids:
            info = cache.get_pod(uid)
            if info is not None and uid not in self._victims_then:
                self._victims_then.add(uid)
                counts[info.priority] += 1

    def _plan(self, record: Sequence[Any]) -> None:
        _, asked, numbers, profile, key, _, _, preempts, then = record
        turn = self._turn(asked)
        if profile not in self._served:
            self.unserved[profile] = self.unserved.get(profile, 0) + 1
            return
        fates = [self._fate(number, profile) for number in numbers]
        if then[0] == _FITS:
            nodes = {uid: node_name for uid, node_name, _ in then[6]}
            for fate in fates:
                if fate.uid in nodes:
                    self._place_then(fate, nodes[fate.uid])
        self._group_profile = profile
        self.other.try_members(group_key_of(key), fates, turn)
        if not preempts:  # no record of victims follows
            self.other.decide_victims(())

    def _victims(self, record: Sequence[Any]) -> None:
        found = record[2]
        uids = found[1] if found[0] == "victims" else ()
        self._count_victims_then(self._group_profile, uids)
        self.other.decide_victims(uids)

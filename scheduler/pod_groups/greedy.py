"""Place members one after another in one order, as far as that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.pod_info import has_affinity
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from scheduler.pod_groups.counting import is_counting, is_fixed, is_lasting
from scheduler.runtime.judgement import LikePods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_info import PodInfo
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.shapes import Likeness, Shapes
    from scheduler.pod_groups.trial_placements import TrialPlacements
    from scheduler.runtime.judgement import Candidates


class GreedyPass:
    """Decide about members as about single pods, each beside those before it.

    A member that was refused is tried again when others were placed after it, unless more pods
    cannot help it: it may need the company of a later one.

    Parameters
    ----------
    trial
        Takes the members that fit.
    shapes
        The shapes of the group: of members that are refused alike, one is asked about.
    among
        The only nodes that count; None for all nodes.

    Attributes
    ----------
    refused
        The last decision about each member that was asked about and did not fit, by UID.
    """

    def __init__(self, trial: TrialPlacements, shapes: Shapes, among: Candidates | None) -> None:
        self._trial = trial
        self._shapes = shapes
        self._among = among
        self.refused: dict[str, Decision] = {}
        self._full_shapes: set[int] = set()
        self._out: set[Likeness] = set()
        """Members that no further pods can help."""
        self._last: tuple[Likeness, LikePods | None] | None = None
        self._since: dict[Likeness, int] = {}
        """How many members were placed when one was refused."""

    def place(self, order: Sequence[PodInfo], least: int) -> None:
        """Place all members that fit.

        Parameters
        ----------
        least
            Stop when no more so many members can be placed in all; 0 to go on in any case.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget of the group is used up.
        """
        waiting = list(order)
        while waiting:
            before = len(self._trial)
            waiting = self._round(waiting, least)
            if len(self._trial) == before or len(self._trial) + len(waiting) < least:
                return

    def _round(self, order: Sequence[PodInfo], least: int) -> list[PodInfo]:
        """Try each member once; return those that may be tried again."""
        trial, again = self._trial, []
        out = 0
        for index, info in enumerate(order):
            likeness = self._shapes.likeness(info)
            if likeness.shape in self._full_shapes or likeness in self._out:
                out += 1
            elif self._since.get(likeness) == len(trial):
                again.append(info)
            else:
                state = CycleState(trial.budget)
                decision = trial.decide(info, self._among, state, self._like(info, likeness))
                if decision.is_placed:
                    self.refused.pop(info.uid, None)
                    continue
                self._note(info, decision, state)
                again.append(info)
            if least and len(trial) + len(again) + len(order) - index - 1 < least:
                return []
        return [info for info in again if not self._is_out(info)]

    def _like(self, info: PodInfo, likeness: Likeness) -> LikePods | None:
        """Return the members in a row that are like one, of which it is the next."""
        if self._last is None or self._last[0] != likeness:
            # Terms count the members before; users' plugins may look at anything.
            is_new = self._shapes.has_strangers or has_affinity(info.pod.spec.affinity)
            self._last = (likeness, None if is_new else LikePods())
        return self._last[1]

    def _is_out(self, info: PodInfo) -> bool:
        likeness = self._shapes.likeness(info)
        return likeness.shape in self._full_shapes or likeness in self._out

    def _note(self, info: PodInfo, decision: Decision, state: CycleState) -> None:
        """Remember a refusal for all whom it concerns."""
        likeness = self._shapes.likeness(info)
        self.refused[info.uid] = decision
        if decision.status.code is Code.ERROR:
            self._out.add(likeness)
            return
        names = decision.diagnosis.plugins_with()
        filters = [p for p in self._trial.framework.judges.filters if p.name in names]
        if len(filters) < len(names):
            # A PreFilter, Reserve or extender alone: nobody knows what helps.
            self._since[likeness] = len(self._trial)
        elif all(is_counting(p) or is_fixed(p, info) for p in filters):
            self._full_shapes.add(likeness.shape)
        elif all(is_lasting(p, state, info) for p in filters):
            self._out.add(likeness)
        else:
            self._since[likeness] = len(self._trial)

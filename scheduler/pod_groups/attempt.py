"""One attempt to place a group: which domains are tried, in which orders, and what that shows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from cache.trial import Trial
from cache.value import MutableValue
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, Code, Status, unschedulable
from scheduler.decision.decision import NO_NODES_AVAILABLE
from scheduler.pod_groups.domains import key_problem
from scheduler.pod_groups.greedy import GreedyPass
from scheduler.pod_groups.needs import beyond_cluster
from scheduler.pod_groups.packing import Packing
from scheduler.pod_groups.placement_search import MAX_DEPTH, PlacementSearch
from scheduler.pod_groups.plan import GroupPlan, Verdict
from scheduler.pod_groups.refusals import refusal_text, refused_whole
from scheduler.pod_groups.scopes import Scopes
from scheduler.pod_groups.shapes import Shapes
from scheduler.pod_groups.ties import keys_together, tied_members
from scheduler.runtime.judgement import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.pod_info import PodInfo
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.plan import GroupTask
    from scheduler.pod_groups.scopes import Scope
    from scheduler.pod_groups.trial_placements import TrialPlacements

MAX_DISTINCT: Final = 64
"""Distinct members up to which their terms are compared with each other."""

SHARE: Final = 0.7
"""Of the budget, after which no further domain is tried."""


class _Best(MutableValue):
    """The try that placed the most members, and what it refused."""

    fitting: int = -1
    scope: Scope | None = None
    refused: Mapping[str, Decision] = msgspec.field(default_factory=dict)


class GroupAttempt:
    """Try to place the members of one group.

    Parameters
    ----------
    trial
        Nothing is placed yet.
    task
        The group.
    pick
        Decides between equals: gives a number below its argument.
    search_steps
        The runs of the filters that may be spent on searching.
    """

    def __init__(
        self,
        trial: TrialPlacements,
        task: GroupTask,
        pick: Callable[[int], int],
        search_steps: int,
    ) -> None:
        self._trial = trial
        self._task = task
        self._pick = pick
        self._left_steps = search_steps
        self._columns = trial.cycle.snapshot.columns
        self._best = _Best()
        self._is_known = True
        self._counted = 0
        self._scopes: Scopes | None = None

    @property
    def refused(self) -> Mapping[str, Decision]:
        """The members that the best try so far refused."""
        return self._best.refused

    def run(self) -> GroupPlan:
        """Return the plan; what is placed stays only if enough members fit.

        Raises
        ------
        AttemptBudgetExceededError, PluginError
        """
        problem = self._problem()
        if problem:
            return refused_whole(self._task, problem, len(self._columns))
        shapes = Shapes(self._task.framework, self._task.members)
        scopes = self._scopes = Scopes(self._trial, self._task, shapes, self._pick)
        for scope in scopes.in_order():
            if self._is_late():
                self._is_known = False
                break
            if self._try(scope, shapes, scopes):
                return self._fits(scope, shapes, scopes)
        if self._best.scope is None:
            closest = scopes.closest()
            if self._look_closer(closest, shapes, scopes):
                return self._fits(closest, shapes, scopes)
        return self._does_not_fit(scopes)

    def cut_short(self) -> GroupPlan | None:
        """Return the plan of an attempt whose budget has run out; None if nothing is known yet.

        Nothing must be placed any more.
        """
        if self._scopes is None or self._best.scope is None:
            return None
        self._is_known = False
        return self._does_not_fit(self._scopes)

    def _problem(self) -> str:
        """Return why the group is refused whatever its members are; empty if it is not."""
        rules, columns = self._task.rules, self._columns
        if not len(columns):
            return NO_NODES_AVAILABLE
        if self._task.needed > len(self._task.members):
            return f"{len(self._task.members)} of {self._task.needed} members needed are known"
        lacks = beyond_cluster(columns, rules.min_resources)
        if lacks:
            return f"minResources are beyond the cluster: {lacks}"
        return key_problem(columns, rules.topology_key) if rules.topology_key else ""

    def _is_late(self) -> bool:
        budget = self._task.budget
        return self._best.scope is not None and budget.has_used(budget.limit_s * SHARE)

    # --- one domain ---------------------------------------------------------------------------

    def _try(self, scope: Scope, shapes: Shapes, scopes: Scopes) -> bool:
        """Try to place enough members in a domain; return whether they are placed."""
        order = scopes.members_in_order(scope)
        if self._place(scope, shapes, order, scope.among):
            self._counted = scopes.num_counted(self._trial.placed)
            return True
        if scopes.is_counted and not self._trial.num_reserves_refused:
            return False
        # The large ones may have taken the room of several small ones.
        has_choice = self._task.needed < len(order) and len(shapes) > 1
        if has_choice and self._place(scope, shapes, order[::-1], scope.among):
            return True
        if self._pack(scope, shapes, scopes):
            self._counted = scopes.num_counted(self._trial.placed)
            return True
        if self._gather(scope, shapes, scopes, order):
            return True
        return self._search(scope, shapes, order)

    def _gather(
        self, scope: Scope, shapes: Shapes, scopes: Scopes, order: Sequence[PodInfo]
    ) -> bool:
        """Try one domain after another for members with required affinity to each other.

        The first of them would go to the best node, whose domain may be too small for all.
        """
        distinct = {shapes.likeness(info): info for info in order}
        if len(distinct) > MAX_DISTINCT:
            return False
        keys = keys_together(list(distinct.values()))
        tied = tied_members(self._trial, shapes, order) if keys else set()
        together = [info for info in order if shapes.likeness(info) in tied]
        others = [info for info in order if shapes.likeness(info) not in tied]
        for key in keys:
            for domain in scopes.within(scope, key):
                if self._is_late():
                    return False
                first = GreedyPass(self._trial, shapes, domain)
                first.place(together, 0)
                if self._place(scope, shapes, others, scope.among, first.refused):
                    return True
        return False

    def _pack(self, scope: Scope, shapes: Shapes, scopes: Scopes) -> bool:
        """Try to place enough members of several shapes on the fullest nodes."""
        kinds = scopes.kinds()
        if kinds is None or len(kinds) == 1:
            return False
        packing = Packing(self._columns, kinds, scope.among)
        batches = packing.find(self._task.needed, self._pick, self._task.budget)
        if batches is None:
            return False
        waiting = {shape.index: iter(shape.members) for shape in shapes.shapes}
        for batch in batches:
            on_it = Candidates(np.array([batch.row], dtype=np.intp), len(self._columns))
            for _ in range(batch.members):
                state = CycleState(self._task.budget)
                self._trial.decide(next(waiting[batch.shape]), on_it, state)
        if len(self._trial) >= self._task.needed:
            return True
        self._trial.undo()
        return False

    def _place(
        self,
        scope: Scope,
        shapes: Shapes,
        order: Sequence[PodInfo],
        among: Candidates | None,
        refused: Mapping[str, Decision] | None = None,
    ) -> bool:
        """Place members in an order; undo it and return False if too few are placed in all."""
        greedy = GreedyPass(self._trial, shapes, among)
        # A later domain is only of interest if it holds all that are needed.
        least = 0 if self._best.scope is None else self._task.needed
        try:
            greedy.place(order, least)
        except AttemptBudgetExceededError:
            # Those beyond the minimum are tried another time.
            if len(self._trial) < self._task.needed:
                raise
        if len(self._trial) >= self._task.needed:
            return True
        self._note(scope, len(self._trial), {**(refused or {}), **greedy.refused})
        self._trial.undo()
        return False

    def _search(self, scope: Scope, shapes: Shapes, order: Sequence[PodInfo]) -> bool:
        if self._task.needed > MAX_DEPTH or self._asks_extenders(shapes):
            self._is_known = False
            return False
        search = PlacementSearch(self._trial, shapes, order, scope.among, self._left_steps)
        is_found = search.run(self._task.needed)
        self._left_steps = search.left_steps
        self._is_known &= search.is_complete
        if search.most > self._best.fitting:
            self._note(scope, search.most, self._best.refused)
        return is_found

    def _asks_extenders(self, shapes: Shapes) -> bool:
        """Return whether other programs are asked about members: too slow for a search."""
        extenders = self._task.framework.extenders
        if extenders is None:
            return False
        return any(extenders.consult(shape.first) is not None for shape in shapes.shapes)

    def _note(self, scope: Scope, fitting: int, refused: Mapping[str, Decision]) -> None:
        if fitting > self._best.fitting:
            self._best = _Best(fitting, scope, dict(refused))

    # --- the plan -----------------------------------------------------------------------------

    def _fits(self, scope: Scope, shapes: Shapes, scopes: Scopes) -> GroupPlan:
        """Place what fits besides, and return the plan."""
        placed = {member.decision.info.uid for member in self._trial.placed}
        rest = [info for info in scopes.members_in_order(scope) if info.uid not in placed]
        refused: Mapping[str, Decision] = {}
        if rest:
            greedy = GreedyPass(self._trial, shapes, scope.beyond)
            with suppress(AttemptBudgetExceededError):
                greedy.place(rest, 0)
            refused = greedy.refused
        return GroupPlan(
            Verdict.FITS,
            SUCCESS,
            tuple(self._trial.placed),
            refused,
            fitting=len(self._trial),
            counted=self._counted,
            domain=scope.domain,
            preferred_domain=scope.preferred_domain,
        )

    def _does_not_fit(self, scopes: Scopes) -> GroupPlan:
        best = self._best
        failure = next(
            (d.status for d in best.refused.values() if d.status.code is Code.ERROR), None
        )
        if self._is_known and scopes.is_beyond_bounds:
            failure = None
        verdict = Verdict.DOES_NOT_FIT if self._is_known else Verdict.NOT_FOUND
        if failure is not None:
            verdict = Verdict.FAILED
        fitting = min(best.fitting, self._task.needed - 1)
        text = refusal_text(self._task, scopes, best.scope, fitting, best.refused, verdict)
        status = unschedulable(text) if failure is None else Status(Code.ERROR, (text,))
        return GroupPlan(verdict, status, (), best.refused, fitting=fitting)

    def _look_closer(self, scope: Scope, shapes: Shapes, scopes: Scopes) -> bool:
        """Find out how many members fit in a domain that seemed too small for them.

        Returns
        -------
        Whether enough are placed after all.
        """
        slots = scopes.exact_slots(scope)
        if slots is None:
            return self._place(scope, shapes, scopes.members_in_order(scope), scope.among)
        members = list(self._task.members)
        fill = Trial(self._trial.cycle.snapshot)
        try:
            filled = 0
            for row, free in slots:
                node = self._columns.node_infos[row].name
                for info in members[filled : filled + free]:
                    fill.add_pod(info, node)
                filled = min(filled + free, len(members))
            following = members[filled]
            decision = self._trial.cycle.decide(
                self._task.framework,
                CycleState(self._task.budget),
                following,
                among=scope.among,
                post_filters=False,
            )
        finally:
            fill.undo()
        self._note(scope, filled, {following.uid: decision})
        return False

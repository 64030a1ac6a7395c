"""The search for the victims of one group.

what leaves anyway -> the domains, or the whole cluster
like members: victims by columns -> one plan, which has to fit
others, among few pods: each choice by a plan
others, among many: as much room as the largest member would need, by columns, or all room
    -> one plan -> what may stay where the members stand -> one plan
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code, Status, unschedulable
from scheduler.pod_groups.counted_room import NodeSlots, is_countable
from scheduler.pod_groups.counted_victims import MAX_DOMAINS, CountedSearch
from scheduler.pod_groups.losses import NO_HARM, WORST_HARM
from scheduler.pod_groups.plan import Verdict
from scheduler.pod_groups.planned_room import MAX_PLANS, OutOfPlansError, PlannedRoom
from scheduler.pod_groups.reprieve import choose
from scheduler.pod_groups.shapes import Shapes
from scheduler.pod_groups.standing_room import StandingRoom
from scheduler.runtime.judgement import pre_filter, search

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.default_preemption import Harm
    from plugins.framework.handle import Services
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from scheduler.pod_groups.losses import Losses, Unit
    from scheduler.pod_groups.plan import GroupPlan, GroupTask
    from scheduler.pod_groups.planned_room import Planner
    from scheduler.pod_groups.reprieve import Room

FEW_PODS: Final = 24
"""Pods among which all choices are looked at where each choice takes a plan."""

_MAX_SHAPES: Final = 8
"""Different members of which the nodes are judged before the search."""


class Found(NamedTuple):
    """Victims by UID, and the plan without them."""

    pods: Mapping[str, PodInfo]
    plan: GroupPlan


class _Chosen(NamedTuple):
    harm: Harm
    pods: Mapping[str, PodInfo]


class _Offer(NamedTuple):
    """Pods without which the group may fit, and the units that they belong to."""

    pods: list[PodInfo]
    units: list[Unit]


class VictimAttempt:
    """The search for the victims of one group.

    Parameters
    ----------
    snapshot
        The nodes.
    services
        The nominations.
    task
        The group.
    planner
        Places its members.
    losses
        What may be evicted.
    leaving
        The pods that leave anyway, by UID.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        services: Services,
        task: GroupTask,
        planner: Planner,
        losses: Losses,
        leaving: Mapping[str, PodInfo],
    ) -> None:
        self._snapshot = snapshot
        self._services = services
        self._task = task
        self._losses = losses
        self._leaving = leaving
        self._room = PlannedRoom(snapshot, planner, task)
        # As long as nothing is tried in the snapshot.
        self._infos = list(snapshot.columns.node_infos)
        self._slots = NodeSlots(task.members)
        self._free = self._free_amounts()

    def undo(self) -> None:
        """Take back all that was tried in the snapshot."""
        self._room.undo()

    def run(self) -> Found | Status:
        """Return the victims, or why there are none."""
        domains = self._domains()
        if not domains:
            return refusal(f"no node has the label {self._task.rules.topology_key!r}")
        if self._leaving:
            plan = self._plan(())
            if plan.verdict is Verdict.FITS:
                return Found({}, plan)
        if is_countable(self._task):
            found = self._counted(domains)
            if found is not None:
                return found
        return self._planned(domains)

    def _plan(self, pods: Iterable[PodInfo]) -> GroupPlan:
        """Return the plan without some pods, and without those that leave anyway."""
        self._room.empty(self._leaving.values())
        self._room.remove(pods)
        return self._room.plan()

    def _domains(self) -> list[RowArray]:
        """Return the nodes of each domain that may hold the group."""
        columns, key = self._snapshot.columns, self._task.rules.topology_key
        if not key:
            return [np.arange(len(columns), dtype=np.intp)]
        _, ids = columns.labels.get(key)
        own = self._losses.gangs.nodes_of(self._task.rules.key)
        fixed = {int(ids[columns.row_of[name]]) for name in own if name in columns.row_of} - {0}
        numbers, first = np.unique(ids, return_index=True)
        # By the first node of each, as in Grouping: ids of values depend on values of the past.
        ordered = numbers[np.argsort(first)].tolist()
        wanted = fixed or {*ordered} - {0}
        return [np.flatnonzero(ids == number) for number in ordered if number in wanted]

    # --- like members -------------------------------------------------------------------------

    def _counted(self, domains: Sequence[RowArray]) -> Found | Status | None:
        """Return the victims by columns; None when the group does not fit without these."""
        counted = self._counted_search()
        found = counted.find_cheapest(domains, self._task.needed)
        if not found:
            return self._too_few(max(map(counted.most, domains)))
        for _, (pods, _) in found[:MAX_DOMAINS]:
            plan = self._plan(pods.values())
            if plan.verdict is Verdict.FITS:
                return Found(pods, plan)
        return None

    def _counted_search(self) -> CountedSearch:
        return CountedSearch(
            self._snapshot.all_nodes(),
            self._usable(),
            self._free,
            self._slots,
            self._losses,
            self._task.budget,
        )

    def _too_few(self, most: int) -> Status:
        without = f"without all pods of a priority below {self._losses.priority}"
        if most >= self._task.needed:
            return refusal(f"{without} it would fit, but not with all gangs at their minimum")
        return refusal(f"{without} {most} of {self._task.needed} members would fit")

    def _usable(self) -> BoolArray:
        """Return bool (n_nodes,): the nodes that evictions may make feasible, or that are."""
        usable = np.ones(len(self._snapshot), dtype=np.bool_)
        shapes = Shapes(self._task.framework, self._task.members).shapes
        for shape in shapes[:_MAX_SHAPES]:
            usable &= self._usable_for(shape.first)
        return usable

    def _usable_for(self, info: PodInfo) -> BoolArray:
        framework, nodes = self._task.framework, self._snapshot.all_nodes()
        state = CycleState(self._task.budget)
        found = search(framework, state, info, nodes, pre_filter(framework, state, info, nodes))
        usable = np.zeros(len(nodes), dtype=np.bool_)
        if found.outcome is None:
            usable[:] = found.pre.status.code is Code.UNSCHEDULABLE
            return usable
        rows = slice(None) if found.nodes.rows is None else found.nodes.rows
        helps = np.ones(len(found.nodes), dtype=np.bool_)
        helps[found.outcome.indices_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)] = False
        usable[rows] = helps
        return usable

    def _free_amounts(self) -> IntArray:
        """Return what is free on each node without the pods that leave anyway.

        Nominated pods that the group may not displace count as if they ran there.
        """
        slots = self._slots
        free = slots.all_free(self._snapshot.all_nodes())
        row_of = self._snapshot.columns.row_of
        for info in self._leaving.values():
            free[row_of[info.node_name]] += slots.freed(info)
        own = {info.uid for info in self._task.members}
        for name in self._services.nominated_node_names():
            row = row_of.get(name)
            if row is not None:
                for info in self._services.nominated_pods(name):
                    if info.priority >= self._losses.priority and info.uid not in own:
                        free[row] -= slots.freed(info)
        return free

    # --- other members ------------------------------------------------------------------------

    def _planned(self, domains: Sequence[RowArray]) -> Found | Status:
        """Return the victims by plans, in the cheapest of the domains."""
        is_few = self._losses.are_few(self._infos, FEW_PODS)
        best, most = None, 0
        if not is_few:
            best, most = self._best(self._counted_offers(domains))
        if best is None:
            best, most = self._best(
                self._whole_offers(domains if is_few else domains[:MAX_DOMAINS])
            )
        if best is None:
            return self._too_few(most)
        plan = self._plan(best.pods.values())
        if plan.verdict is not Verdict.FITS:
            return refusal("no victims were found")
        return Found(best.pods, plan)

    def _best(self, offers: Iterable[_Offer]) -> tuple[_Chosen | None, int]:
        """Return the best victims of all offers, and the most members that fitted with any."""
        best: _Chosen | None = None
        most = 0
        for offer in offers:
            plan = self._plan(offer.pods)
            most = max(most, plan.fitting)
            if plan.verdict is Verdict.FITS:
                chosen = self._choose(offer, plan)
                if best is None or chosen.harm < best.harm:
                    best = chosen
        return best, most

    def _counted_offers(self, domains: Sequence[RowArray]) -> Iterator[_Offer]:
        """Yield pods without which as many of the largest members would fit, in each domain."""
        infos, row_of = self._infos, self._snapshot.columns.row_of
        found = self._counted_search().find_cheapest(domains, self._task.needed)
        for _, (pods, _) in found[:MAX_DOMAINS]:
            rows = {row_of[one.node_name] for one in pods.values()}
            units = self._losses.units(infos[row] for row in rows)
            near = [unit for unit in units if any(one.uid in pods for one in unit.pods)]
            if pods:
                yield _Offer(list(pods.values()), near)

    def _whole_offers(self, domains: Sequence[RowArray]) -> Iterator[_Offer]:
        """Yield all pods of each domain that may be evicted."""
        for rows in domains:
            units = self._losses.units(self._infos[row] for row in rows.tolist())
            if units:
                yield _Offer([one for unit in units for one in unit.pods], units)

    def _choose(self, offer: _Offer, plan: GroupPlan) -> _Chosen:
        """Return the victims among some pods, without all of which there is a plan."""
        pods, units = offer
        standing = self._let_stay(pods, units, plan)
        if len(pods) > FEW_PODS or self._room.is_late:
            return standing
        room = self._room
        room.empty(self._leaving.values())
        try:
            found = choose(room, self._losses, units, FEW_PODS, MAX_PLANS)
        except OutOfPlansError:
            found = None
        if found is None or standing.harm < found[0]:
            return standing
        return _Chosen(*found)

    def _let_stay(self, pods: list[PodInfo], units: list[Unit], plan: GroupPlan) -> _Chosen:
        """Return the victims that remain if pods stay that are not in the way of a plan."""
        losses = self._losses
        members = [(one.decision.info, one.decision.node_name) for one in plan.placed]
        row_of = self._snapshot.columns.row_of
        free = {name: self._free[row_of[name]].tolist() for _, name in members}
        room: Room = StandingRoom(self._slots, free, members)
        found = choose(room, losses, units, 0, 0)
        if found is not None and self._plan(found[1].values()).verdict is Verdict.FITS:
            return _Chosen(*found)
        lost = {info.uid: info for info in losses.gangs.with_all_lost(pods)}
        if any(losses.gangs.priority_of(info) >= losses.priority for info in lost.values()):
            return _Chosen(WORST_HARM, {})
        return _Chosen(losses.harm(lost.values()) if lost else NO_HARM, lost)


def refusal(why: str) -> Status:
    """Return the refusal of a preemption."""
    return unschedulable(f"preemption: {why}")

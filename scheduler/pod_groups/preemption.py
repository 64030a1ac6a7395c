"""Victims for a group: chosen for the placement of all members that it needs, or not at all.

# Differs: kube-scheduler evicts for a group without keeping its placement, never with a required
topology, and evicts members of gangs one by one unless their disruptionMode is PodGroup.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import ColumnSpec
from cache.value import Value
from plugins.default_preemption import NEVER, Gangs, is_stuck
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.status import Status
from plugins.names import DEFAULT_PREEMPTION
from scheduler.pod_groups.losses import Losses
from scheduler.pod_groups.victim_attempt import VictimAttempt, refusal
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.node_info import NodeInfo
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.handle import Services
    from scheduler.pod_groups.plan import GroupTask
    from scheduler.pod_groups.planned_room import Planner
    from scheduler.pod_groups.victim_attempt import Found


def _num_terminating(node_info: NodeInfo) -> int:
    return sum(info.is_terminating for info in node_info.pods.values())


TERMINATING: Final = ColumnSpec(("terminating pods",), _num_terminating, np.int32, of_pods=True)
"""int32: how many pods of each node are being deleted."""


class GroupVictims(Value, frozen=True):
    """The pods to remove for a group to fit, and where its members go then.

    Parameters
    ----------
    pods
        The most important first.
    pdb_violations
        The number of evictions that violate a PodDisruptionBudget.
    members
        The members that fit once the victims are gone, each with its node.
    priority
        Of the group as a preemptor.
    gangs
        The gangs that are evicted whole.
    gang_members
        How many of the victims are members of gangs.
    domain
        The value of the topology key; empty without one.
    plugin
        In whose name the victims are evicted.
    """

    pods: tuple[PodInfo, ...]
    pdb_violations: int
    members: tuple[tuple[PodInfo, str], ...]
    priority: int
    gangs: frozenset[GroupKey] = frozenset()
    gang_members: int = 0
    domain: str = ""
    plugin: str = DEFAULT_PREEMPTION


class GroupPreemption:
    """Find victims for groups.

    Parameters
    ----------
    snapshot
        The nodes. Whatever is tried is undone.
    services
        Groups, budgets, nominations and the preemptions under way.
    wall_clock
        Seconds since the epoch.

    Notes
    -----
    *Concurrency*: scheduling thread only.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        services: Services,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._snapshot = snapshot
        self._services = services
        self._wall_clock = wall_clock
        self._gangs = Gangs(lambda: services.pod_groups, lambda: services.preemption)

    def find(self, task: GroupTask, planner: Planner) -> GroupVictims | Status:
        """Return the victims for a group that does not fit, or why preemption does not help.

        Pods that leave anyway are no victims: a group that fits without them has none, and waits.

        Parameters
        ----------
        planner
            Places the members in the snapshot.

        *Cost*: for like members without terms that of :class:`CountedSearch` and one plan; for
        others plans, within the budget of the task.
        """
        if task.rules.never_preempts:
            return refusal(NEVER)
        for info in task.members:
            if info.pod.spec.preemption_policy == "Never":
                return refusal(f"pod {info.key}: {NEVER}")
        priority = priority_of(task)
        self._gangs.begin(self._snapshot.columns)
        leaving = self._leaving()
        budgets = self._services.disruption_budgets
        losses = Losses(self._gangs, budgets, priority, task.rules.key, leaving)
        attempt = VictimAttempt(self._snapshot, self._services, task, planner, losses, leaving)
        try:
            found = attempt.run()
        except AttemptBudgetExceededError:
            return refusal("no victims were found in the time given")
        except PluginError as error:
            return error.status
        finally:
            attempt.undo()
        if isinstance(found, Status):
            return found
        if not found.pods and not leaving:
            return refusal("the group fits without it")
        return _group_victims(found, losses)

    def _leaving(self) -> Mapping[str, PodInfo]:
        """Return the pods that leave anyway, by UID, but for those that should be gone by now."""
        infos = self._snapshot.columns.node_infos
        chosen = set(self._services.preemption.leaving())
        now_s = self._wall_clock()
        found: dict[str, PodInfo] = {}
        for row in np.flatnonzero(self._snapshot.columns.derived(TERMINATING)).tolist():
            for info in infos[row].pods.values():
                if info.is_terminating and not is_stuck(info.pod, now_s):
                    found[info.uid] = info
        if chosen:
            for node_info in infos:
                found |= {uid: info for uid, info in node_info.pods.items() if uid in chosen}
        return found


def priority_of(task: GroupTask) -> int:
    """Return the priority of a group as a preemptor: its own, else the lowest of its members."""
    priority = task.rules.priority
    return min(info.priority for info in task.members) if priority is None else priority


def _group_victims(found: Found, losses: Losses) -> GroupVictims:
    members = tuple((one.decision.info, one.decision.node_name) for one in found.plan.placed)
    if not found.pods:
        return GroupVictims((), 0, members, losses.priority, domain=found.plan.domain)
    victims = losses.victims(found.pods.values())
    return GroupVictims(
        victims.pods,
        victims.pdb_violations,
        members,
        losses.priority,
        victims.gangs,
        victims.gang_members,
        found.plan.domain,
    )

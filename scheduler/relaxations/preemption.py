"""The priority with which preemption would make room for a pod, and who would have to go."""

from __future__ import annotations

from dataclasses import replace as evolve
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from cache.columns import ColumnSpec
from cache.pod_info import PodInfo
from plugins.default_preemption import DefaultPreemption, DryRunError
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from scheduler.relaxations.budget import BudgetSpentError
from scheduler.relaxations.costs import COSTS, Kind
from scheduler.relaxations.relaxation import Change, Relaxation
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.node_statuses import SearchStatuses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cache.node_info import NodeInfo
    from plugins.default_preemption import Candidate, Harm
    from scheduler.relaxations.node_groups import Rejected
    from scheduler.relaxations.option import Option
    from scheduler.relaxations.verifier import Verifier

HIGHEST_OF_USERS: Final = 1_000_000_000
"""The highest priority of a PriorityClass of users. Source: HighestUserDefinablePriority,
pkg/apis/scheduling/types.go (1.36)."""

MAX_VICTIMS: Final = 32
"""Victims that are named for a node."""

MAX_NODES: Final = 8

MAX_PRIORITIES: Final = 16
"""Priorities that are tried one by one where pods are nominated for nodes."""

MAX_TRIES: Final = 8
"""Dry runs for the pod with another change, in one search: each may take some ten milliseconds."""

_NEVER: Final = "Never"


class _Trial(NamedTuple):
    """A policy, a priority, and another change to try."""

    policy: str | None
    priority: int | None
    option: Option | None = None


class _Room(NamedTuple):
    """The pods that would go from a node, and the harm; None where none has to go."""

    victims: tuple[str, ...]
    num_victims: int
    harm: Harm | None


def _priorities_on(node_info: NodeInfo) -> frozenset[int]:
    return frozenset({info.pod.spec.priority or 0 for info in node_info.pods.values()})


_PRIORITIES: Final = ColumnSpec(("priorities",), _priorities_on, np.object_, of_pods=True)
"""The distinct priorities of the pods of each node."""


class PreemptionSearch:
    """Dry runs of preemption for the pod with other priorities.

    Parameters
    ----------
    verifier
        Judges the pod.

    Notes
    -----
    *Cost*: of a dry run with 5 000 nodes some tens of milliseconds, and one for each halving of the
    distinct priorities.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._plugin = _plugin_of(verifier)
        self._rooms: dict[_Trial, Mapping[str, _Room]] = {}
        self._priorities: list[int] | None = None
        self._lowest = HIGHEST_OF_USERS
        self._is_crowded = False
        self._tries = 0

    def of_group(self, group: Rejected) -> Iterator[Relaxation]:
        """Yield the relaxations of one group: none needed, another policy, a higher priority.

        Raises
        ------
        BudgetSpentError
            When the budget is used up.
        """
        if self._plugin is None:
            return
        spec = self._verifier.info.pod.spec
        allowed = spec.preemption_policy
        found = self._helps(_Trial(allowed, spec.priority), group)
        if found is not None:
            yield found
            return
        if allowed == _NEVER:
            found = self._helps(_Trial(None, spec.priority), group, _policy_change())
            if found is not None:
                yield found
            return
        priority = self._least_priority(group)
        if priority is not None:
            now = self._verifier.info.priority
            text = f"priority {priority} instead of {now}"
            trial = _Trial(allowed, priority)
            found = self._helps(trial, group)
            if found is not None:
                text += ", with preemption" if found.victims else ""
                change = Change(
                    Kind.PRIORITY, "spec.priority", "priority", str(now), str(priority), text,
                    COSTS[Kind.PRIORITY],
                )  # fmt: skip
                yield evolve(found, changes=(change,))

    def _least_priority(self, group: Rejected) -> int | None:
        """Return the lowest priority that helps; there are few distinct ones in a cluster."""
        wanted = self._distinct_priorities()
        if self._is_crowded:
            # Once the pod need not mind nominated pods, it may fit elsewhere and preempts nobody.
            some = wanted[:MAX_PRIORITIES]
            return next((each for each in some if self._would_help(each, group)), None)
        if not wanted or not self._would_help(wanted[-1], group):
            return None
        low, high = -1, len(wanted) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._would_help(wanted[middle], group):
                high = middle
            else:
                low = middle
        return wanted[high]

    def _would_help(self, priority: int, group: Rejected) -> bool:
        policy = self._verifier.info.pod.spec.preemption_policy
        return self._helps(_Trial(policy, priority), group) is not None

    def _distinct_priorities(self) -> list[int]:
        """Return the priorities to try: one above each that now is out of reach."""
        if self._priorities is None:
            found: set[int] = set()
            verifier = self._verifier
            nominated = verifier.framework.nominated
            found.update(*set(verifier.snapshot.columns.derived(_PRIORITIES).tolist()))
            if nominated is not None:
                for node_name in nominated.node_names():
                    verifier.budget.check()
                    if node_name not in verifier.snapshot:
                        continue
                    ahead = nominated.ahead_of(verifier.info, node_name)
                    found.update(info.priority for info in ahead)
                    self._is_crowded |= bool(ahead)
            self._lowest = min(found, default=HIGHEST_OF_USERS)
            now = self._verifier.info.priority
            self._priorities = sorted(each + 1 for each in found if now <= each < HIGHEST_OF_USERS)
        return self._priorities

    def after(self, options: Iterable[Option], group: Rejected) -> Iterator[Relaxation]:
        """Yield the first change of the pod after which preemption would make room for it.

        Parameters
        ----------
        options
            All-or-nothing changes of the pod, in the order in which they are tried. A search does
            not try more than :data:`MAX_TRIES`.

        Raises
        ------
        BudgetSpentError
            When the budget is used up.
        """
        spec = self._verifier.info.pod.spec
        if self._plugin is None or spec.preemption_policy == _NEVER or not self._may_evict():
            return
        for option in options:
            trial = _Trial(spec.preemption_policy, spec.priority, option)
            if trial not in self._rooms and self._tries >= MAX_TRIES:
                return
            self._tries += trial not in self._rooms
            found = self._helps(trial, group, option.change)
            if found is not None:
                yield found
                return

    def _may_evict(self) -> bool:
        """Return whether any pod is less important."""
        self._distinct_priorities()
        return self._lowest < self._verifier.info.priority

    # --- dry runs -----------------------------------------------------------------------------

    def _helps(self, trial: _Trial, group: Rejected, *changes: Change) -> Relaxation | None:
        rooms = self._dry_run(trial)
        infos = self._verifier.snapshot.columns.node_infos
        names = sorted(name for row in group.rows.tolist() if (name := infos[row].name) in rooms)
        if not names:
            return None
        first = min(names, key=lambda name: (rooms[name].harm is not None, rooms[name].harm))
        nodes = (first, *(name for name in names if name != first))[:MAX_NODES]
        room = rooms[first]
        return Relaxation(changes, len(names), nodes, room.victims, room.num_victims)

    def _dry_run(self, trial: _Trial) -> Mapping[str, _Room]:
        known = self._rooms.get(trial)
        if known is None:
            known = self._rooms[trial] = self._survey(trial)
        return known

    def _survey(self, trial: _Trial) -> Mapping[str, _Room]:
        """Return the nodes that would be feasible, or on which preemption would help."""
        verifier, plugin = self._verifier, self._plugin
        if plugin is None:
            return {}
        pod = verifier.info.pod
        if trial.option is not None:
            pod = trial.option.edit(pod)
        spec = replace(pod.spec, preemption_policy=trial.policy, priority=trial.priority)
        info = PodInfo(replace(pod, spec=spec))
        state = verifier.state()
        nodes = verifier.snapshot.all_nodes()
        try:
            judged = verifier.judged(info, state)
            if judged.count:
                # Less important pods that are nominated for a node do not count any more.
                return {each.name: _Room((), 0, None) for each in judged.view.node_infos()}
            search = judged.search
            statuses = SearchStatuses(nodes, search.pre, search.outcome)
            candidates = plugin.survey(state, info, nodes, statuses).candidates
        except (DryRunError, PluginError):
            return {}
        except AttemptBudgetExceededError as error:
            raise BudgetSpentError(verifier.budget.out_of_time) from error
        return {name: _room(candidate) for name, candidate in candidates.items()}


def _room(candidate: Candidate) -> _Room:
    pods = candidate.victims.pods
    return _Room(tuple(info.key for info in pods[:MAX_VICTIMS]), len(pods), candidate.harm)


def _plugin_of(verifier: Verifier) -> DefaultPreemption | None:
    plugins = verifier.framework.points.get("postFilter", ())
    return next((each for each in plugins if isinstance(each, DefaultPreemption)), None)


def _policy_change() -> Change:
    return Change(
        Kind.PREEMPTION_POLICY, "spec.preemptionPolicy", _NEVER, _NEVER, "PreemptLowerPriority",
        "preemptionPolicy PreemptLowerPriority instead of Never", COSTS[Kind.PREEMPTION_POLICY],
    )  # fmt: skip

"""The priority with which preemption would make room for a pod, and who would have to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.pod_info import PodInfo
from plugins.default_preemption import DefaultPreemption, DryRunError
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from scheduler.relaxations.budget import BudgetSpentError
from scheduler.relaxations.costs import COSTS, Kind
from scheduler.relaxations.relaxation import Change, Relaxation
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.node_statuses import SearchStatuses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plugins.default_preemption import Candidate
    from scheduler.relaxations.node_groups import Rejected
    from scheduler.relaxations.verifier import Verifier

HIGHEST_OF_USERS: Final = 1_000_000_000
"""The highest priority of a PriorityClass of users. Source: HighestUserDefinablePriority,
pkg/apis/scheduling/types.go (1.36)."""

MAX_VICTIMS: Final = 8
_NEVER: Final = "Never"


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
        self._candidates: dict[tuple[str | None, int | None], Mapping[str, Candidate]] = {}
        self._priorities: list[int] | None = None

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
        found = self._helps(allowed, spec.priority, group)
        if found is not None:
            yield found
            return
        if allowed == _NEVER:
            found = self._helps(None, spec.priority, group, _policy_change())
            if found is not None:
                yield found
            return
        priority = self._least_priority(group)
        if priority is not None:
            now = self._verifier.info.priority
            change = Change(
                Kind.PRIORITY, "spec.priority", "priority", str(now), str(priority),
                f"priority {priority} instead of {now}, with preemption", COSTS[Kind.PRIORITY],
            )  # fmt: skip
            found = self._helps(allowed, priority, group, change)
            if found is not None:
                yield found

    def _least_priority(self, group: Rejected) -> int | None:
        """Return the lowest priority that helps; there are few distinct ones in a cluster."""
        allowed = self._verifier.info.pod.spec.preemption_policy
        wanted = self._distinct_priorities()
        if not wanted or self._helps(allowed, wanted[-1], group) is None:
            return None
        low, high = -1, len(wanted) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._helps(allowed, wanted[middle], group) is None:
                low = middle
            else:
                high = middle
        return wanted[high]

    def _distinct_priorities(self) -> list[int]:
        """Return the priorities to try: one above each that now is out of reach."""
        if self._priorities is None:
            found: set[int] = set()
            for node_info in self._verifier.snapshot.all_nodes().node_infos():
                self._verifier.budget.check()
                found.update(info.priority for info in node_info.pods.values())
            now = self._verifier.info.priority
            self._priorities = sorted(each + 1 for each in found if now <= each < HIGHEST_OF_USERS)
        return self._priorities

    def _helps(
        self, policy: str | None, priority: int | None, group: Rejected, *changes: Change
    ) -> Relaxation | None:
        candidates = self._dry_run(policy, priority)
        infos = self._verifier.snapshot.columns.node_infos
        names = [infos[row].name for row in group.rows.tolist() if infos[row].name in candidates]
        if not names:
            return None
        first = min(names, key=lambda name: candidates[name].harm)
        victims = tuple(each.key for each in candidates[first].victims.pods[:MAX_VICTIMS])
        nodes = (first, *(name for name in names if name != first))[:MAX_VICTIMS]
        return Relaxation(changes, len(names), nodes, victims)

    def _dry_run(self, policy: str | None, priority: int | None) -> Mapping[str, Candidate]:
        key = policy, priority
        known = self._candidates.get(key)
        if known is None:
            known = self._candidates[key] = self._survey(policy, priority)
        return known

    def _survey(self, policy: str | None, priority: int | None) -> Mapping[str, Candidate]:
        verifier, plugin = self._verifier, self._plugin
        if plugin is None:
            return {}
        pod = verifier.info.pod
        spec = replace(pod.spec, preemption_policy=policy, priority=priority)
        info = PodInfo(replace(pod, spec=spec))
        state = verifier.state()
        nodes = verifier.snapshot.all_nodes()
        try:
            search = verifier.judged(info, state).search
            statuses = SearchStatuses(nodes, search.pre, search.outcome)
            return plugin.survey(state, info, nodes, statuses).candidates
        except (DryRunError, PluginError):
            return {}
        except AttemptBudgetExceededError as error:
            raise BudgetSpentError(verifier.budget.out_of_time) from error


def _plugin_of(verifier: Verifier) -> DefaultPreemption | None:
    plugins = verifier.framework.points.get("postFilter", ())
    return next((each for each in plugins if isinstance(each, DefaultPreemption)), None)


def _policy_change() -> Change:
    return Change(
        Kind.PREEMPTION_POLICY, "spec.preemptionPolicy", _NEVER, _NEVER, "PreemptLowerPriority",
        "preemptionPolicy PreemptLowerPriority instead of Never", COSTS[Kind.PREEMPTION_POLICY],
    )  # fmt: skip

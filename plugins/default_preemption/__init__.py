"""DefaultPreemption: makes a pod schedulable by evicting less important pods."""

from plugins.default_preemption.candidates import EVERYTHING, Extent
from plugins.default_preemption.choice import Candidate, Harm, decisive_rung, pick_node
from plugins.default_preemption.dry_run import DryRunError, split_by_budgets
from plugins.default_preemption.eligibility import NEVER, is_stuck
from plugins.default_preemption.emptied_nodes import LOWEST_PRIORITY
from plugins.default_preemption.gang_dry_run import importance_in, victims_of
from plugins.default_preemption.gangs import Gang, Gangs
from plugins.default_preemption.importance import start_time_s
from plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs, Survey

__all__ = [
    "EVERYTHING",
    "LOWEST_PRIORITY",
    "NEVER",
    "Candidate",
    "DefaultPreemption",
    "DefaultPreemptionArgs",
    "DryRunError",
    "Extent",
    "Gang",
    "Gangs",
    "Harm",
    "Survey",
    "decisive_rung",
    "importance_in",
    "is_stuck",
    "pick_node",
    "split_by_budgets",
    "start_time_s",
    "victims_of",
]

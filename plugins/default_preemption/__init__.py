"""DefaultPreemption: makes a pod schedulable by evicting less important pods."""

from plugins.default_preemption.choice import Candidate, Harm, decisive_rung, pick_node
from plugins.default_preemption.dry_run import DryRunError
from plugins.default_preemption.plugin import DefaultPreemption, DefaultPreemptionArgs, Survey

__all__ = [
    "Candidate",
    "DefaultPreemption",
    "DefaultPreemptionArgs",
    "DryRunError",
    "Harm",
    "Survey",
    "decisive_rung",
    "pick_node",
]

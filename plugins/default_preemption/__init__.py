"""DefaultPreemption: makes room for a pod by letting less important ones go."""

from plugins.default_preemption.args import DefaultPreemptionArgs
from plugins.default_preemption.choice import Candidate, Harm, decisive_rung, pick_node
from plugins.default_preemption.plugin import DefaultPreemption

__all__ = [
    "Candidate",
    "DefaultPreemption",
    "DefaultPreemptionArgs",
    "Harm",
    "decisive_rung",
    "pick_node",
]

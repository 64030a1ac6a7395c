"""The smallest change that helps a refused pod, and why the node of a placed one won.

Everything here is a function of an offline cluster: a profile, a snapshot and a pod. Candidates are
found in columns over the nodes, and each one that is reported was verified by the profile's own
filters on the changed pod. What is reported is bounded, and so is the time that it takes.
"""

from scheduler.relaxations.budget import Budget
from scheduler.relaxations.finding import find_relaxations
from scheduler.relaxations.forms import relaxations_data, relaxations_text
from scheduler.relaxations.relaxation import (
    Change,
    NewNode,
    NodeGroup,
    Reason,
    Relaxation,
    Relaxations,
    without_names,
)

__all__ = [
    "Budget",
    "Change",
    "NewNode",
    "NodeGroup",
    "Reason",
    "Relaxation",
    "Relaxations",
    "find_relaxations",
    "relaxations_data",
    "relaxations_text",
    "without_names",
]

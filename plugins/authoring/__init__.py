"""Users' plugins: the classes that they use, and their adapter to the framework's interfaces.

A user's plugin is a plain class with a filter or a score, which imports ``berth``; see
docs/plugins.md. Loading, trial and containment of users' code belong to
:mod:`scheduler.user_plugins`.
"""

from plugins.authoring.adapter import PolicyPlugin, adapt
from plugins.authoring.args import Args
from plugins.authoring.checked_results import PolicyAnswerError
from plugins.authoring.guard import ABSENT, Absent, Guard, Unguarded
from plugins.authoring.node import Node
from plugins.authoring.nodes import Labels, Nodes
from plugins.authoring.pod import Pod
from plugins.authoring.user_class import PolicyClassError, is_policy, policy_name

__all__ = [
    "ABSENT",
    "Absent",
    "Args",
    "Guard",
    "Labels",
    "Node",
    "Nodes",
    "Pod",
    "PolicyAnswerError",
    "PolicyClassError",
    "PolicyPlugin",
    "Unguarded",
    "adapt",
    "is_policy",
    "policy_name",
]

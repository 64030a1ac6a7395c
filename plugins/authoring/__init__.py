"""Policy in ten lines of Python: what a plugin of a user's imports. See docs/plugins.md."""

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

"""Policy in ten lines of Python: what a plugin of a user's imports. See docs/plugins.md."""

from plugins.policy.adapter import PolicyPlugin, adapt
from plugins.policy.answers import PolicyAnswerError
from plugins.policy.args import Args
from plugins.policy.guard import ABSENT, Absent, Guard, Unguarded
from plugins.policy.node import Node
from plugins.policy.nodes import Labels, Nodes
from plugins.policy.pod import Pod
from plugins.policy.user_class import PolicyClassError, is_policy, policy_name

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

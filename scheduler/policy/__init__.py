"""Policies that change while berth runs: which profiles there are, and where each comes from.

:class:`~scheduler.policy.policies.Policies`, which compiles them, is imported from its own module:
profiles know their origin, and it knows profiles.
"""

from scheduler.policy.policy_origin import DEFAULT_ORIGIN, PolicyOrigin
from scheduler.policy.policy_spec import Mode, PolicySpec, PythonSource, ShadowOptions
from scheduler.policy.policy_status import Condition, PolicyOutcome, PolicyStatus

__all__ = [
    "DEFAULT_ORIGIN",
    "Condition",
    "Mode",
    "PolicyOrigin",
    "PolicyOutcome",
    "PolicySpec",
    "PolicyStatus",
    "PythonSource",
    "ShadowOptions",
]

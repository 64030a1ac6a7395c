r"""SchedulingProfiles: policies as objects of the API, taken over while berth runs.

    API server --list, watch--> kopf, on a thread of its own --> reconciler, on the policies thread
                                                                   |  decoded
    API server <--status, by the leader-- the I/O loop <-- KnownProfiles

kopf is the only watch, and may fail: a supervisor starts it again, and the list with which each run
begins has what the one before it missed. Whatever happens to any of this, the policies that run go
on running.

Whoever only wants the command line or the options does not import kopf: it takes a third of a
second and 60 MB.
"""

from scheduler.profiles.operator.crd_operator import CrdOperator
from scheduler.profiles.operator.flags import add_operator_flags, operator_options
from scheduler.profiles.operator.operator_metrics import add_operator_metrics
from scheduler.profiles.operator.options import OperatorOptions

__all__ = [
    "CrdOperator",
    "OperatorOptions",
    "add_operator_flags",
    "add_operator_metrics",
    "operator_options",
]

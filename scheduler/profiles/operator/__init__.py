r"""The operator for SchedulingProfiles: it watches them, applies them and writes their status.

    API server --list, watch--> kopf, on its own thread --> reconciler, on the policies thread
                                                                   |  decoded
    API server <--status, by the leader-- the I/O loop <-- KnownProfiles

kopf is the only watch, and it may fail: a supervisor starts it again, and each run begins with a
list, which contains the changes that the previous run missed. No failure in this package stops the
profiles that run.

Modules for the command line and the options do not import kopf, because the import takes a third of
a second and 60 MB.
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

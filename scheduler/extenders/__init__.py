"""HTTP extenders: external servers that filter, score, preempt and bind besides the plugins.

This package contains the protocol, its limits and its error handling. :mod:`scheduler.runtime`
decides when extenders are called, :mod:`scheduler.profiles` which extenders a profile has.
"""

from scheduler.extenders.consultation import Consultation, Exclusions
from scheduler.extenders.extender_chain import ExtenderChain
from scheduler.extenders.extender_client import ExtenderClient, ExtenderError
from scheduler.extenders.http_extender import HttpExtender
from scheduler.extenders.whole_objects import WholeNodes, WholeObjects

__all__ = [
    "Consultation",
    "Exclusions",
    "ExtenderChain",
    "ExtenderClient",
    "ExtenderError",
    "HttpExtender",
    "WholeNodes",
    "WholeObjects",
]

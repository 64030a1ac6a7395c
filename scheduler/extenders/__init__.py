"""HTTP extenders: processes of other people that filter, score and bind beside the plugins.

The protocol, its limits and its failures. When they are asked is decided by
:mod:`scheduler.runtime`; which profile has which extenders by :mod:`scheduler.profiles`.
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

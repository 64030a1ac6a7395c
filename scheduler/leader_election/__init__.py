"""The package decides which of several replicas schedules, and until when it may write.

It decides who may write, and writes nothing but the Lease. The fence that each write passes is in
:mod:`scheduler.client`.
"""

from scheduler.leader_election.elector import LeaderElector, own_identity
from scheduler.leader_election.leadership import Leadership, LeaseName, leadership_of, lease_of
from scheduler.leader_election.rules import Step, View, next_step
from scheduler.leader_election.tenure import ElectionTimes, Standing, Tenure, boot_clock

__all__ = [
    "ElectionTimes",
    "LeaderElector",
    "Leadership",
    "LeaseName",
    "Standing",
    "Step",
    "Tenure",
    "View",
    "boot_clock",
    "leadership_of",
    "lease_of",
    "next_step",
    "own_identity",
]

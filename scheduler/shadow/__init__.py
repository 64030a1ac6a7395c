"""Policies that are tried beside the one in force, on real decisions, without acting on them.

After a decision has been carried out the scheduling thread hands it to :class:`Shadows`, with the
snapshot that it was made from. Each shadow of that profile judges the pod by its own plugins, and
the two verdicts are compared: winners, feasible nodes, what each plugin does to the choice, cost.
Nothing is bound, assumed, nominated, reserved or evicted.

    decision -> Shadows.observe -> TimeBudget: is there time? -> judge, twice -> Comparison
                                                                                    |
                    report: status of the policy, ``berth shadow report`` <- Tally <-+
"""

from scheduler.shadow.report import ShadowReport
from scheduler.shadow.runner import ShadowRunner
from scheduler.shadow.shadows import Shadows

__all__ = ["ShadowReport", "ShadowRunner", "Shadows"]

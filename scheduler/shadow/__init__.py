"""Shadows: policies that judge the same pods as the active policy, without any other effect.

After a decision has been carried out, the scheduling thread passes it to :class:`Shadows`, with
the snapshot of its cycle. Each shadow of that profile judges the pod with its own plugins, and the
two judgements are compared: best nodes, feasible nodes, each plugin's influence on the choice, and
cost. Nothing is bound, assumed, nominated, reserved or evicted.

    decision -> Shadows.observe -> TimeBudget: is there time? -> judge, twice -> Comparison
                                                                                    |
                    report: status of the policy, ``berth shadow report`` <- Tally <-+
"""

from scheduler.shadow.report import ShadowReport
from scheduler.shadow.runner import ShadowRunner
from scheduler.shadow.shadows import Shadows

__all__ = ["ShadowReport", "ShadowRunner", "Shadows"]

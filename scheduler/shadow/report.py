"""What a shadow found out: one immutable value with a form for programs.

The JSON form is what stands in a SchedulingProfile's status; it is bounded whatever the cluster:
samples are few, a plugin is one line.
"""

# No postponed annotations: msgspec reads them at run time.
import msgspec


class _ReportPart(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pass


class WinnerSample(_ReportPart, frozen=True):
    """A pod that the shadow would not have put where it went.

    Parameters
    ----------
    pod
        ``namespace/name``.
    live
        The node that the live policy chose.
    shadow
        One of the shadow's best nodes.
    equals
        How many nodes are as good to the shadow as that one, itself included.
    lead
        How many points the shadow's best is ahead of the live choice by the shadow's scores; None
        when the live choice is not feasible to the shadow, or nothing was scored.
    decisive
        The shadow's plugin that speaks most for its own choice; empty where ``lead`` is None.
    """

    pod: str
    live: str
    shadow: str
    equals: int = 1
    lead: int | None = None
    decisive: str = ""


class FeasibilitySample(_ReportPart, frozen=True):
    """A node that one policy allows for a pod and the other does not.

    Parameters
    ----------
    allowed_by
        ``live`` or ``shadow``.
    plugin
        Who refuses the node in the other policy; empty when several narrow the search together.
    reason
        In the words of the pod's condition.
    """

    pod: str
    node: str
    allowed_by: str
    plugin: str
    reason: str


class PluginInfluence(_ReportPart, frozen=True):
    """What one scoring plugin does to the choice: measured by leaving it out.

    Parameters
    ----------
    plugin
        Its name.
    decisions
        The compared decisions in which it scored: it did not skip the pod, and there was a choice.
    changes
        How probable another winner is without it, on the average of ``decisions``: 0..1. Among
        equally good nodes each is as probable.
    spread
        The weighted points between its best and its worst feasible node, on the average.
    """

    plugin: str
    decisions: int
    changes: float
    spread: float


class Cost(_ReportPart, frozen=True):
    """Seconds that whole decisions took: filters and scores over all nodes, nothing reused."""

    mean_s: float = msgspec.field(default=0.0, name="meanSeconds")
    p50_s: float = msgspec.field(default=0.0, name="p50Seconds")
    p99_s: float = msgspec.field(default=0.0, name="p99Seconds")
    max_s: float = msgspec.field(default=0.0, name="maxSeconds")


class Passed(_ReportPart, frozen=True):
    """Decisions that were not compared, by the reason.

    Parameters
    ----------
    budget
        There was no time for them.
    volumes
        The pod was given volumes with its node, so that the shadow would see them as taken.
    failed
        The live decision was an error, the live policy failed when it was asked again, or comparing
        did.
    """

    budget: int = 0
    volumes: int = 0
    failed: int = 0


class ShadowReport(_ReportPart, frozen=True):
    """The differences between a policy and the one in force, over some real decisions.

    Parameters
    ----------
    scheduler_name
        Whose pods they were.
    live, shadow
        Which policies: ``schedulingprofile/NAME@GENERATION``, a file, ``default``.
    wanted
        How many decisions are to be compared.
    compared
        How many have been. The shares below are of these.
    failures
        In how many of them the shadow failed; these say nothing else.
    failure
        What it said the first time.
    both_placed
        Decisions in which both found a node.
    changed_winners
        Of ``both_placed``: the live choice is not among the shadow's best nodes.
    only_live, only_shadow
        Decisions in which only one of them found a node.
    changed_feasibility
        Decisions in which the sets of feasible nodes differ.
    nodes_lost, nodes_gained
        Nodes that are feasible to the live policy alone and to the shadow alone, over all compared
        decisions.
    live_influence, shadow_influence
        By plugin, those that change most first.
    live_cost, shadow_cost
        Of deciding, measured alike. A live cycle is mostly quicker: it reuses verdicts.
    time_s
        What comparing has taken, all in all.
    """

    scheduler_name: str
    live: str
    shadow: str
    wanted: int
    compared: int = 0
    passed: Passed = Passed()
    failures: int = 0
    failure: str = ""
    both_placed: int = 0
    changed_winners: int = 0
    only_live: int = 0
    only_shadow: int = 0
    changed_feasibility: int = 0
    nodes_lost: int = 0
    nodes_gained: int = 0
    winner_samples: tuple[WinnerSample, ...] = ()
    feasibility_samples: tuple[FeasibilitySample, ...] = ()
    live_influence: tuple[PluginInfluence, ...] = ()
    shadow_influence: tuple[PluginInfluence, ...] = ()
    live_cost: Cost = Cost()
    shadow_cost: Cost = Cost()
    time_s: float = msgspec.field(default=0.0, name="timeSeconds")

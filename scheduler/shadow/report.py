"""The report of a shadow: one immutable value with a JSON form.

The status of a SchedulingProfile contains the JSON form. Its size is bounded in every cluster: it
has few samples, and one line for each plugin.
"""

# No postponed annotations: msgspec reads them at run time.
import msgspec


class _ReportPart(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pass


class WinnerSample(_ReportPart, frozen=True):
    """A pod for which the shadow would have chosen another node.

    Parameters
    ----------
    pod
        ``namespace/name``.
    live
        The node that the live policy chose.
    shadow
        One of the shadow's best nodes.
    equals
        The number of nodes with that node's total score in the shadow, itself included.
    lead
        The points by which the shadow's best node exceeds the live choice in the shadow's scores;
        None if the live choice is not feasible for the shadow, or nothing was scored.
    decisive
        The shadow's plugin that contributes most to the lead; empty if ``lead`` is None.
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
        The plugin that rejects the node in the other policy; empty if several plugins narrow the
        search together.
    reason
        The reason as in the pod's condition.
    """

    pod: str
    node: str
    allowed_by: str
    plugin: str
    reason: str


class PluginInfluence(_ReportPart, frozen=True):
    """The influence of one scoring plugin on the choice, measured by removing the plugin.

    Parameters
    ----------
    plugin
        The plugin's name.
    decisions
        The number of compared decisions in which the plugin scored: it did not skip the pod, and
        there was a choice.
    changes
        The probability of another winner without the plugin, as the average of ``decisions``:
        0..1. Equally good nodes have equal probability.
    spread
        The average of the weighted points between the plugin's best and worst feasible node.
    """

    plugin: str
    decisions: int
    changes: float
    spread: float


class Cost(_ReportPart, frozen=True):
    """Duration of whole decisions in seconds: filters and scores for all nodes, nothing reused."""

    mean_s: float = msgspec.field(default=0.0, name="meanSeconds")
    p50_s: float = msgspec.field(default=0.0, name="p50Seconds")
    p99_s: float = msgspec.field(default=0.0, name="p99Seconds")
    max_s: float = msgspec.field(default=0.0, name="maxSeconds")


class Passed(_ReportPart, frozen=True):
    """The number of decisions that were not compared, by reason.

    Parameters
    ----------
    budget
        The time budget was used up.
    volumes
        The pod got volumes together with its node, so the shadow would see them as in use.
    failed
        The live decision was an error, or the live policy failed when it judged again, or the
        comparison failed.
    """

    budget: int = 0
    volumes: int = 0
    failed: int = 0


class ShadowReport(_ReportPart, frozen=True):
    """The differences between a policy and the one in force, over some real decisions.

    Parameters
    ----------
    scheduler_name
        The schedulerName of the pods.
    live, shadow
        The two policies: ``schedulingprofile/NAME@GENERATION``, a file, ``default``.
    wanted
        The number of decisions to compare.
    compared
        The number of decisions compared so far. The shares below refer to these.
    failures
        The number of compared decisions in which the shadow failed; they count nowhere else.
    failure
        The message of the first failure.
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
        The influence of each plugin, in descending order of ``changes``.
    live_cost, shadow_cost
        The duration of decisions, measured in the same way. A live cycle is usually faster,
        because it reuses verdicts.
    time_s
        The total time of all comparisons.
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

"""What the page asks a scheduler: the questions as a protocol, the answers as values.

The answers have the JSON form of the leader's endpoints under ``/insight/v1``, so that a client
decodes them into these structs. :mod:`scheduler.ui.leader_sources` asks the leader,
:mod:`scheduler.ui.offline_sources` answers from a dump or lists.
"""

# No postponed annotations: msgspec reads them at run time.
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from scheduler.shadow import ShadowReport


class SourceError(Exception):
    """A question cannot be answered; the message is one sentence for the user."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What all answers have.

    Parameters
    ----------
    leader
        The leader's pod; empty where the user's own lists or a dump have answered.
    unsaid
        Why the leader has not answered, where it was asked; a sentence.
    """

    leader: str = ""
    unsaid: str = ""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pass


class DecisionRecord(_Part, frozen=True):
    """One decision about a pod.

    Parameters
    ----------
    seq
        A number that grows with each decision.
    time
        When, as the API writes times.
    pod
        ``namespace/name``.
    node
        The node of a placed pod, else empty.
    message
        Why the pod was refused, as in its condition.
    plugins
        The plugins that refused.
    score, runner_up, runner_up_score
        The score of the node, and the next best node with its score; None if unknown.
    duration_ms
        The duration of the cycle; None if unknown.
    attempts
        How often the pod was tried, this time included; 0 if unknown.
    group
        The group of pods, ``namespace/name``, if it was tried as a whole; then ``pod`` is empty.
    """

    seq: int = 0
    time: str = ""
    pod: str = ""
    uid: str = ""
    profile: str = ""
    node: str = ""
    message: str = ""
    plugins: tuple[str, ...] = ()
    score: int | None = None
    runner_up: str | None = None
    runner_up_score: int | None = None
    duration_ms: float | None = None
    attempts: int = 0
    group: str = ""


class Decisions(_Answer, frozen=True):
    """Some decisions in the order of ``seq``; ``last`` is where the next question goes on."""

    last: int = 0
    decisions: tuple[DecisionRecord, ...] = ()


class PendingReason(_Part, frozen=True):
    """The pending pods of which the scheduler says the same.

    Parameters
    ----------
    reason
        What the pods' condition says, without the numbers of nodes.
    oldest_s
        The age of the oldest one in seconds.
    sample
        The names of some, ``namespace/name``.
    """

    reason: str
    plugins: tuple[str, ...] = ()
    pods: int = 0
    oldest_s: float = 0.0
    sample: tuple[str, ...] = ()


class Pending(_Answer, frozen=True):
    """All pending pods by reason, in descending order of their number."""

    pods: int = 0
    reasons: tuple[PendingReason, ...] = ()


class Why(_Answer, frozen=True):
    """The last decisions about one pod, the newest first, and what would be decided now.

    Parameters
    ----------
    now
        The JSON form of :func:`scheduler.explain.as_json`, or of
        :func:`scheduler.insight.counts_form.counts_data` for users who may not see nodes; None if
        nothing is known of the pod.
    notes
        Sentences about ``now``.
    """

    pod: str
    state: str = ""
    decisions: tuple[DecisionRecord, ...] = ()
    now: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


class ProfileSummary(_Part, frozen=True):
    """A profile that is in force: its plugins by extension point, and the weights of scores."""

    scheduler_name: str
    origin: str = ""
    points: Mapping[str, tuple[str, ...]] = {}
    weights: Mapping[str, int] = {}


class PolicySummary(_Part, frozen=True):
    """A SchedulingProfile of the cluster, with the report of its shadow if there is one."""

    name: str
    scheduler_name: str = ""
    mode: str = ""
    phase: str = ""
    message: str = ""
    shadow: ShadowReport | None = None


class Policies(_Answer, frozen=True):
    """The profiles in force, and the policies of the cluster."""

    profiles: tuple[ProfileSummary, ...] = ()
    policies: tuple[PolicySummary, ...] = ()
    note: str = ""


class Forecast(_Answer, frozen=True):
    """A forecast in the JSON form of :mod:`scheduler.what_if.result`."""

    data: Mapping[str, Any]


class Sources(Protocol):
    """Answers what the page asks about decisions.

    Every method raises :class:`SourceError` when the question cannot be answered.
    """

    async def why(self, namespace: str, name: str) -> Why:
        """Return the decisions about a pod, and what would be decided now."""
        ...

    async def decisions(self, after: int, limit: int) -> Decisions:
        """Return the oldest ``limit`` decisions with a ``seq`` above ``after``.

        With ``after`` 0 the newest ``limit`` ones.
        """
        ...

    async def pending(self) -> Pending:
        """Return the pending pods by reason."""
        ...

    async def policies(self) -> Policies:
        """Return the profiles and policies, with the comparison of shadows."""
        ...

    async def what_if(self, question: Mapping[str, Any]) -> Forecast:
        """Return the forecast for a question."""
        ...

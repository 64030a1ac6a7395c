"""What another policy would have done with a journal, as one value for text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from scheduler.policy_replay.packing import Packing
from scheduler.policy_replay.tally import ProfileReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.journal.frames import Header
    from scheduler.policy_replay.replay import PolicyReplay


class JournalReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the journal holds, and how exactly it was followed.

    Attributes
    ----------
    began_s, ended_s
        The times of the first and the last decision, in seconds since the epoch.
    lost
        Records that are missing in gaps.
    not_exact
        Recorded decisions that came out otherwise with the policy of then, or that could not be
        made again.
    """

    cluster: str
    files: int
    lost: int
    decisions: int
    began_s: float
    ended_s: float
    not_exact: int


class PackingReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The nodes then and now: at the end of the journal, and on average over its time.

    The averages are None for a journal of less than a second.
    """

    then: Packing
    now: Packing
    mean_then: Packing | None
    mean_now: Packing | None


class OpenLoopReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The recorded decisions of one profile, each by itself in the cluster as it was recorded."""

    profile: str
    decisions: int
    same: int
    other_node: int
    only_then: int
    only_now: int


class PolicyReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The comparison of two policies over a journal.

    Attributes
    ----------
    config
        The name of the other configuration.
    unserved
        The number of decisions about pods of profiles that the other configuration does not have.
    """

    config: str
    journal: JournalReport
    profiles: tuple[ProfileReport, ...]
    packing: PackingReport
    open_loop: tuple[OpenLoopReport, ...]
    unserved: dict[str, int]


def report_of(replay: PolicyReplay, headers: Sequence[Header], config: str) -> PolicyReport:
    """Return the report of a replay, and end it."""
    then, now = replay.end()
    means = replay.packing.means()
    counts = replay.recorded.counts
    return PolicyReport(
        config=config,
        journal=JournalReport(
            cluster=headers[-1].cluster,
            files=len(headers),
            lost=sum(header.lost for header in headers),
            decisions=replay.decisions,
            began_s=replay.began_s or 0.0,
            ended_s=replay.now_s,
            not_exact=counts.different + sum(counts.not_compared.values()),
        ),
        profiles=replay.tallies.reports(),
        packing=PackingReport(
            then=then,
            now=now,
            mean_then=None if means is None else means[0],
            mean_now=None if means is None else means[1],
        ),
        open_loop=tuple(
            OpenLoopReport(
                profile=name,
                decisions=each.decisions,
                same=each.same,
                other_node=each.other_node,
                only_then=each.only_then,
                only_now=each.only_now,
            )
            for name, each in sorted(replay.recorded.open_loop.items())
        ),
        unserved=replay.unserved,
    )


def as_json(report: PolicyReport) -> str:
    """Return a report as one JSON object in a line."""
    return msgspec.json.encode(report).decode() + "\n"

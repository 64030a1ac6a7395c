"""Compares the judgements of two policies on one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.value import Value
from scheduler.shadow.report import FeasibilitySample, WinnerSample

if TYPE_CHECKING:
    from scheduler.decision.decision import Scores
    from scheduler.runtime.judgement import Judgement

CHOICE: Final = 2
"""The number of feasible nodes from which on there is a choice: fewer nodes are not scored."""


class Influence(Value, frozen=True):
    """The influence of one plugin on one choice.

    Parameters
    ----------
    changes
        The probability of another winner without the plugin: 0..1.
    spread
        The weighted points between the plugin's best and its worst node.
    """

    changes: float
    spread: int


class Comparison(Value, frozen=True):
    """The differences of two judgements, as defined in :class:`~scheduler.shadow.ShadowReport`."""

    winner_changed: bool
    nodes_lost: int
    nodes_gained: int
    live_influence: dict[str, Influence]
    shadow_influence: dict[str, Influence]


def compare(live: Judgement, shadow: Judgement, chosen: int | None) -> Comparison:
    """Compare two judgements of one pod on one snapshot.

    Parameters
    ----------
    chosen
        The row of the node that the live policy chose; None if it chose no node.
    """
    both = int(np.count_nonzero(live.feasible & shadow.feasible))
    changed = chosen is not None and shadow.count > 0 and chosen not in shadow.best_rows()
    return Comparison(
        winner_changed=changed,
        nodes_lost=live.count - both,
        nodes_gained=shadow.count - both,
        live_influence=influences(live.scores),
        shadow_influence=influences(shadow.scores),
    )


def influences(scores: Scores | None) -> dict[str, Influence]:
    """Return each plugin's influence on a choice, by removing the plugin from the kept scores.

    Equally good nodes are chosen with equal probability. A plugin that only decides between
    otherwise equal nodes has an influence too: without it any of them might have been chosen.

    *Cost*: a few vector operations over the feasible nodes for each plugin.
    """
    if scores is None:
        return {}
    total = scores.total
    best = total == total.max()
    found = {}
    for plugin, weighted in scores.weighted.items():
        spread = int(weighted.max() - weighted.min())
        changes = 0.0
        if spread:
            without = total - weighted
            others = without == without.max()
            changes = 1.0 - int(np.count_nonzero(others & best)) / int(np.count_nonzero(others))
        found[plugin] = Influence(changes, spread)
    return found


def winner_sample(pod: str, shadow: Judgement, chosen: int) -> WinnerSample:
    """Return the node that the shadow would have chosen instead, and its decisive plugin."""
    infos = shadow.snapshot.columns.node_infos
    best = shadow.best_rows()
    instead = int(best[0])
    lead: int | None = None
    decisive = ""
    scores = shadow.scores
    if scores is not None and shadow.feasible[chosen]:
        here = int(np.flatnonzero(scores.rows == chosen)[0])
        there = int(np.flatnonzero(scores.rows == instead)[0])
        lead = int(scores.total[there] - scores.total[here])
        gains = {name: int(each[there] - each[here]) for name, each in scores.weighted.items()}
        decisive = max(gains, key=gains.__getitem__)
    return WinnerSample(
        pod=pod,
        live=infos[chosen].name,
        shadow=infos[instead].name,
        equals=len(best),
        lead=lead,
        decisive=decisive,
    )


def feasibility_samples(
    pod: str, live: Judgement, shadow: Judgement
) -> tuple[FeasibilitySample, ...]:
    """Return at most two nodes: one allowed only by the live policy, one only by the shadow.

    *Cost*: runs the filters again for their reasons.
    """
    found = []
    for allowed_by, allows, refuses in (("live", live, shadow), ("shadow", shadow, live)):
        rows = np.flatnonzero(allows.feasible & ~refuses.feasible)
        if len(rows):
            row = int(rows[0])
            status = refuses.status_of(row)
            found.append(
                FeasibilitySample(
                    pod=pod,
                    node=allows.snapshot.columns.node_infos[row].name,
                    allowed_by=allowed_by,
                    plugin=status.plugin,
                    reason=status.message,
                )
            )
    return tuple(found)

"""Two policies' verdicts on one pod, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from scheduler.shadow.report import FeasibilitySample, WinnerSample

if TYPE_CHECKING:
    from scheduler.decision.decision import Scores
    from scheduler.runtime.judgement import Judgement

CHOICE: Final = 2
"""From so many feasible nodes on there is something to choose: fewer are not scored."""


@dataclass(frozen=True, slots=True)
class Influence:
    """What one plugin did to one choice.

    Parameters
    ----------
    changes
        How probable another winner is without it: 0..1.
    spread
        Weighted points between its best and its worst node.
    """

    changes: float
    spread: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs. See :class:`scheduler.shadow.report.ShadowReport` for the meaning of each."""

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
        The row of the node that the live policy chose; None when it chose none.
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
    """Return what each plugin did to a choice, by leaving it out of the kept scores.

    Among equally good nodes each is as probable to be chosen. So a plugin that only decides between
    equals changes something too: without it all of them might have been chosen.

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
    """Tell where the shadow would have put a pod instead, and by which of its plugins."""
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
    """Return at most two nodes: one that only the live policy allows, one only the shadow.

    *Cost*: asks the filters for their reasons.
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

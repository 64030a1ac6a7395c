"""Why one feasible node won: which plugins decided, and what would have let the runner-up win.

Scores are sums of weighted scores of plugins, and a plugin's score does not depend on the weights.
What another weight would have done is therefore exact arithmetic over columns. Changes of the pod,
and pods that leave the runner-up, are scored again by the plugins themselves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec.structs import replace as changed

from cache.objects import Toleration
from cache.pod_info import PodInfo
from cache.taints import PREFER_NO_SCHEDULE, is_tolerated
from cache.trial import Trial
from plugins.pod_topology_spread.args import SCHEDULE_ANYWAY
from scheduler.relaxations.relaxation import Deciding, Instead
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cache.objects import Pod
    from plugins.framework.results import IntArray
    from scheduler.relaxations.verifier import Verifier
    from scheduler.runtime.judgement import Judgement

    PreferenceEdit: TypeAlias = tuple[str, str, Callable[[Pod], Pod]]

MAX_WEIGHT: Final = 100
"""The weights that are tried. Source: a larger one is refused by the configuration's validation."""

MAX_CHANGES: Final = 16
"""Preferences of the pod, and pods on the runner-up, that are tried."""

MAX_SHOWN: Final = 4


class DecidingSearch:
    """Compares the winner with the runner-up.

    Parameters
    ----------
    verifier
        Judges changed pods.
    judged
        The pod as it is, with scores.
    placed_on
        The node that the pod is on; empty for a pending pod.
    """

    def __init__(self, verifier: Verifier, judged: Judgement, placed_on: str = "") -> None:
        self._verifier = verifier
        self._judged = judged
        self._names = [info.name for info in judged.view.node_infos()]
        self.total: IntArray = (
            np.zeros(len(self._names), dtype=np.int64)
            if judged.scores is None
            else judged.scores.total
        )
        self.weighted = {} if judged.scores is None else dict(judged.scores.weighted)
        if placed_on in self._names:
            self._first = self._names.index(placed_on)
        else:
            self._first = self._best_but(-1)
        self._second = self._best_but(self._first)
        self.instead: list[Instead] = []

    def run(self) -> None:
        """Look for what would have let the runner-up win.

        Raises
        ------
        BudgetSpentError
            When the budget is used up; what was found is kept.
        """
        if self._second < 0:
            return
        self.instead += self._weights()
        self.instead += self._preferences()
        self.instead += self._pods()

    def result(self) -> Deciding:
        """Return what was found."""
        first, second = self._first, self._second
        winner = Deciding(self._names[first], int(self.total[first]))
        if second < 0:
            return winner
        margins = {
            name: int(scores[first] - scores[second])
            for name, scores in self.weighted.items()
            if scores[first] != scores[second]
        }
        return replace(
            winner,
            runner_up=self._names[second],
            runner_up_total=int(self.total[second]),
            margins=dict(sorted(margins.items(), key=lambda item: -item[1])),
            decided_by=self._decided_by(margins),
            instead=tuple(self.instead),
        )

    def _best_but(self, left_out: int) -> int:
        """Return the best node but one, the first by name of several; -1 if there is no other."""
        others = np.arange(len(self.total)) != left_out
        if not others.any():
            return -1
        best = np.flatnonzero(others & (self.total == self.total[others].max()))
        return min(best.tolist(), key=self._names.__getitem__)

    def _decided_by(self, margins: Mapping[str, int]) -> tuple[str, ...]:
        """Return the plugins without each of which the winner would not be alone at the top."""
        others = np.arange(len(self.total)) != self._first
        if self.total[self._first] <= self.total[others].max():
            return ()
        deciding = []
        for name, margin in margins.items():
            without = self.total - self.weighted[name]
            if margin > 0 and without[self._first] <= without[others].max():
                deciding.append((-margin, name))
        return tuple(name for _, name in sorted(deciding))

    # --- what would have been enough ----------------------------------------------------------

    def _weights(self) -> Iterator[Instead]:
        """Yield the nearest weight of each plugin with which the runner-up would have won."""
        weights = self._verifier.framework.score_weights
        found = []
        for name, scores in self.weighted.items():
            weight = weights[name]
            rest, raw = self.total - scores, scores // weight
            other = nearest_weight(weight, rest, raw, self._first, self._second)
            if other is not None:
                found.append((abs(other - weight) / weight, name, other))
        for _, name, other in sorted(found)[:MAX_SHOWN]:
            text = f"weight {other} instead of {weights[name]} of {name}"
            yield Instead("weight", name, text if other else f"{name} not scoring", other)

    def _preferences(self) -> Iterator[Instead]:
        """Yield the preferences of the pod without which, or with which, the runner-up wins."""
        shown = 0
        for path, text, edit in self._preference_edits():
            if shown < MAX_SHOWN and self._would_win(PodInfo(edit(self._verifier.info.pod))):
                shown += 1
                yield Instead("preference", path, text)

    def _preference_edits(self) -> Iterator[PreferenceEdit]:
        pod = self._verifier.info.pod
        constraints = pod.spec.topology_spread_constraints[:MAX_CHANGES]
        for index, constraint in enumerate(constraints):
            # A pod without any constraint would get the default ones of the profile.
            if constraint.when_unsatisfiable == SCHEDULE_ANYWAY and len(constraints) > 1:
                path = f"spec.topologySpreadConstraints[{index}]"
                text = f"no preference to spread over {constraint.topology_key}"
                yield path, text, partial(_without, dropped=constraint)
        yield from _affinity_edits(pod)
        rows = self._verifier.snapshot.columns.row_of
        node = self._verifier.snapshot.columns.node_infos[rows[self._names[self._second]]].node
        for taint in () if node is None else node.spec.taints[:MAX_CHANGES]:
            if taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, pod.spec.tolerations):
                toleration = Toleration(taint.key, "Exists", effect=taint.effect)
                text = f"a toleration of {taint.key}:{taint.effect}"
                yield "spec.tolerations", text, partial(_tolerating, toleration=toleration)

    def _pods(self) -> Iterator[Instead]:
        """Yield the first pod without which the runner-up would have won, the largest first."""
        snapshot = self._verifier.snapshot
        name = self._names[self._second]
        node_info = snapshot.get(name)
        if node_info is None:
            return
        pods = sorted(
            node_info.pods.values(),
            key=lambda info: (-info.nonzero_milli_cpu, -info.nonzero_memory_bytes, info.key),
        )
        trial = Trial(snapshot)
        for info in pods[:MAX_CHANGES]:
            trial.remove_pod(info.uid, name)
            try:
                wins = self._would_win(self._verifier.info)
            finally:
                trial.undo()
            if wins:
                yield Instead("pod", info.key, f"{name} without the pod {info.key}")
                return

    def _would_win(self, info: PodInfo) -> bool:
        """Return whether the runner-up has the highest score for a changed pod, or cluster."""
        verifier = self._verifier
        try:
            judged = verifier.judged(info, verifier.state(), scored_from=1)
        except PluginError:
            return False
        if judged.scores is None:
            return False
        names = [each.name for each in judged.view.node_infos()]
        wanted, winner = self._names[self._second], self._names[self._first]
        if wanted not in names:
            return False
        total = judged.scores.total
        mine = total[names.index(wanted)]
        beaten = winner not in names or total[names.index(winner)] < mine
        return bool(beaten and mine == total.max())


def nearest_weight(
    weight: int, rest: IntArray, raw: IntArray, winner: int, runner_up: int
) -> int | None:
    """Return the nearest other weight with which no node is better, and the winner is worse.

    Parameters
    ----------
    weight
        The present one; of two that are equally near, the smaller is returned.
    rest, raw
        int64, shape (n,). The scores with a weight ``w`` are ``rest + w * raw``.
    winner, runner_up
        Indices of both.

    *Cost*: a few passes over the nodes. Each node limits the weight from one side, so that the
    weights with which the runner-up wins are those between two numbers.
    """
    ahead = raw[runner_up] - raw
    needed = rest - rest[runner_up]
    needed[winner] += 1
    least, most = 0, MAX_WEIGHT
    if (needed[ahead == 0] > 0).any():
        return None
    if (rising := ahead > 0).any():
        least = max(least, -int((-needed[rising] // ahead[rising]).min()))
    if (falling := ahead < 0).any():
        most = min(most, int((needed[falling] // ahead[falling]).min()))
    nearest = [min(most, weight - 1), max(least, weight + 1)]
    found = [each for each in nearest if least <= each <= most]
    return min(found, key=lambda other: abs(other - weight), default=None)


def _without(pod: Pod, dropped: object) -> Pod:
    constraints = tuple(e for e in pod.spec.topology_spread_constraints if e is not dropped)
    return changed(pod, spec=changed(pod.spec, topology_spread_constraints=constraints))


def _tolerating(pod: Pod, toleration: Toleration) -> Pod:
    tolerations = (*pod.spec.tolerations, toleration)
    return changed(pod, spec=changed(pod.spec, tolerations=tolerations))


def _affinity_edits(pod: Pod) -> Iterator[PreferenceEdit]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for field, api_field, words in (
        ("node_affinity", "nodeAffinity", "node affinity"),
        ("pod_affinity", "podAffinity", "pod affinity"),
        ("pod_anti_affinity", "podAntiAffinity", "pod anti-affinity"),
    ):
        part = getattr(affinity, field)
        preferred = part and part.preferred_during_scheduling_ignored_during_execution
        for index, term in enumerate((preferred or ())[:MAX_CHANGES]):
            path = f"spec.affinity.{api_field}.preferredDuringSchedulingIgnoredDuringExecution"
            text = f"no preferred {words} [{index}] (weight {term.weight})"
            yield f"{path}[{index}]", text, partial(_without_preferred, field=field, dropped=term)


def _without_preferred(pod: Pod, field: str, dropped: object) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    part = getattr(affinity, field)
    left = tuple(
        each
        for each in part.preferred_during_scheduling_ignored_during_execution
        if each is not dropped
    )
    part = changed(part, preferred_during_scheduling_ignored_during_execution=left)
    return changed(pod, spec=changed(pod.spec, affinity=changed(affinity, **{field: part})))

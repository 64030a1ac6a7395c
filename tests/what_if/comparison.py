"""Forecasts of an action, each with the cluster that it leaves, and what happened."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scheduler.config import default_config, running_profiles
from scheduler.offline.cluster import Cluster
from scheduler.what_if import Forecast, decode_question, forecast
from tests.what_if.life import AGENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    import msgspec

SEEDS: Final = 10
"""Forecasts for each action: ties and evictions at one time may go either way."""

MORE_SEEDS: Final = 190
"""Further ones where none of the first has the outcome: as many orders are possible."""

PROFILES: Final = running_profiles(default_config())


class Outcome(NamedTuple):
    """What can be compared.

    Attributes
    ----------
    workloads
        How many pods of each workload have a node, and how many are missing.
    blocked
        How many pods of each workload could not be evicted.
    """

    workloads: tuple[tuple[str, tuple[int, int]], ...]
    blocked: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, workloads: Mapping[str, tuple[int, int]], blocked: Mapping[str, int]) -> Outcome:
        """Return an outcome; workloads without pods do not count."""
        filled = {name: counts for name, counts in workloads.items() if any(counts)}
        return cls(tuple(sorted(filled.items())), tuple(sorted(blocked.items())))

    def among(self, workloads: Set[str]) -> Outcome:
        """Return the outcome for some workloads, with all pods that could not be evicted."""
        return Outcome(tuple(each for each in self.workloads if each[0] in workloads), self.blocked)


class Told(NamedTuple):
    """A forecast, its outcome, and the node of each pod afterwards."""

    forecast: Forecast
    outcome: Outcome
    nodes: Counter[str]


def ask(objects: Sequence[tuple[msgspec.Raw, str]], question: dict[str, Any], seed: int) -> Told:
    """Return the forecast over fresh lists of a cluster."""
    cluster = Cluster()
    cluster.add_all(objects)
    found = forecast(
        cluster, PROFILES, decode_question(json.dumps({**question, "seed": seed}).encode())
    )
    bound: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for pod in cluster.pods.values():
        app = pod.metadata.labels.get("app", "")
        if app == AGENT:
            continue
        if pod.spec.node_name:
            bound[app] += 1
            nodes[pod.spec.node_name] += 1
        else:
            missing[app] += 1
    for part in found.parts:
        if part.kind == "pods":
            missing[_app(part.subject)] += part.refused
    workloads = {app: (bound[app], missing[app]) for app in {*bound, *missing}}
    blocked = Counter(_app(each.pod) for drain in found.drains for each in drain.blocked)
    return Told(found, Outcome.of(workloads, blocked), nodes)


def _app(key: str) -> str:
    """Return the workload of a pod by the pod's name: ``app-7`` of ``default/app-7-x2k4f``."""
    return "-".join(key.rpartition("/")[2].split("-")[:2])


def differences(told: Outcome, seen: Outcome) -> list[str]:
    """Return what differs, a line for each workload."""
    lines = []
    ours, theirs = dict(told.workloads), dict(seen.workloads)
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name, (0, 0)), theirs.get(name, (0, 0))
        if one != other:
            lines.append(
                f"{name}: {one[0]} placed and {one[1]} missing, in fact {other[0]} and {other[1]}"
            )
    if told.blocked != seen.blocked:
        lines.append(f"blocked: {dict(told.blocked)}, in fact {dict(seen.blocked)}")
    return lines

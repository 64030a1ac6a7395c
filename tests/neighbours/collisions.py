"""Who came second to a node, and how much later, for each pod that a kubelet rejected.

The audit log says who bound what, when the request arrived and when it was answered. The watch says
in which order the pods came to their node.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.controlplane.audit import accepted_binds
from tests.neighbours.admission import Kubelet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.neighbours.kubelets import Arrival


class Bind(NamedTuple):
    """A bind that the API server accepted: when it arrived, and when it was answered."""

    received: dt.datetime
    done: dt.datetime


class Collision(msgspec.Struct, frozen=True):
    """A rejected pod, and the pod that took its place.

    Attributes
    ----------
    party
        The scheduler that came second.
    winner
        The scheduler that came first; the same one if it overcommitted the node by itself.
    gap_ms
        From the answer to the decisive bind of the winner until the bind of the loser arrived;
        negative if the second arrived before the first was answered. None where one of the two
        has no bind in the log.
    lag_ms
        From the answer to the decisive bind until the kubelets' watch showed that pod.
    """

    pod: str
    node: str
    reason: str
    party: str
    winner: str
    gap_ms: float | None
    lag_ms: float | None

    @property
    def was_shown(self) -> bool:
        """Whether a watch had shown the decisive pod when the loser's bind arrived.

        Only then a look at the newest state of the node, right before the bind, can avoid it.
        """
        if self.gap_ms is None or self.lag_ms is None:
            return False
        return self.gap_ms > self.lag_ms


def binds(events: Iterable[Mapping[str, Any]]) -> dict[str, Bind]:
    """Return the accepted bind of each pod, by UID."""
    events = list(events)
    done = {event["auditID"]: event["stageTimestamp"] for event in events if "auditID" in event}
    return {
        uid: Bind(records[0].time, dt.datetime.fromisoformat(done[records[0].audit_id]))
        for uid, records in accepted_binds(events).items()
    }


def collisions(
    nodes: Mapping[str, Mapping[str, Any]],
    arrivals: Sequence[Arrival],
    bound: Mapping[str, Bind],
) -> list[Collision]:
    """Return the rejections in their order, each with the pod that took the place.

    The loser's scheduler saw the node's pods up to some moment. Without the newest pods of the
    other scheduler the loser would fit; the oldest of those is decisive, for the loser's scheduler
    cannot have known it.
    """
    admitted: defaultdict[str, list[Arrival]] = defaultdict(list)
    found = []
    for arrival in arrivals:
        if arrival.rejection is None:
            admitted[arrival.node].append(arrival)
            continue
        allocatable = nodes[arrival.node]["status"]["allocatable"]
        decisive = _decisive(allocatable, admitted[arrival.node], arrival)
        found.append(_collision(arrival, decisive, bound))
    return found


def lags_ms(arrivals: Iterable[Arrival], bound: Mapping[str, Bind]) -> list[float]:
    """Return how long after the answer to its bind the watch showed each pod; sorted."""
    return sorted(
        1000 * (arrival.at_s - bound[arrival.uid].done.timestamp())
        for arrival in arrivals
        if arrival.uid in bound
    )


def _decisive(
    allocatable: Mapping[str, str], admitted: Sequence[Arrival], loser: Arrival
) -> Arrival | None:
    left = list(admitted)
    for pod in reversed(admitted):
        if not pod.party or pod.party == loser.party:
            continue
        left.remove(pod)
        kubelet = Kubelet(allocatable)
        for other in left:
            kubelet.admit(other.uid, other.requests)
        if kubelet.admit(loser.uid, loser.requests) is None:
            return pod
    return None


def _collision(loser: Arrival, decisive: Arrival | None, bound: Mapping[str, Bind]) -> Collision:
    assert loser.rejection is not None
    gap_ms = lag_ms = None
    if decisive is not None and decisive.uid in bound:
        done = bound[decisive.uid].done
        lag_ms = 1000 * (decisive.at_s - done.timestamp())
        if loser.uid in bound:
            gap_ms = 1000 * (bound[loser.uid].received - done).total_seconds()
    return Collision(
        pod=loser.name,
        node=loser.node,
        reason=loser.rejection.reason,
        party=loser.party,
        winner=decisive.party if decisive else loser.party,
        gap_ms=gap_ms,
        lag_ms=lag_ms,
    )

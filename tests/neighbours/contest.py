"""One round: a full cluster, two schedulers, and pods for both that come at once."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import uvloop

from tests.bench.load_client import LoadClient
from tests.bench.process_usage import ProcessUsage
from tests.bench.statistics_of import quantile
from tests.controlplane.audit import bind_records
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_pod
from tests.neighbours.cluster import PARTIES, Cluster, Size
from tests.neighbours.collisions import binds, collisions, lags_ms
from tests.neighbours.contenders import OTHER_USER, USERS, pair
from tests.neighbours.kubelets import Kubelets
from tests.neighbours.patience import create_all, insist
from tests.neighbours.results import Party, Round, party_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.neighbours.contenders import Pair

_QUIET_S: Final = 45.0
"""Longer than the longest backoff and the longest pause of either scheduler."""

_READY_S: Final = 120.0
_OURS: Final = ("berth_collisions", "berth_bindings_withheld", "berth_kubelet_rejections")
"""How the names of the metrics begin that tell about a neighbour."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What is played.

    Attributes
    ----------
    deadline_s
        The longest time for the pods of one round.
    """

    contender: str
    seed: int
    size: Size
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True)
class _Observed:
    """What was seen of one round."""

    kubelets: Kubelets
    began_s: float
    created_s: float
    cpu_s: Mapping[str, float]
    metrics: str


def play(contest: Contest, session: int) -> Round:
    """Play one round on a control plane of its own.

    Raises
    ------
    RuntimeError
        A scheduler or the API server has failed.
    """
    load = os.getloadavg()[0]
    cluster = Cluster(contest.size, contest.seed)
    with ControlPlane(load=True, users={OTHER_USER: ""}) as plane:
        plane.berth_kubeconfig()
        observed = uvloop.run(_observe(contest, cluster, plane))
        events = list(plane.audit_events())
    kubelets, bound = observed.kubelets, binds(events)
    lags = lags_ms(kubelets.arrivals, bound)
    return Round(
        contender=contest.contender,
        seed=contest.seed,
        nodes=contest.size.nodes,
        pods=contest.size.pods,
        session=session,
        load=(round(load, 2), round(os.getloadavg()[0], 2)),
        created_s=round(observed.created_s, 3),
        parties=_parties(observed, events, contest.size.pods),
        collisions=collisions(cluster.nodes, kubelets.arrivals, bound),
        lag_ms=tuple(round(quantile(lags, share), 2) for share in (0.5, 0.9, 0.99, 1.0)),
        restarts=kubelets.restarts,
        metrics=_metrics(observed.metrics),
    )


async def _observe(contest: Contest, cluster: Cluster, plane: ControlPlane) -> _Observed:
    """Fill the cluster, start the schedulers, and let the pods come."""
    async with LoadClient(plane.admin_kubeconfig) as client:
        kubelets = Kubelets(client, cluster.nodes, cluster.pods)
        async with kubelets.running():
            await create_all(client, cluster.nodes.values())
            await create_all(client, cluster.running)
            await _ran(kubelets, len(cluster.running))
            with pair(contest.contender, plane) as schedulers:
                await _warm_up(client, kubelets)
                before, began_s = _cpu_s(schedulers), time.time()
                await create_all(client, cluster.pods)
                created_s = time.time() - began_s
                await kubelets.until(
                    lambda: kubelets.settled >= len(cluster.pods),
                    quiet_s=_QUIET_S,
                    deadline_s=contest.deadline_s,
                )
                schedulers.check()
                used = _cpu_s(schedulers)
                cpu_s = {name: used[name] - before[name] for name in PARTIES}
                return _Observed(kubelets, began_s, created_s, cpu_s, schedulers.metrics())


async def _warm_up(client: LoadClient, kubelets: Kubelets) -> None:
    """Let each scheduler place a pod, so that both are ready."""
    pods = [make_pod(f"first-{party}", scheduler_name=party, cpu="1m") for party in PARTIES]
    # A scheduler may bind its pod while the other one is being created.
    count = kubelets.admitted("") + len(pods)
    await create_all(client, pods)
    await _ran(kubelets, count)
    for pod in pods:
        await insist(partial(client.delete, pod))


async def _ran(kubelets: Kubelets, count: int) -> None:
    if not await kubelets.until(
        lambda: kubelets.admitted("") >= count, quiet_s=_READY_S, deadline_s=_READY_S
    ):
        raise RuntimeError(f"{kubelets.admitted('')} of {count} pods run")


def _cpu_s(schedulers: Pair) -> dict[str, float]:
    return {
        party: ProcessUsage.of(process.pid).cpu_s
        for party, process in zip(PARTIES, schedulers.processes, strict=True)
    }


def _parties(
    observed: _Observed, events: Sequence[Mapping[str, object]], pods: int
) -> dict[str, Party]:
    accepted = Counter(USERS.get(x.user) for x in bind_records(events) if x.accepted)
    kubelets = observed.kubelets
    return {
        party: party_of(
            pods=pods,
            arrivals=[
                (x.at_s - observed.began_s, x.rejection.reason if x.rejection else "")
                for x in kubelets.arrivals
                if x.party == party
            ],
            given_up=sum(each == party for each in kubelets.given_up),
            binds=accepted[party],
            cpu_s=observed.cpu_s[party],
        )
        for party in PARTIES
    }


def _metrics(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        if line.startswith(_OURS):
            series, _, value = line.rpartition(" ")
            with contextlib.suppress(ValueError):
                found[series] = float(value)
    return found

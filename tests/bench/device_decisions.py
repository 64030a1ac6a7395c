"""``python -m tests.bench devices``: decisions about pods with claims, without an API server.

Four series, each with the other sizes held still: nodes, devices, claims that have devices
already, and claims of one pod. Each device has a UUID, so that no two are equal. Times are CPU time
of the scheduling thread, from the snapshot's update to the devices in flight.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final, cast

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.rehearsal import read_ahead
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.process.process_memory import calm_collector, settle_memory
from tests.bench import device_clusters, large_clusters
from tests.bench.deciding import STAY, Parts
from tests.bench.device_clusters import COUNTERS, KINDS, ONE_KIND
from tests.bench.records import DeviceDecisions
from tests.bench.results import Results, put
from tests.bench.statistics_of import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.device_objects import ResourceClaim
    from scheduler.runtime.profile_map import Profiles

DEFAULT_FILE: Final = Path("docs/benchmarks/devices.json")


@dataclass(frozen=True, slots=True)
class Point:
    """A cluster of a series, and the claims of each pod in it."""

    series: str
    nodes: int
    devices: int
    allocated: int = 0
    claims: int = 1

    def scaled(self, by: float) -> Point:
        """Return a point with fewer nodes."""
        nodes = max(round(self.nodes * by), 20)
        return Point(self.series, nodes, self.devices, round(self.allocated * by), self.claims)


SERIES: Final = (
    *(Point("nodes", nodes, 8) for nodes in (100, 500, 1_000, 5_000, 15_000)),
    *(Point("devices", 1_000, devices) for devices in (4, 16, 50, 100)),
    *(Point("allocated", 5_000, 16, allocated) for allocated in (0, 1_000, 10_000, 50_000)),
    *(Point("claims", 1_000, 32, claims=claims) for claims in (1, 2, 4, 8, 16, 32)),
)

MOST_WITH_COUNTERS: Final = 1_000
"""Nodes of the largest cluster with counters: each node sees the counters of all pools."""


def kinds_of(point: Point) -> tuple[str, ...]:
    """Return the kinds of claims that are measured at a point; others would take minutes."""
    if point.series == "claims":
        return ONE_KIND, "claims that all differ"
    if point.nodes > MOST_WITH_COUNTERS or point.series != "nodes":
        return tuple(kind for kind in KINDS if kind != COUNTERS)
    return tuple(KINDS)


class DevicesDeciding:
    """Decides for one pod with claims after another, as the scheduling thread does.

    Attributes
    ----------
    cpu_us
        Of each decision.
    """

    def __init__(self, point: Point, kind: str) -> None:
        self._parts = Parts()
        self._devices = self._parts.devices
        self._cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        self._claims = [device_clusters.claim_of(kind, place) for place in range(point.claims)]
        (self._pod,) = large_clusters.kinds()["nothing"]
        self._placed: deque[tuple[PodInfo, list[ResourceClaim]]] = deque()
        self._number = 0
        self.cpu_us: list[float] = []
        for node in large_clusters.nodes(point.nodes):
            self._parts.cache.add_node(node)
        for each in device_clusters.classes():
            self._devices.classes.changed(None, each)
        for published in device_clusters.slices(kind, point.nodes, point.devices):
            self._devices.slices.changed(None, published)
        for claim in device_clusters.allocated_claims(point.allocated, point.nodes, point.devices):
            self._devices.claims.changed(None, claim)
        self._decide_without_claims()
        gc.collect()
        gc.freeze()

    def _decide_without_claims(self) -> None:
        """Let the snapshot and the columns of other plugins be built, which is not measured."""
        self._parts.cache.update_snapshot(self._cycle.snapshot)
        self._cycle.decide(self._parts.framework, CycleState(), PodInfo(self._pod))

    def read_ahead(self, slice_s: float = 0.02) -> list[float]:
        """Prepare what the first pod needs; return the CPU seconds of each piece."""
        profiles = cast("Profiles", [self._parts.framework])
        pieces_s = []
        is_left = True
        while is_left:
            began_s = thread_time()
            is_left = read_ahead(self._parts.cache, self._cycle, profiles, slice_s)
            pieces_s.append(thread_time() - began_s)
        return pieces_s

    def decide(self, most: int, seconds: float) -> None:
        """Decide for so many pods, or as long as the time lasts.

        Each pod goes again a few cycles later, outside the measured time.

        Raises
        ------
        RuntimeError
            A pod fits nowhere: this would measure something else.
        """
        ends_s = perf_counter() + seconds
        for _ in range(most):
            self._decide_one()
            if len(self._placed) > STAY:
                self._forget(*self._placed.popleft())
            if perf_counter() > ends_s:
                return

    def _decide_one(self) -> None:
        self._number += 1
        names = [f"claim-{self._number}-{place}" for place in range(len(self._claims))]
        claims = [
            device_clusters.named(claim, name)
            for claim, name in zip(self._claims, names, strict=True)
        ]
        for claim in claims:
            self._devices.claims.changed(None, claim)
        pod = large_clusters.renamed(self._pod, f"pod-{self._number}")
        info = PodInfo(device_clusters.with_claims(pod, names))
        framework, state = self._parts.framework, CycleState()
        began_s = thread_time()
        self._parts.cache.update_snapshot(self._cycle.snapshot)
        decision = self._cycle.decide(framework, state, info)
        if not decision.is_placed:
            raise RuntimeError(f"{info.key} fits nowhere: {decision.status}")
        self._parts.cache.assume_pod(info, decision.node_name)
        reserved = framework.run_reserve(state, info, decision.node_name)
        self.cpu_us.append((thread_time() - began_s) * 1e6)
        if not reserved.is_success:
            raise RuntimeError(f"{info.key}: {reserved}")
        self._placed.append((info, claims))

    def _forget(self, info: PodInfo, claims: Sequence[ResourceClaim]) -> None:
        for claim in claims:
            self._devices.claims.end_flight(claim.metadata.uid)
            self._devices.claims.changed(claim, None)
        self._parts.cache.forget_pod(info)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each point."""
    names = list(dict.fromkeys(point.series for point in SERIES))
    parser = argparse.ArgumentParser(prog="python -m tests.bench devices", description=__doc__)
    parser.add_argument("--series", default=",".join(names), help="separated by commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="separated by commas")
    parser.add_argument("--decisions", type=int, default=300, help="at most, for each point")
    parser.add_argument("--seconds", type=float, default=2.0, help="at most, for each point")
    parser.add_argument("--scale", type=float, default=1.0, help="of nodes")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    unknown = set(options.series.split(",")).difference(names)
    unknown |= set(options.kinds.split(",")).difference(KINDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    calm_collector()
    settle_memory()
    results = Results.load(options.json)
    session = results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
    for point in SERIES:
        if point.series not in options.series.split(","):
            continue
        scaled = point.scaled(options.scale)
        for kind in kinds_of(point):
            if kind not in options.kinds.split(","):
                continue
            measured = measure(scaled, kind, options.decisions, options.seconds, session)
            put(results.device_decisions, measured)
            results.save(options.json)
            print(line(measured), flush=True)
    return 0


def measure(
    point: Point, kind: str, decisions: int, seconds: float, session: int
) -> DeviceDecisions:
    """Measure one kind of claims in one cluster, built twice: without and with reading ahead."""
    gc.unfreeze()
    unprepared = DevicesDeciding(point, kind)
    unprepared.decide(1, 60.0)
    cold_us = unprepared.cpu_us[0]
    del unprepared
    gc.unfreeze()
    gc.collect()
    deciding = DevicesDeciding(point, kind)
    pieces_s = deciding.read_ahead()
    deciding.decide(1, 60.0)
    first_us = deciding.cpu_us[0]
    deciding.decide(STAY + 2, seconds)
    deciding.cpu_us.clear()
    deciding.decide(decisions, seconds)
    times_us = sorted(deciding.cpu_us)
    return DeviceDecisions(
        series=point.series,
        kind=kind,
        nodes=point.nodes,
        devices=point.nodes * point.devices,
        allocated=point.allocated,
        claims=point.claims,
        session=session,
        decisions=len(times_us),
        cold_ms=cold_us / 1e3,
        ahead_ms=sum(pieces_s) * 1e3,
        longest_ahead_ms=max(pieces_s) * 1e3,
        first_ms=first_us / 1e3,
        cycle_us=quantile(times_us, 0.5),
        p99_us=quantile(times_us, 0.99),
    )


def line(measured: DeviceDecisions) -> str:
    """Return one point for people."""
    return (
        f"{measured.series:<10}{measured.nodes:6} nodes {measured.devices:7} devices "
        f"{measured.allocated:6} allocated {measured.claims:3} claims  {measured.kind:<32}"
        f"cold {measured.cold_ms:7.1f} ms  ahead {measured.ahead_ms:7.1f} ms "
        f"(at most {measured.longest_ahead_ms:.0f})  first {measured.first_ms:7.1f} ms  "
        f"p50 {measured.cycle_us:7.0f} us  p99 {measured.p99_us:7.0f} us"
    )


if __name__ == "__main__":
    sys.exit(main())

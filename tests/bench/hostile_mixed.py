"""``python -m tests.bench mixed``: ordinary pods at a steady rate beside many hostile objects.

Scenarios are played in turn with every contender, each from the same saved state, and once without
anything hostile, so that what the machine does shows in both.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.contenders import NAMES
from tests.bench.hostile import DEFAULT_FILE, WORKLOAD, measured, tenant
from tests.bench.hostile_figures import NEVER_MS, Figures, Mixed
from tests.bench.latency import WARM_UP, Arrivals, line
from tests.bench.pod_templates import MEASURED, PLAIN
from tests.bench.records import LatencyRound
from tests.bench.results import today
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Stage
from tests.bench.workloads import node_name
from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL
from tests.hostile import arranging
from tests.hostile.catalogue import ground
from tests.hostile.tenant import containers, expression, required, spread, term

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.hostile import Measured
    from tests.bench.load_client import LoadClient
    from tests.bench.scraping import Scrape
    from tests.hostile.tenant import Json, Tenant

_LOOK_S = 3.0
"""So long the hostile objects are there before the first ordinary pod comes."""


@dataclass(frozen=True)
class Scenario:
    """What stands there while ordinary pods come.

    Parameters
    ----------
    rate, seconds
        Of the ordinary pods.
    foreign
        Whether these are on a node already when they come: nobody has to place them, and what is
        measured is the event loop that takes them in.
    """

    name: str
    rate: int
    seconds: float
    objects: Callable[[Tenant], list[Json]]
    foreign: bool = False


def _keys(tenant: Tenant, index: int) -> Json:
    return tenant.pod(f"keys-{index}", nodeSelector={f"k{index}-{i}": "" for i in range(3000)})


def _terms(tenant: Tenant, index: int) -> Json:
    terms = [term(HOSTNAME_LABEL, expression("app", "In", f"a{index}-{i}")) for i in range(1500)]
    return tenant.pod(f"terms-{index}", affinity=required("podAntiAffinity", *terms))


def _constraints(tenant: Tenant, index: int) -> Json:
    found = [spread(f"t{index}-{i}", expression("app", "Exists")) for i in range(1000)]
    return tenant.pod(f"spread-{index}", topologySpreadConstraints=found)


def two_terms(tenant: Tenant, count: int) -> list[Json]:
    """Return waiting pods, each with two anti-affinity terms of its own."""
    return [
        tenant.pod(
            f"two-{i}",
            labels={"app": f"a{i}"},
            nodeSelector={"absent": ""},
            affinity=required(
                "podAntiAffinity",
                term(HOSTNAME_LABEL, expression("app", "In", f"a{i}")),
                term(ZONE_LABEL, expression("app", "In", f"b{i}")),
            ),
        )
        for i in range(count)
    ]


def _mixed(tenant: Tenant) -> list[Json]:
    amounts = {f"example.com/r{i}": "1" for i in range(1000)}
    resources = {"requests": amounts, "limits": amounts}
    return [
        tenant.running("resources", containers=containers(1, resources=resources)),
        *(_keys(tenant, index) for index in range(4)),
        *(_terms(tenant, index) for index in range(3)),
        *(_constraints(tenant, index) for index in range(3)),
        *two_terms(tenant, 500),
    ]


def _ten(tenant: Tenant) -> list[Json]:
    return [
        *(_keys(tenant, index) for index in range(4)),
        *(_terms(tenant, index) for index in range(3)),
        *(_constraints(tenant, index) for index in range(3)),
    ]


SCENARIOS = (
    Scenario("four nodeSelectors of 3 000 keys, three pods of 1 500 anti-affinity terms, three of "
             "1 000 spread constraints, a running pod of 1 000 unknown resources, 500 waiting pods "
             "of two terms", 50, 15.0, _mixed),
    Scenario("nothing", 50, 15.0, lambda tenant: []),
    Scenario("ten hostile pods", 100, 10.0, _ten),
    Scenario("nothing", 100, 10.0, lambda tenant: []),
    Scenario("10 000 waiting pods of two terms", 100, 10.0, lambda who: two_terms(who, 10_000)),
    Scenario("10 000 waiting pods of two terms, others placed by somebody else", 100, 10.0,
             lambda who: two_terms(who, 10_000), foreign=True),
    Scenario("nothing, others placed by somebody else", 100, 10.0, lambda tenant: [],
             foreign=True),
)  # fmt: skip


class _Play:
    """One round: the hostile objects after the first pods, metrics before and after the load."""

    def __init__(self, scenario: Scenario, who: Measured, nodes: int) -> None:
        self._scenario = scenario
        self._who = who
        self._nodes = nodes
        self._before: Scrape | None = None

    async def prepare(self, client: LoadClient) -> None:
        """Make the hostile objects and let the contender look at them."""
        await client.create_many(ground())
        objects = self._scenario.objects(tenant(self._nodes))
        for group in arranging.by_kind(objects):
            await client.create_many(group)
        await asyncio.sleep(_LOOK_S)
        self._before = await asyncio.to_thread(self._who.scrape)

    def lag_ms(self) -> float | None:
        """Return the 99th percentile of the loop's lag under load, as a bound."""
        after = self._who.scrape()
        if self._before is None or after is None:
            return None
        return after.lag_since(self._before, 0.99)


class _ObservedArrivals(Arrivals):
    """Reads the loop's lag before the contender is ended."""

    def __init__(self, scenario: Scenario, nodes: int, play: _Play) -> None:
        pods = round(scenario.rate * scenario.seconds)
        super().__init__(scenario.rate, pods, play.prepare)
        self._hosts = itertools.cycle(map(node_name, range(nodes))) if scenario.foreign else None
        self._play = play
        self.lag_ms: float | None = None

    def pod(self, name: str) -> Json:
        """Return a pod, on a node already where somebody else has placed it."""
        return PLAIN.pod(name, MEASURED, next(self._hosts) if self._hosts else "")

    async def _observe(self, stage: Stage, started: Any) -> Any:
        observed = await super()._observe(stage, started)
        self.lag_ms = await asyncio.to_thread(self._play.lag_ms)
        return observed


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the file does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench mixed", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scenarios", default="", help="their numbers, by commas; all")
    parser.add_argument(
        "--contenders", default="kube-scheduler,berth", help=f"{', '.join(NAMES)}, berth@FOLDER"
    )
    parser.add_argument("--again", action="store_true", help="measure also what the file holds")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    try:
        contenders = [measured(name) for name in options.contenders.split(",")]
        numbers = [int(each) for each in filter(None, options.scenarios.split(","))]
    except (ValueError, subprocess.CalledProcessError) as error:
        parser.error(str(error))
    scenarios = [SCENARIOS[number] for number in numbers] or list(SCENARIOS)
    figures = Figures.load(options.json)
    missing = [
        (number, scenario, each)
        for number in range(1, options.rounds + 1)
        for scenario in scenarios
        for each in contenders
        if options.again
        or not figures.holds(
            "mixed", (scenario.name, options.nodes, scenario.rate, each.name, number)
        )
    ]
    if not missing:
        return 0
    figures.sessions.append(today(datetime.now(UTC).isoformat(timespec="seconds")))
    with SavedControlPlane() as plane:
        stage = Stage(plane)
        stage.arrange(WORKLOAD, options.nodes, WARM_UP)
        for number, scenario, each in missing:
            played = _round(stage, scenario, each, options.nodes, number, len(figures.sessions) - 1)
            figures.add("mixed", played)
            figures.save(options.json)
            print(f"{scenario.name[:40]:<41}{line(played.latency)}"
                  f"  lag {played.loop_lag_p99_ms} ms", flush=True)  # fmt: skip
    return 0


def _round(
    stage: Stage, scenario: Scenario, who: Measured, nodes: int, number: int, session: int
) -> Mixed:
    arrivals = _ObservedArrivals(scenario, nodes, _Play(scenario, who, nodes))
    try:
        latency = arrivals.play(stage, who.contender, nodes, number, session, name=who.name)
    except RuntimeError as error:
        print(f"{who.name}: {error}", file=sys.stderr)
        latency = _nothing_bound(scenario, who, nodes, number, session)
    return Mixed(
        scenario=scenario.name, commit=who.commit, latency=latency, loop_lag_p99_ms=arrivals.lag_ms
    )


def _nothing_bound(
    scenario: Scenario, who: Measured, nodes: int, number: int, session: int
) -> LatencyRound:
    """Return the round of a contender that has bound none of the pods."""
    return LatencyRound(
        nodes=nodes, before=WORKLOAD.counts(nodes)[0], rate=scenario.rate, contender=who.name,
        number=number, session=session, pods=round(scenario.rate * scenario.seconds), bound=0,
        cpu_share=1.0, created_p50_ms=NEVER_MS, p50_ms=NEVER_MS, p90_ms=NEVER_MS,
        p99_ms=NEVER_MS, max_ms=NEVER_MS,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

"""Bin packing in the shadow of the default policy: what it would change, under a mixed load.

    python -m tests.scenarios.shadow_packing --nodes 300 --pods 3000

Berth schedules with its default profile on a real API server. Beside it a profile that fills nodes
up (MostAllocated) judges the same decisions without acting on them. Then it is made the one that
decides, and a second wave of pods shows what it was said to do. What comes out is the report, what
looking on cost, and how many nodes each wave went to.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scheduler.config import parse_config
from scheduler.process.log_setup import configure_logging
from scheduler.profiles import Mode, ProfileVersion, ShadowOptions
from scheduler.shadow.text_form import as_text
from tests.controlplane.access import USER
from tests.controlplane.audit import check_binds
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth, overcommitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.config import Profile
    from scheduler.shadow import ShadowReport

NAME: Final = "packing"
PACKING: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: berth
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
"""

ZONES: Final = ("east", "north", "west")
SIZES: Final = (("8", "32Gi"), ("16", "64Gi"), ("32", "64Gi"))
SECOND_WAVE: Final = 4
"""The second wave has so many times fewer pods than the first."""

SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    report
        The shadow's; None in a run without one.
    bound
        Pods that have a node.
    seconds
        From the first pod of the first wave that was made until the last one was bound.
    first_nodes, second_nodes
        How many nodes each wave went to.
    violations
        Of what must hold in any run.
    """

    report: ShadowReport | None
    bound: int
    seconds: float
    first_nodes: int
    second_nodes: int
    violations: Sequence[str]


def profile_of(text: str) -> Profile:
    """Return the one profile of a configuration."""
    (profile,) = parse_config(text, "packing.yaml").profiles
    return profile


def packing(mode: Mode, options: ShadowOptions, *, generation: int = 1) -> ProfileVersion:
    """Return the policy that fills nodes up, as a SchedulingProfile would describe it."""
    return ProfileVersion(
        NAME, "uid-packing", generation, profile_of(PACKING), mode=mode, shadow=options
    )


def mixed_nodes(count: int) -> list[dict[str, Any]]:
    """Return nodes of three sizes in three zones; every tenth is for those who tolerate it."""
    return [
        make_node(
            f"node-{i:04}",
            cpu=SIZES[i % 3][0],
            memory=SIZES[i % 3][1],
            zone=ZONES[i % 3],
            labels={"disk": "ssd" if i % 4 else "hdd"},
            taints=[{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
            if i % 10 == 0
            else (),
        )
        for i in range(count)
    ]


def mixed_pods(prefix: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield pods of five workloads in turn: some spread, some choose, some are large."""
    for i in range(count):
        name, kind = f"{prefix}-{i:05}", i % 10
        if kind < 4:
            yield make_pod(name, cpu="100m", memory="256Mi", labels={"app": "web"})
        elif kind < 6:
            selector = {"labelSelector": {"matchLabels": {"app": "api"}}}
            yield make_pod(
                name,
                cpu="250m",
                memory="512Mi",
                labels={"app": "api"},
                topologySpreadConstraints=[{**SPREAD, **selector}],
            )
        elif kind < 8:
            toleration = {"key": "dedicated", "operator": "Exists"}
            yield make_pod(name, cpu="500m", memory="256Mi", tolerations=[toleration])
        elif kind < 9:
            yield make_pod(name, cpu="250m", memory="2Gi", nodeSelector={"disk": "ssd"})
        else:
            yield make_pod(name, cpu="1500m", memory="3Gi")


def run(nodes: int, pods: int, options: ShadowOptions | None) -> Outcome:
    """Schedule a mixed load with the default profile; with options, beside a shadow."""
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(mixed_nodes(nodes))
        with RunningBerth(plane.berth_kubeconfig()) as berth:
            api.wait_until(lambda: berth.is_ready, "berth stands by")
            policies = berth.app.profiles.known
            if options is not None:
                assert not policies.put(packing(Mode.SHADOW, options)).mistakes
            began = time.monotonic()
            api.create_many(mixed_pods("first", pods))
            api.wait_bound(pods, timeout_s=300)
            seconds = time.monotonic() - began
            report = berth.app.deciding.shadows.report(NAME)
            if options is not None:
                assert not policies.put(packing(Mode.ACTIVE, options, generation=2)).mistakes
            second = pods // SECOND_WAVE
            api.create_many(mixed_pods("second", second))
            api.wait_bound(pods + second, timeout_s=300)
            api.wait_until(lambda: berth.is_at_rest, "berth comes to rest")
            found = api.pods()
            violations = [
                *check_binds(plane.audit_events(), user=USER, pods=found),
                *overcommitted(api),
            ]
            first, second_wave = (_nodes_of(found, wave) for wave in ("first", "second"))
            return Outcome(
                report=report,
                bound=len(first),
                seconds=seconds,
                first_nodes=len(set(first)),
                second_nodes=len(set(second_wave)),
                violations=violations,
            )


def _nodes_of(pods: Sequence[dict[str, Any]], wave: str) -> list[str]:
    """Return the node of each pod of a wave that has one."""
    return [
        pod["spec"]["nodeName"]
        for pod in pods
        if pod["metadata"]["name"].startswith(wave) and pod["spec"].get("nodeName")
    ]


def main() -> int:
    """Run from the command line; 0 when everything held."""
    parser = argparse.ArgumentParser(description=__doc__, prog="tests.scenarios.shadow_packing")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--budget", type=float, default=0.05)
    given = parser.parse_args()
    configure_logging("console", "warning")
    is_well = True
    for options in (None, ShadowOptions(given.decisions, given.budget)):
        outcome = run(given.nodes, given.pods, options)
        who = "without" if options is None else "with"
        rate = outcome.bound / outcome.seconds
        print(f"{who} a shadow: {outcome.bound} pods in {outcome.seconds:.1f} s, {rate:.0f} pods/s")
        print(f"  they went to {outcome.first_nodes} of {given.nodes} nodes")
        decides = "default" if options is None else "packing"
        print(
            f"  {given.pods // SECOND_WAVE} more, {decides} decides: {outcome.second_nodes} nodes"
        )
        for violation in outcome.violations:
            print(f"  VIOLATION {violation}")
        is_well &= outcome.bound == given.pods and not outcome.violations
        if outcome.report is not None:
            share = 100 * outcome.report.time_s / outcome.seconds
            print(f"  comparing took {outcome.report.time_s:.2f} s, {share:.1f} % of the time\n")
            print(as_text(outcome.report))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())

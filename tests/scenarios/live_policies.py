"""Policies that change under load: every pod is placed by one that was in force at its cycle.

    python -m tests.scenarios.live_policies --pods 12000 --rate 200 --changes 50

Berth runs as a process of its own on a real API server, and pods come at a steady rate, all of one
schedulerName. Meanwhile its SchedulingProfile is changed again and again; a third of the changes
is broken, in as many ways as there are, and now and then it is deleted, so that the profile of the
configuration file decides. After each change it is waited for what Berth, or the API server, says
of it. Afterwards the same pods come without any change.

What was in force when is read from the lines that berth logs about swaps and cycles; what users
see, from the Scheduled Events; what really happened, from the API server and its audit log.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import urllib.error
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from scheduler.api_writes.event_body import POLICY_ANNOTATION
from scheduler.profiles.profile_status import CONFLICT
from tests.controlplane.access import NAMESPACE, USER
from tests.controlplane.audit import check_binds
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import PATH, SchedulingProfiles
from tests.controlplane.server_process import ServerProcess
from tests.scenarios.broken_policies import BROKEN, CONFIG_MAP, BrokenPolicy, config_map

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NAME: Final = "live"
"""The schedulerName of all pods; the SchedulingProfiles for it are live-1, live-2 and so on."""

PODS_A_NODE: Final = 110
BATCH_S: Final = 0.1
BROKEN_EVERY: Final = 3
DELETED_EVERY: Final = 9
"""A multiple of the former, so that no deletion falls on a broken change."""

PATIENCE_S: Final = 120.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    created, bound
        Pods.
    seconds
        From the first creation to the last binding.
    p50_s, p99_s
        From a pod's creation to its binding.
    changes, changing_s
        How often the policy was changed, and how long that took.
    refused
        The changes that could not be used, by what was wrong with them, in their order.
    policies
        How many pods each policy placed.
    violations
        Of what must hold in any run.
    """

    created: int
    bound: int
    seconds: float
    p50_s: float
    p99_s: float
    changes: int
    changing_s: float
    refused: Sequence[str]
    policies: dict[str, int]
    violations: Sequence[str]

    @property
    def rate(self) -> float:
        """Bindings a second."""
        return self.bound / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.bound} of {self.created} pods bound, {self.rate:.1f}/s, "
            f"latency p50 {self.p50_s * 1000:.0f} ms, p99 {self.p99_s * 1000:.0f} ms; "
            f"{self.changes} changes in {self.changing_s:.1f} s, {len(self.refused)} of them "
            f"refused for {len(set(self.refused))} reasons; "
            f"{len(self.policies)} policies placed pods; {len(self.violations)} violations"
        )


# --- changes --------------------------------------------------------------------------------------


def wanted_broken(changes: int) -> int:
    """Return how many of so many changes have to be broken: a third."""
    return round(changes / BROKEN_EVERY)


def is_broken(number: int) -> bool:
    """Tell whether a change is broken, counted from 0."""
    return number % BROKEN_EVERY == 1


def good_spec(number: int) -> Json:
    """Return a spec that can be used, another one for each number."""
    strategy = ("LeastAllocated", "MostAllocated")[number % 2]
    resources = [{"name": "cpu", "weight": 1 + number % 5}, {"name": "memory", "weight": 1}]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    return {
        "schedulerName": NAME,
        # All nodes either way: a policy that looks at fewer would be another workload.
        "percentageOfNodesToScore": (0, 100)[number % 2],
        "plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 1 + number}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


class Changing:
    """Changes SchedulingProfiles, one at a time, at a steady pace, on a thread of its own.

    A change comes when it is due and the one before it has been judged.

    Attributes
    ----------
    refused
        What was wrong with the changes that could not be used.
    unusable
        The generations that must never have decided.
    violations
        What was said of a change that is not true of it.
    """

    def __init__(self, plane: ControlPlane, api: BlockingApi, count: int, every_s: float) -> None:
        self._profiles = SchedulingProfiles(plane)
        self._plane = plane
        self._api = api
        self._count = count
        self._every_s = every_s
        self._objects = 0
        self._exists = False
        self._good: int | None = None
        self.changes = 0
        self.seconds = 0.0
        self.refused: list[str] = []
        self.unusable: set[str] = set()
        self.violations: list[str] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="changing")

    @property
    def _name(self) -> str:
        """The object's: generations are counted anew in another one, so that has another name."""
        return f"{NAME}-{self._objects}"

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._change_all()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            self._failure = error

    def _change_all(self) -> None:
        began = time.monotonic()
        broken = 0
        for number in range(self._count):
            # The pace of the load, not a wait for something to happen.
            time.sleep(max(began + number * self._every_s - time.monotonic(), 0.0))
            if is_broken(number):
                self._break(BROKEN[broken % len(BROKEN)])
                broken += 1
            elif self._exists and number % DELETED_EVERY == DELETED_EVERY - BROKEN_EVERY:
                self._profiles.delete(self._name)
                self._exists, self._good = False, None
            else:
                self._improve(good_spec(number))
            self.changes += 1
        self.seconds = time.monotonic() - began

    def _improve(self, spec: Json) -> None:
        made = self._write(spec)
        self._good = made["metadata"]["generation"]
        accepted, active = self._judgement(self._good)
        if accepted["status"] != "True" or active != self._good:
            self.violations.append(
                f"{self._name}@{self._good} is good: {accepted}, {active} decides"
            )

    def _break(self, broken: BrokenPolicy) -> None:
        try:
            made = self._write({"schedulerName": NAME, **broken.spec})
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode()
            if error.code != HTTPStatus.UNPROCESSABLE_ENTITY or not broken.by_api_server:
                self.violations.append(f"{broken.name}: {error.code}, {said}")
        else:
            generation = made["metadata"]["generation"]
            self.unusable.add(f"{made['metadata']['uid']}@{generation}")
            accepted, active = self._judgement(generation)
            said = accepted["message"]
            if broken.by_api_server or accepted["status"] != "False" or active != self._good:
                self.violations.append(f"{broken.name}: {accepted}, {active} decides")
        if broken.told not in said:
            self.violations.append(f"{broken.name}: {said!r} does not have {broken.told!r}")
        self.refused.append(broken.name)

    def _write(self, spec: Json) -> Json:
        if not self._exists:
            self._objects += 1
            created = self._profiles.create(self._name, spec)
            self._exists = True
            return created
        patch = [{"op": "replace", "path": "/spec", "value": spec}]
        changed: Json = self._plane.call(
            "PATCH", f"{PATH}/{self._name}", patch, content_type="application/json-patch+json"
        )
        return changed

    def _judgement(self, generation: int) -> tuple[Json, int | None]:
        """Wait for the status; return the condition Accepted, and the generation that decides."""
        status: Json = {}

        def accepted() -> Json:
            (found,) = [each for each in status["conditions"] if each["type"] == "Accepted"]
            return found

        def is_settled() -> bool:
            status.clear()
            status.update(self._api.get(f"{PATH}/{self._name}").get("status", {}))
            if status.get("observedGeneration") != generation:
                return False
            # For a moment, the object before this one may not be known to be gone.
            return bool(accepted()["reason"] != CONFLICT)

        wait_until(self._api, is_settled, f"{self._name}@{generation} is judged")
        return accepted(), status.get("activeGeneration")


# --- a run ----------------------------------------------------------------------------------------


def start_berth(
    plane: ControlPlane, log: Path, *, extenders: tuple[str, ...] = ()
) -> ServerProcess:
    """Start berth with a profile of the same name in its file, and allow extenders at URLs."""
    kubeconfig = plane.berth_kubeconfig()
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [{"schedulerName": NAME}],
    }
    path = plane.folder / "live.yaml"
    path.write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "scheduler", "run", "--config", str(path)]
    command += ["--scheduling-profiles", "--log-level", "debug"]
    command += ["--scheduling-profiles-extenders", ",".join(extenders)]
    command += ["--allow-python-profiles", "--python-profiles-namespace", NAMESPACE]
    command += ["--secure-port", "0", "--insecure-bind-address", "127.0.0.1:0"]
    return ServerProcess(command, log)


def run(*, pods: int, rate: float, changes: int) -> Outcome:
    """Place pods while the policy changes; on a control plane of its own."""
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        plane.berth_kubeconfig()
        profiles = SchedulingProfiles(plane)
        profiles.install()
        profiles.grant_config_maps(CONFIG_MAP)
        api.create_many([config_map()])
        count = pods // PODS_A_NODE + 20
        api.create_many(make_node(f"n{i:04}", cpu="64", memory="256Gi") for i in range(count))
        log = plane.folder / "berth-live.log"
        berth = start_berth(plane, log)
        try:
            api.wait_until(
                lambda: "scheduling" in events_of(log), "berth schedules", timeout_s=PATIENCE_S
            )
            changing = Changing(plane, api, changes, pods / rate / max(changes, 1))
            changing.start()
            created = create_at(api, pods, rate)
            changing.finish()
            api.wait_bound(pods, timeout_s=PATIENCE_S)
            wait_until(api, lambda: len(scheduled_events(api)) >= pods, "there are Events")
        finally:
            berth.terminate()
        lines = log_lines(log)
        found = [*check_binds(plane.audit_events(), user=USER, pods=api.pods())]
        found += changing.violations
        found += check_policies(lines, scheduled_events(api), changing.unusable)
        return outcome_of(created, api.pods(), lines, changing, found)


def create_at(api: BlockingApi, count: int, rate: float) -> dict[str, float]:
    """Create pods at a steady rate; return when each was asked for, as the log tells times."""
    created: dict[str, float] = {}
    began = time.monotonic()
    while len(created) < count:
        due = min(int((time.monotonic() - began + BATCH_S) * rate), count)
        names = [f"live-{i:05}" for i in range(len(created), due)]
        now = time.time()
        created |= {f"default/{name}": now for name in names}
        api.create_many(
            make_pod(name, cpu="100m", memory="128Mi", scheduler_name=NAME) for name in names
        )
        # The pace of the load, not a wait for something to happen.
        time.sleep(max(began + len(created) / rate - time.monotonic(), 0.0))
    return created


def wait_until(api: BlockingApi, holds: Callable[[], bool], what: str) -> None:
    """Wait with much patience: there may be other work on the machine."""
    api.wait_until(holds, what, timeout_s=PATIENCE_S)


def scheduled_events(api: BlockingApi) -> dict[str, Json]:
    """Return the Scheduled Event of each pod."""
    return {
        event["regarding"]["name"]: event
        for event in api.list_all("/apis/events.k8s.io/v1/events")
        if event["reason"] == "Scheduled"
    }


# --- judging --------------------------------------------------------------------------------------


def log_lines(log: Path) -> list[Json]:
    """Return the lines that are JSON, in order."""
    lines = log.read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]


def events_of(log: Path) -> set[str]:
    return {line["event"] for line in log_lines(log)}


def time_of(line: Json) -> float:
    """Return when a line was written, in seconds since the epoch."""
    return datetime.fromisoformat(line["timestamp"]).timestamp()


def check_policies(lines: Sequence[Json], events: dict[str, Json], unusable: set[str]) -> list[str]:
    """Return every cycle whose policy was not in force, and every Event that tells another one.

    A swap happens between the beginning of its line's duration and the line, a cycle likewise; a
    policy was in force for a cycle if it ran at any moment of it.
    """
    swaps = [(0.0, time_of(lines[0]), "file@1")]
    placed: dict[str, str] = {}
    found: list[str] = []
    for line in lines:
        if line["event"] == "profiles swapped":
            at = time_of(line)
            swaps.append((at - line["duration_s"], at, line["running"][NAME]))
    for line in lines:
        if line["event"] != "cycle":
            continue
        ended = time_of(line)
        in_force = {
            policy
            for index, (since, _, policy) in enumerate(swaps)
            if since <= ended
            and (index + 1 == len(swaps) or swaps[index + 1][1] >= ended - line["duration_s"])
        }
        if line["policy"] not in in_force:
            found.append(f"{line['pod']}: {line['policy']} decided, in force was {in_force}")
        if line["node"]:
            placed[line["pod"].partition("/")[2]] = line["policy"]
    for pod, event in events.items():
        told = event["metadata"].get("annotations", {}).get(POLICY_ANNOTATION)
        if told != placed.get(pod):
            found.append(f"{pod}: its Event says {told}, {placed.get(pod)} decided")
        uid = event.get("related", {}).get("uid", "")
        if f"{uid}@{(told or '').rpartition('@')[2]}" in unusable:
            found.append(f"{pod}: placed by {told}, which cannot be used")
    return found


def outcome_of(
    created: dict[str, float],
    pods: Sequence[Json],
    lines: Sequence[Json],
    changing: Changing,
    violations: Sequence[str],
) -> Outcome:
    """Put the figures together."""
    bound_at = {line["pod"]: time_of(line) for line in lines if line["event"] == "pod bound"}
    waits = sorted(bound_at[pod] - at for pod, at in created.items() if pod in bound_at)
    policies: dict[str, int] = {}
    for line in lines:
        if line["event"] == "pod bound":
            policies[line["policy"]] = policies.get(line["policy"], 0) + 1
    unbound = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
    return Outcome(
        created=len(created),
        bound=len(pods) - len(unbound),
        seconds=max(bound_at.values()) - min(created.values()),
        p50_s=waits[len(waits) // 2],
        p99_s=waits[int(len(waits) * 0.99)],
        changes=changing.changes,
        changing_s=changing.seconds,
        refused=changing.refused,
        policies=policies,
        violations=[*violations, *(f"{name} has no node" for name in unbound)],
    )


def main() -> int:
    """Run with changes and without, and print both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pods", type=int, default=12_000)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--changes", type=int, default=50)
    options = parser.parse_args()
    failed = False
    for changes in (options.changes, 0):
        outcome = run(pods=options.pods, rate=options.rate, changes=changes)
        print(f"{changes} changes: {outcome}", flush=True)
        for policy, count in sorted(outcome.policies.items()):
            print(f"  {policy}: {count}")
        for violation in outcome.violations[:20]:
            print(f"  VIOLATION {violation}")
        failed = failed or bool(outcome.violations) or outcome.bound != outcome.created
        failed = failed or len(outcome.refused) != wanted_broken(changes)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Whole schedules of pods with device claims, played step by step on both sides.

``python -m tests.parity.device_schedules --cases N``

Berth's side is one plugin that lives through the schedule: its counts, kept results and allocated
devices follow what is written and freed. Its claims lie behind an API in memory, to which its own
writer writes. The other side is kube-scheduler's plugin, made anew for each pod from the claims as
it wrote them itself. After each step the verdicts and all claims are compared.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.device_objects import DeviceClass, ResourceSlice
from cache.objects import Node, Pod
from cache.pod_info import PodInfo
from plugins.dynamic_resources.node_verdicts import NodeVerdictError
from plugins.framework.status import Code
from scheduler.client.codec import Decoder
from scheduler.kinds import RESOURCE_CLAIMS
from tests.controlplane.binaries import find_or_build
from tests.parity.branches import ENOUGH_OF
from tests.parity.campaign import Report, SeededCampaign
from tests.parity.cases import DEVICES
from tests.parity.comparison import devices_of, differences
from tests.parity.device_histories import histories
from tests.parity.processes import LineProcess
from tests.plugins.dynamic_resources.device_world import Cycle, DeviceWorld, the_loop

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.parity.vocabulary import Json

SCHEDULES: Final = "schedules"
STEPS: Final = "steps"
ENOUGH: Final = 3000
"""Schedules."""

PLUGIN: Final = "DynamicResources"
_WEIGHT: Final = 2
_AGAIN: Final = 3
"""Pods that are tried again when devices are free again."""

_NOTHING: Final = "no new claims to deallocate"
_DEALLOCATED: Final = "deallocation of ResourceClaim completed"

REACHED: Final = frozenset(
    {
        "a claim is deallocated for a pod that fits nowhere",
        "a claim is shared",
        "devices are freed",
        "error",
        "placed",
        "placed after it had been refused",
        "prefilter: could not find ResourceClaim",
        "prefilter: is being deleted",
        "refused: cannot allocate all claims",
        "refused: invalid resource pools were encountered",
        "refused: resourceclaim not available on the node",
        "still not schedulable",
    }
)
"""What schedules have to reach, each as often as a branch of devices."""

_PREFILTER: Final = ("could not find ResourceClaim", "is being deleted")


class _Built:
    """A pod as the worlds of the plugin's tests take it."""

    def __init__(self, raw: Json) -> None:
        self._pod = _decoded(Pod, raw)

    def info(self) -> PodInfo:
        return PodInfo(self._pod)


def _decoded(kind: type[Any], raw: Json) -> Any:
    return Decoder(kind).decode(msgspec.json.encode(raw))


class Ours:
    """Berth's plugin, with the claims that it wrote."""

    def __init__(self, objects: Iterable[Json]) -> None:
        of_kind: dict[str, list[Json]] = {}
        for each in objects:
            of_kind.setdefault(each["kind"], []).append(each)
        self.world = DeviceWorld(*(_decoded(Node, each) for each in of_kind.get("Node", ())))
        for each in of_kind.get("DeviceClass", ()):
            self.world.known.classes.changed(None, _decoded(DeviceClass, each))
        for each in of_kind.get("ResourceSlice", ()):
            self.publish(each)
        self._names: set[str] = set()

    def publish(self, known: Json, *, gone: bool = False) -> None:
        """Publish a slice, or withdraw it."""
        decoded = _decoded(ResourceSlice, known)
        self.world.known.slices.changed(*((decoded, None) if gone else (None, decoded)))

    def put(self, name: str, claim: Json | None) -> None:
        """Create, replace or delete a claim, as another client does."""
        if claim is None:
            self._names.discard(name)
            self.world.api.delete(RESOURCE_CLAIMS, "default", name)
        else:
            self._names.add(name)
            self.world.api.put(RESOURCE_CLAIMS, "default", name, claim)

    def claims(self) -> dict[str, Json]:
        """Return the claims as the API has them."""
        raw = self.world.api.raw
        return {name: raw(RESOURCE_CLAIMS, "default", name) for name in sorted(self._names)}

    def place(self, pod: Json) -> Json:
        """Return the answer about a pod; the claims of a pod that fits are written."""
        try:
            cycle = Cycle(self.world, _Built(pod))  # type: ignore[arg-type] # has all that is asked
        except NodeVerdictError as error:
            return {"error": f'running "{PLUGIN}" filter plugin: {error}'}
        status = cycle.pre_filter
        if status.code is Code.SKIP:
            # A pod without claims. No history has one, but a part of it may.
            names = sorted(each.name for each in self.world.nodes.node_infos())
            passed: Json = {name: {"scores": {}, "total": 0} for name in names}
            return {"prefilter": None, "nodes": passed, "bound": {"node": names[0]}}
        if not status.is_success:
            if status.code is Code.ERROR:
                return {"error": f'running PreFilter plugin "{PLUGIN}": {status.message}'}
            return {"prefilter": _rejected(status), "nodes": {}, **self._post_filter(cycle)}
        nodes: Json = {
            name: _rejected(status) for name, status in cycle.said.items() if not status.is_success
        }
        for name, (_, score) in cycle.scores().items() if cycle.feasible() else ():
            total = _WEIGHT * score
            nodes[name] = {"scores": {PLUGIN: total}, "total": total}
            found = cycle.plugin.allocations(cycle.state, cycle.info, name)
            if found:
                nodes[name]["allocations"] = [
                    {"claim": each.metadata.name, "allocation": _as_json(allocation)}
                    for each, allocation in found
                ]
        answer: Json = {"prefilter": None, "nodes": nodes}
        if not cycle.feasible():
            return answer | self._post_filter(cycle)
        best = min(cycle.feasible(), key=lambda name: (-nodes[name]["total"], name))
        reserved = cycle.reserve(best)
        why = cycle.pre_bind(best) if reserved.is_success else reserved.message
        return answer | {"bound": {"node": best, "error": why}}

    def _post_filter(self, cycle: Cycle) -> Json:
        message = cycle.post_filter()
        return {} if message == _NOTHING else {"deallocation": message}


def _rejected(status: Any) -> Json:
    return {"rejected": PLUGIN, "code": int(status.code), "reasons": [status.message]}


def _as_json(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


class Theirs:
    """The claims as kube-scheduler's plugin wrote them."""

    def __init__(self, oracle: LineProcess, objects: Iterable[Json]) -> None:
        self._oracle = oracle
        self._objects = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        self._claims: dict[str, Json] = {}

    def publish(self, known: Json, *, gone: bool = False) -> None:
        """Publish a slice, or withdraw it."""
        key = (known["kind"], known["metadata"]["name"])
        self._objects.pop(key, None)
        if not gone:
            self._objects[key] = known

    def put(self, name: str, claim: Json | None) -> None:
        """Create, replace or delete a claim, as another client does."""
        self._claims.pop(name, None)
        if claim is not None:
            self._claims[name] = claim

    def claims(self) -> dict[str, Json]:
        """Return the claims."""
        return dict(sorted(self._claims.items()))

    def place(self, pod: Json) -> Json:
        """Return the answer about a pod; the claims of a pod that fits are written."""
        objects = [*self._objects.values(), *self._claims.values()]
        question = {"objects": objects, "pod": pod, "bind": True}
        self._oracle.send(json.dumps(question).encode() + b"\n")
        answer = self._oracle.receive()
        for verdict in answer.get("nodes", {}).values():
            if "scores" in verdict:
                for each in verdict.get("allocations", ()):
                    # Written later into what is shown here.
                    each["allocation"].pop("allocationTimestamp", None)
                score = verdict["scores"].get(PLUGIN, 0)
                verdict |= {"scores": {PLUGIN: score}, "total": score}
        for each in answer.get("bound", {}).get("claims") or ():
            written = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **each}
            self.put(each["metadata"]["name"], written)
        answer.pop("preemption", None)
        return answer


# --- what others do -----------------------------------------------------------------------------


def without_pod(claims: Mapping[str, Json], uid: str) -> Iterator[tuple[str, Json | None]]:
    """Yield the claims that change when a pod has ended, as the claim controller changes them."""
    for name, before in claims.items():
        claim = copy.deepcopy(before)
        metadata, status = claim["metadata"], claim.setdefault("status", {})
        users = [each for each in status.get("reservedFor") or () if each["uid"] != uid]
        is_owned = any(each["uid"] == uid for each in metadata.get("ownerReferences") or ())
        was_used = len(users) < len(status.get("reservedFor") or ())
        if was_used and not users:
            claim["status"] = {}
            metadata["finalizers"] = []
        elif was_used:
            status["reservedFor"] = users
        if (is_owned or metadata.get("deletionTimestamp")) and not users:
            yield name, None
        elif was_used:
            yield name, claim


def deleted(claim: Json) -> Json | None:
    """Return what is left of a claim that somebody deletes: one in use stays for a while."""
    if not claim["metadata"].get("finalizers"):
        return None
    metadata = {**claim["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**claim, "metadata": metadata}


class Schedule:
    """One schedule on both sides."""

    def __init__(self, oracle: LineProcess, history: Json, counts: Counter[str]) -> None:
        objects = history["objects"]
        self._slices = {
            each["metadata"]["name"]: each for each in objects if each["kind"] == "ResourceSlice"
        }
        self._ours, self._theirs = Ours(objects), Theirs(oracle, objects)
        self._history = history
        self._counts = counts
        self._waiting: list[Json] = []
        self._freed = False

    def play(self) -> list[str]:
        """Return what differs at the first step where something does."""
        for step in self._history["steps"]:
            for each in step["claims"]:
                self._put(each["metadata"]["name"], each)
            again = [self._waiting.pop(0) for _ in self._waiting[:_AGAIN] if self._freed]
            self._freed = False
            for pod in (*again, step["pod"]):
                found = self._place(pod, pod in again)
                if found:
                    return [f"{pod['metadata']['name']}: {each}" for each in found]
            for event in step["after"]:
                self._happen(event)
        return []

    def _put(self, name: str, claim: Json | None) -> None:
        for side in (self._ours, self._theirs):
            side.put(name, copy.deepcopy(claim))

    def _place(self, pod: Json, again: bool) -> list[str]:
        before = self._ours.claims()
        theirs, ours = self._theirs.place(pod), self._ours.place(pod)
        self._counts[STEPS] += 1
        self._counts.update(_reached(theirs, pod, before, again))
        found = differences(theirs, ours)
        bound, expected = ours.get("bound", {}), theirs.get("bound", {})
        for key in ("node", "error"):
            if bound.get(key, "") != expected.get(key, ""):
                found.append(f"bound: oracle {expected.get(key)}; berth {bound.get(key)}")
        if not expected:
            self._waiting.append(pod)
        if ours.get("deallocation") == _DEALLOCATED and not found:
            found += self._deallocated(before, theirs["deallocation"]["claims"])
        return found or _different_claims(self._theirs.claims(), self._ours.claims())

    def _deallocated(self, before: Mapping[str, Json], candidates: list[str]) -> list[str]:
        """Deallocate on the other side what berth has chosen of several claims."""
        now = self._ours.claims()
        chosen = [name for name, claim in before.items() if _is_freed(claim, now[name])]
        if len(chosen) != 1 or chosen[0] not in candidates:
            return [f"deallocated: oracle one of {candidates}; berth {chosen}"]
        claim = self._theirs.claims()[chosen[0]]
        self._theirs.put(chosen[0], {**claim, "status": {}})
        self._freed = True
        return []

    def _happen(self, event: Json) -> None:
        if "ends" in event:
            uid = f"uid-pod-{event['ends']}"
            self._waiting = [each for each in self._waiting if each["metadata"]["uid"] != uid]
            for side in (self._ours, self._theirs):
                for name, claim in list(without_pod(side.claims(), uid)):
                    side.put(name, claim)
                    self._freed = True
            self._counts["devices are freed"] += self._freed
        elif "deleted" in event:
            for side in (self._ours, self._theirs):
                claim = side.claims().get(event["deleted"])
                if claim is not None:
                    side.put(event["deleted"], deleted(claim))
        else:
            name = event.get("withdrawn") or event["published"]
            if name in self._slices:
                for each in (self._ours, self._theirs):
                    each.publish(self._slices[name], gone="withdrawn" in event)


def _is_freed(before: Json, after: Json) -> bool:
    return "allocation" in before.get("status", {}) and not after["status"].get("allocation")


def _reached(answer: Json, pod: Json, claims: Mapping[str, Json], again: bool) -> Iterator[str]:
    if "error" in answer:
        yield "error"
        return
    reasons = {
        reason
        for each in (answer["prefilter"], *answer["nodes"].values())
        for reason in (each or {}).get("reasons") or ()
    }
    for reason in reasons:
        known = [each for each in _PREFILTER if each in reason]
        yield f"prefilter: {known[0]}" if known else f"refused: {reason}"
    message = answer.get("deallocation", {}).get("message")
    if message == _DEALLOCATED:
        yield "a claim is deallocated for a pod that fits nowhere"
    elif message:
        yield message
    if "bound" in answer:
        yield "placed"
        if again:
            yield "placed after it had been refused"
        names = {each.get("resourceClaimName") for each in pod["spec"]["resourceClaims"]}
        if any(claims[name].get("status", {}).get("reservedFor") for name in names & {*claims}):
            yield "a claim is shared"


def _different_claims(theirs: Mapping[str, Json], ours: Mapping[str, Json]) -> list[str]:
    return [
        f"claim {name}: oracle {_shown(theirs.get(name))}; berth {_shown(ours.get(name))}"
        for name in sorted({*theirs, *ours})
        if _shown(theirs.get(name)) != _shown(ours.get(name))
    ]


def _shown(claim: Json | None) -> Json | None:
    """Return what both sides write of a claim, without moments and random ids."""
    if claim is None:
        return None
    status: Json = _as_json(claim.get("status") or {})
    if "allocationTimestamp" in (status.get("allocation") or {}):
        status["allocation"]["allocationTimestamp"] = "some"
    metadata = claim["metadata"]
    return {
        "status": devices_of(status),
        "finalizers": metadata.get("finalizers") or [],
        "deleted": "deletionTimestamp" in metadata,
    }


# --- many of them -------------------------------------------------------------------------------


def compare(
    count: int, first_seed: int, progress: Callable[[int], None] = lambda done: None
) -> Counter[str]:
    """Play at least ``count`` fresh schedules; return what they reached, and how often.

    The same ``first_seed`` gives the same schedules. The key ``SCHEDULES`` holds their number.

    Raises
    ------
    DifferenceError
        With the seed of the schedule, the smallest one that was found, and what differs.
    """
    program = find_or_build(["oracle"])["oracle"]
    with closing(LineProcess("the oracle", [str(program)])) as oracle:

        def judge(history: Json, counts: Counter[str]) -> list[str]:
            counts[SCHEDULES] += 1
            if not any(each["kind"] == "Node" for each in history["objects"]):
                return []
            return Schedule(oracle, history, counts).play()

        return SeededCampaign(histories, SCHEDULES, judge).run(count, first_seed, progress)


def main() -> int:
    """Play, report, and return the exit status: 1 when anything differs or is not reached."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity.device_schedules", description=__doc__
    )

    def all_schedules(
        options: argparse.Namespace, first_seed: int, progress: Callable[[int], None]
    ) -> Counter[str]:
        with closing(the_loop()):
            return compare(options.cases, first_seed, progress)

    def missing(options: argparse.Namespace, counts: Counter[str]) -> list[str]:
        return [
            f"reached only {counts[each]} times: {each}"
            for each in sorted(REACHED)
            if counts[each] < ENOUGH_OF[DEVICES]
        ]

    report = Report(SCHEDULES, ENOUGH, 250)
    return report.tell(parser, lambda options: SCHEDULES, all_schedules, missing)


if __name__ == "__main__":
    sys.exit(main())

"""Who moves by another configuration: restart with it, and recreate pods in the forecast's order.

Where several nodes are equally good, chance decides, and every later pod meets another cluster. So
the forecast is asked anew before each pod: whether this one would move, with all others in place.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from scheduler.config import parse_config, running_profiles
from scheduler.offline.cluster import Cluster
from scheduler.offline.live import list_cluster
from scheduler.what_if import decode_question, forecast
from tests.what_if.comparison import PROFILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.what_if.actions import Action
    from tests.what_if.life import Scene

MOST_PODS: Final = 25
"""Pods that are recreated for one configuration."""

TIES: Final = 30
"""How often a forecast is asked for a node, to learn of all that are equally good."""

_Objects = list[tuple[msgspec.Raw, str]]


class Claim(NamedTuple):
    """What was forecast of one pod, and what became of it."""

    pod: str
    told: str
    good: frozenset[str]
    seen: str
    was_on: str

    @property
    def is_true(self) -> bool:
        """Whether the pod went where the forecast has it, or to a node that is as good."""
        if self.told == "moves":
            return self.seen != self.was_on and self.seen in self.good
        if self.told == "stays":
            return self.was_on in self.good and self.seen in self.good
        return not self.seen

    def __str__(self) -> str:
        good = ", ".join(sorted(self.good))
        return f"{self.pod} {self.told}: {self.was_on} -> {self.seen or 'no node'}, best: {good}"


async def moves(scene: Scene, action: Action) -> list[Claim]:
    """Restart Berth with a configuration, recreate pods, and return what was forecast of each."""
    await scene.drop_pending()  # they would take the room that a deleted pod leaves
    await scene.restart_berth(action.config)
    await scene.rest()
    claims = []
    try:
        for uid in _in_order((await scene.pods()).values())[:MOST_PODS]:
            pod = (await scene.pods()).get(uid)
            if pod is None or not pod["spec"].get("nodeName"):
                continue  # preempted by one before it
            objects = await list_cluster(str(scene.kubeconfig))
            told, good = _told(objects, pod, action.config)
            successor = await scene.recreate(pod)
            node = successor["spec"].get("nodeName", "")
            was_on = pod["spec"]["nodeName"]
            claims.append(Claim(pod["metadata"]["name"], told, good, node, was_on))
    finally:
        await scene.restart_berth()
    return claims


def _in_order(pods: Any) -> list[str]:
    """Return the UIDs of running pods, the most important and oldest first."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    bound.sort(
        key=lambda pod: (
            -pod["spec"].get("priority", 0),
            pod["metadata"]["creationTimestamp"],
            pod["metadata"]["name"],
        )
    )
    return [pod["metadata"]["uid"] for pod in bound]


def _told(objects: _Objects, pod: dict[str, Any], config: str) -> tuple[str, frozenset[str]]:
    """Return whether a pod would move, and the nodes that none is better than."""
    alone = _with_others_fixed(objects, pod["metadata"]["uid"])
    found = _ask(alone, {"config": config})
    (part,) = found.parts
    told = "moves" if part.placed else "stays" if part.stayed else "finds no node"
    without = [each for each in alone if _uid(each) != pod["metadata"]["uid"]]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            key: pod["metadata"][key]
            for key in ("name", "namespace", "labels", "ownerReferences")
            if key in pod["metadata"]
        },
        "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"},
    }
    profiles = running_profiles(parse_config(config, "campaign"))
    good: set[str] = set()
    for seed in range(TIES):
        good |= _ask(without, {"objects": [manifest], "seed": seed}, profiles).nodes.keys()
    return told, frozenset(good)


def _with_others_fixed(objects: _Objects, uid: str) -> _Objects:
    """Return objects in which another scheduler has all pods but one: they do not move."""
    changed = []
    for raw, kind in objects:
        if kind == "Pod" and _uid((raw, kind)) != uid:
            data = msgspec.json.decode(raw)
            data["spec"]["schedulerName"] = "nobody"
            changed.append((msgspec.Raw(msgspec.json.encode(data)), kind))
        else:
            changed.append((raw, kind))
    return changed


def _uid(each: tuple[msgspec.Raw, str]) -> str:
    raw, kind = each
    return str(msgspec.json.decode(raw)["metadata"]["uid"]) if kind == "Pod" else ""


def _ask(objects: _Objects, question: dict[str, Any], profiles: Sequence[Any] = PROFILES) -> Any:
    cluster = Cluster()
    cluster.add_all(objects)
    return forecast(cluster, profiles, decode_question(json.dumps(question).encode()))

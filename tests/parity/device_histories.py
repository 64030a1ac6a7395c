"""Histories of device claims: pods that come one after another, and what happens between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.parity.device_claims import allocated_claim, claim, claim_specs, device_classes
from tests.parity.device_pods import ROOM
from tests.parity.device_words import themes
from tests.parity.devices import published, resource_slices
from tests.parity.vocabulary import HOSTNAME, NODE_NAMES, ZONE

if TYPE_CHECKING:
    from tests.parity.device_words import Theme
    from tests.parity.devices import Published
    from tests.parity.dice import Dice
    from tests.parity.vocabulary import Json

PODS: Final = 10
"""Pods of one history."""

_ENDS = 45
_WITHDRAWS = 8
_HOLDS = 12


def _node(dice: Dice, name: str) -> Json:
    labels = {HOSTNAME: name, "disk": dice.choice(("ssd", "hdd"))}
    if dice.chance(85):
        labels[ZONE] = dice.choice(("zone-a", "zone-b", "zone-c"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {},
        "status": {"allocatable": dict(ROOM), "capacity": dict(ROOM)},
    }


def _theme(dice: Dice) -> Theme:
    """Return a theme without what ends most cycles, and without conditions to wait for."""
    theme = replace(themes(dice), extended=False, binding=False, terms=False, odd=False)
    return replace(theme, many=False, failing=dice.chance(10), pools=dice.chance(8))


def _pod(index: int, claims: list[Json], generated: bool) -> Json:
    entries, statuses = [], []
    for number, each in enumerate(claims):
        entry = {"name": f"e{number}"}
        if generated and each["metadata"].get("ownerReferences"):
            entry["resourceClaimTemplateName"] = "template"
            statuses.append({"name": f"e{number}", "resourceClaimName": _name(each)})
        else:
            entry["resourceClaimName"] = _name(each)
        entries.append(entry)
    name = f"pod-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "busybox:1.36", "resources": {}}],
            "resourceClaims": entries,
        },
        "status": {"phase": "Pending", "resourceClaimStatuses": statuses},
    }


def _name(claimed: Json) -> str:
    name: str = claimed["metadata"]["name"]
    return name


def _own_claims(
    dice: Dice, index: int, theme: Theme, devices: list[Published], generated: bool
) -> list[Json]:
    """Return the claims that are made for a pod.

    Some hold devices, for a pod that was never bound.
    """
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{index}", "uid": f"uid-pod-{index}"}
    metadata = {"ownerReferences": [{**owner, "controller": True}]} if generated else {}
    claims = []
    for number in range(dice.choice((1, 1, 1, 2, 0)) if index else 1):
        name = f"claim-{index}-{number}"
        if dice.chance(_HOLDS) and not generated:
            claims.append(allocated_claim(dice, name, devices, theme, []))
        else:
            claims.append(claim(name, claim_specs(dice, theme), **metadata))
    return claims


def _after(dice: Dice, index: int, claims: list[Json], slices: list[Json]) -> list[Json]:
    """Return what happens after a pod: pods end, claims and slices are deleted."""
    events: list[Json] = []
    if dice.chance(_ENDS):
        events.append({"ends": dice.randint(0, index)})
    if dice.chance(_WITHDRAWS) and claims:
        events.append({"deleted": _name(dice.choice(claims))})
    if dice.chance(_WITHDRAWS) and slices:
        events.append({"withdrawn": _name(dice.choice(slices))})
    if dice.chance(_WITHDRAWS) and slices:
        events.append({"published": _name(dice.choice(slices))})
    return events


def histories(dice: Dice) -> list[Json]:
    """Return one history.

    It has the ``objects`` of its cluster and ``steps``, each with a ``pod``, the ``claims`` that
    are made for it, and the events ``after`` it. Of a slice that is published and was never
    withdrawn nothing changes.
    """
    theme = _theme(dice)
    names = NODE_NAMES[: dice.choice((2, 3, 2, 4))]
    slices = resource_slices(dice, names, theme)
    nodes = [_node(dice, name) for name in names]
    history: Json = {"objects": [*nodes, *device_classes(dice, theme), *slices], "steps": []}
    made: list[Json] = []
    for index in range(PODS):
        generated = dice.chance(50)
        own = _own_claims(dice, index, theme, published(slices), generated)
        shared = [each for each in made if not each["metadata"].get("ownerReferences")]
        others = dice.some(shared or made, 1, 1) if not own or dice.chance(30) else []
        made += own
        history["steps"].append(
            {
                "pod": _pod(index, own + others, generated),
                "claims": own,
                "after": _after(dice, index, made, slices),
            }
        )
    return [history]

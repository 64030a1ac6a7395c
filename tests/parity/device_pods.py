"""Pods with claims on devices, and clusters that have some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.parity.device_claims import EXTENDED_CLASSES, POD_CLAIMS, device_classes, resource_claims
from tests.parity.device_words import EXTENDED_NAMES, IMPLICIT_PREFIX, Theme, themes
from tests.parity.devices import resource_slices
from tests.parity.vocabulary import HOSTNAME, NODE_NAMES, ZONE

if TYPE_CHECKING:
    from tests.parity.dice import Dice
    from tests.parity.vocabulary import Json

QUESTIONS: Final = 6
"""At most so many questions about one cluster."""

_WAYS = (*["name"] * 10, *["generated"] * 4, "not generated", "not needed")
_CONFIGURATIONS: Final[tuple[tuple[str, Json], ...]] = (
    ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "600s"}),
    ("DynamicResources", {"bindingTimeout": "1s"}),
    # Only then does DynamicResources see that nobody provides a resource.
    ("NodeResourcesFit", {"ignoredResources": list(EXTENDED_NAMES)}),
    ("NodeResourcesFit", {"ignoredResources": list(EXTENDED_NAMES)}),
)

# Of two classes with one name one has no implicit name; which one, depends on their order.
_IMPLICIT = [IMPLICIT_PREFIX + name for name in ("all-d", "any", "filtered", EXTENDED_CLASSES[-1])]
_RESOURCES = [*EXTENDED_NAMES * 2, *_IMPLICIT]
ROOM: Final = {"cpu": "16", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def _node(dice: Dice, name: str, theme: Theme) -> Json:
    labels = {HOSTNAME: name}
    if dice.chance(85):
        labels[ZONE] = dice.choice(("zone-a", "zone-b", "zone-c"))
    if dice.chance(50):
        labels["disk"] = dice.choice(("ssd", "hdd"))
    room = dict(ROOM)
    if theme.extended:
        for resource in EXTENDED_NAMES:
            if dice.chance(35):
                room[resource] = dice.choice(("0", "4", "1"))
    spec: Json = {}
    if dice.chance(5):
        spec["taints"] = [{"key": "dedicated", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": room, "capacity": room},
    }


def _entries(dice: Dice, theme: Theme) -> tuple[list[Json], list[Json]]:
    """Return the pod's claims, in its specification and in its status."""
    entries: list[Json] = []
    statuses: list[Json] = []
    least = 2 if theme.held and dice.chance(60) else 1
    names = dice.some(POD_CLAIMS, least, max(least, dice.choice((1, 1, 2, 2, 3))))
    for index, claim_name in enumerate(names):
        entry: Json = {"name": f"e{index}"}
        way = "" if theme.odd and dice.chance(5) else dice.choice(_WAYS)
        if way == "name":
            entry["resourceClaimName"] = claim_name
        elif way:
            entry["resourceClaimTemplateName"] = "template"
        if way == "generated":
            statuses.append({"name": f"e{index}", "resourceClaimName": claim_name})
        elif way == "not needed":
            statuses.append({"name": f"e{index}"})
        entries.append(entry)
    if dice.chance(2):
        entries.append({"name": "again", "resourceClaimName": names[0]})
    return entries, statuses


def _container(dice: Dice, name: str) -> Json:
    requests = {
        resource: dice.choice(("1", "1", "2", "0", "3")) for resource in dice.some(_RESOURCES, 1, 2)
    }
    return {"name": name, "image": "busybox:1.36", "resources": {"requests": requests}}


def _extend(dice: Dice, spec: Json) -> None:
    """Let containers of the pod request extended resources."""
    spec["containers"] = [_container(dice, f"main-{index}") for index in range(dice.choice((1, 2)))]
    init = []
    for index in range(2):
        kind = dice.choice(("init", "sidecar", "init", None, None))
        if kind is not None:
            container = _container(dice, f"init-{index}")
            if kind == "sidecar":
                container["restartPolicy"] = "Always"
            init.append(container)
    if init:
        spec["initContainers"] = init


def _pod(dice: Dice, theme: Theme) -> Json:
    container = {"name": "main", "image": "busybox:1.36", "resources": {}}
    spec: Json = {"schedulerName": "default-scheduler", "containers": [container]}
    status: Json = {"phase": "Pending"}
    extended = theme.extended and dice.chance(80)
    if extended:
        _extend(dice, spec)
    if not extended or dice.chance(25):
        entries, statuses = _entries(dice, theme)
        if dice.chance(98):
            spec["resourceClaims"] = entries
            status["resourceClaimStatuses"] = statuses
    if dice.chance(5):
        spec["nodeSelector"] = {ZONE: dice.choice(("zone-a", "zone-b"))}
    metadata = {"name": "asked", "namespace": "default", "uid": "uid-asked"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _config(plugin: str, arguments: Json) -> Json:
    version = "kubescheduler.config.k8s.io/v1"
    args = {"apiVersion": version, "kind": f"{plugin}Args", **arguments}
    return {
        "apiVersion": version,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": plugin, "args": args}],
            }
        ],
    }


def about_devices(dice: Dice) -> list[Json]:
    """Return questions about one cluster with devices; each pod meets claims of its own."""
    theme = themes(dice)
    names = NODE_NAMES[: dice.choice((2, 3, 1, 4, 3))]
    objects = [_node(dice, name, theme) for name in names]
    objects += device_classes(dice, theme)
    slices = resource_slices(dice, names, theme)
    objects += slices
    asked = []
    for _ in range(dice.randint(1, QUESTIONS)):
        question: Json = {
            "objects": [*objects, *resource_claims(dice, slices, theme)],
            "pod": _pod(dice, theme),
        }
        if dice.chance(55 if theme.extended else 4):
            question["config"] = _config(*dice.choice(_CONFIGURATIONS))
        asked.append(question)
    return asked

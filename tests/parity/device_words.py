"""Names, attributes and selectors of devices, so few that they meet."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from tests.parity.vocabulary import ZONE

if TYPE_CHECKING:
    from tests.parity.dice import Dice
    from tests.parity.vocabulary import Json

API_VERSION: Final = "resource.k8s.io/v1"
DRIVERS: Final = ("d.example.com", "e.example.com")
SHARED_POOLS: Final = ("net", "rack")
CONDITIONS: Final = ("attached", "ready")
EXTENDED_NAMES: Final = ("example.com/gpu", "vendor.example/nic")
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
EXTENDED_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"

LONG_AGO: Final = "2020-01-01T00:00:00Z"
FAR_AHEAD: Final = "2099-01-01T00:00:00Z"


@dataclass(frozen=True)
class Theme:
    """What the devices of a cluster are like, so that a cluster is about two or three things."""

    counters: bool
    shared: bool
    tainted: bool
    per_device: bool
    network: bool
    binding: bool
    pools: bool
    """Whether pools are incomplete, renewed or invalid."""
    constraints: bool
    alternatives: bool
    admin: bool
    extended: bool
    failing: bool
    """Whether selectors report errors for some devices."""
    odd: bool
    """Whether there are objects that an API server would refuse."""
    terms: bool
    """Whether node selectors have several terms, of which no allocation can be made."""
    many: bool
    """Whether there are more devices in a slice than a claim may have."""
    held: bool
    """Whether most claims of the pod are allocated."""


_SHARES = {
    "extended": 24,
    "odd": 17,
    "terms": 10,
    "many": 3,
    "held": 20,
    "failing": 60,
    "constraints": 48,
    "alternatives": 38,
    "shared": 34,
    "admin": 34,
}
_SHARE = 22


def themes(dice: Dice) -> Theme:
    """Return a theme: each property in about a fifth of the cases, some more seldom."""
    return Theme(
        **{each.name: dice.chance(_SHARES.get(each.name, _SHARE)) for each in fields(Theme)}
    )


ATTRIBUTES: Final[dict[str, tuple[Json, ...]]] = {
    "model": ({"string": "a"}, {"string": "b"}, {"string": "a"}, {"int": 1}),
    "numa": ({"int": 0}, {"int": 1}, {"int": 0}, {"int": 1}, {"string": "0"}),
    "ready": ({"bool": True}, {"bool": True}, {"bool": False}),
    "firmware": ({"version": "1.0.0"}, {"version": "1.0.0"}, {"version": "1.2.0"}),
}
_PREFIXES = ("", "", "", "d.example.com/", "e.example.com/", "x.example.com/")


def attributes(dice: Dice) -> Json:
    """Return most of the attributes, mostly without a domain."""
    return {
        dice.choice(_PREFIXES) + name: dice.choice(values)
        for name, values in ATTRIBUTES.items()
        if dice.chance(85)
    }


CONSTRAINED: Final = (
    "d.example.com/numa",
    "d.example.com/model",
    "d.example.com/firmware",
    "e.example.com/numa",
    "x.example.com/numa",
)

GOOD_SELECTORS: Final = (
    'device.driver == "d.example.com"',
    'device.driver in ["d.example.com", "e.example.com"]',
    'has(device.attributes["d.example.com"].model) && '
    'device.attributes["d.example.com"].model == "a"',
    'device.attributes["d.example.com"].?ready.orValue(true)',
    '"numa" in device.attributes[device.driver] && device.attributes[device.driver].numa == 0',
    'device.driver == "e.example.com" || !("firmware" in device.attributes["d.example.com"]) || '
    'device.attributes["d.example.com"].firmware.isLessThan(semver("1.1.0"))',
    '!("memory" in device.capacity[device.driver]) || '
    'device.capacity[device.driver].memory.compareTo(quantity("20Gi")) >= 0',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    "false",
)
_TENFOLD = "cel.bind({0}, " + " + ".join(["{1}"] * 10) + ", {2})"
_COSTLY = (
    'cel.bind(a, "a hundred thousandth of the text that is too expensive to be put together.....", '
    + _TENFOLD.format("b", "a", _TENFOLD.format("c", "b", _TENFOLD.format("d", "c", "{0}")))
    + ")"
).format(_TENFOLD.format("e", "d", _TENFOLD.format("f", "e", "f.size() > 0")))

FAILING_SELECTORS: Final = (
    'device.attributes["d.example.com"].model == "a"',
    'device.attributes["d.example.com"].numa >= 0',
    *['device.attributes["d.example.com"].firmware == "1.0.0"'] * 2,
    'device.attributes["d.example.com"].ready',
    'device.attributes["y.example.com"].ready',
    # Of no type that is known before it is evaluated, and then no bool.
    *['device.attributes["d.example.com"].?numa.orValue("none")'] * 2,
    _COSTLY,
    _COSTLY,
)
"""They report an error for some devices."""
_BROKEN_SELECTORS: Final[tuple[Json, ...]] = ({}, {"cel": {"expression": "device.model =="}})


def selectors(dice: Dice, theme: Theme, *, of_class: bool = False) -> list[Json]:
    """Return some selectors, a few of which can fail.

    A class has no empty one: that would be the end of kube-scheduler, a nil pointer.
    """
    some: list[Json] = []
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2))):
        if theme.odd and dice.chance(42):
            some.append(dice.choice(_BROKEN_SELECTORS[of_class:]))
        else:
            texts = FAILING_SELECTORS if theme.failing and dice.chance(20) else GOOD_SELECTORS
            some.append({"cel": {"expression": dice.choice(texts)}})
    return some


_TAINT_KEYS = ("broken", "maintenance")
_TAINT_VALUES = ("", "a")
_TAINT_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "None", "Later")


def taints(dice: Dice) -> list[Json]:
    """Return one taint or two."""
    some = []
    for _ in range(dice.randint(1, 2)):
        taint: Json = {"key": dice.choice(_TAINT_KEYS), "effect": dice.choice(_TAINT_EFFECTS)}
        taint["timeAdded"] = LONG_AGO
        if dice.chance(50):
            taint["value"] = dice.choice(_TAINT_VALUES)
        some.append(taint)
    return some


def tolerations(dice: Dice) -> list[Json]:
    """Return one toleration or two."""
    some = []
    for _ in range(dice.randint(1, 2)):
        operator = dice.choice(("Exists", "Equal", ""))
        toleration: Json = {"operator": operator} if operator else {}
        if operator != "Exists" or dice.chance(50):
            toleration["key"] = dice.choice(_TAINT_KEYS)
        if operator != "Exists" and dice.chance(50):
            toleration["value"] = dice.choice(_TAINT_VALUES)
        if dice.chance(50):
            toleration["effect"] = dice.choice(("", "NoSchedule", "NoExecute"))
        if dice.chance(20):
            toleration["tolerationSeconds"] = 30
        some.append(toleration)
    return some


_TERMS: Final[tuple[Json, ...]] = (
    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}]},
    {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
    {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    {
        "matchExpressions": [
            {"key": ZONE, "operator": "Exists"},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
        ]
    },
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]},
    {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]},
    {
        "matchExpressions": [{"key": ZONE, "operator": "Exists"}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-3"]}],
    },
    {
        "matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a", "zone-c"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-2"]}],
    },
)


def node_selectors(dice: Dice) -> Json:
    """Return a node selector of one term."""
    return {"nodeSelectorTerms": [dice.choice(_TERMS)]}


def cluster_object(kind: str, name: str, spec: Json, **metadata: object) -> Json:
    """Return an object of the API group that belongs to no namespace."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{kind}-{name}", **metadata},
        "spec": spec,
    }

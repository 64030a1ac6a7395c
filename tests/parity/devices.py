"""Devices: the slices of a cluster's pools.

The slices of a pool and generation agree on their number, and only one driver has counters: what
kube-scheduler does else depends on the order of a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.parity.device_words import (
    CONDITIONS,
    DRIVERS,
    SHARED_POOLS,
    Theme,
    attributes,
    cluster_object,
    node_selectors,
    taints,
)

if TYPE_CHECKING:
    from tests.parity.dice import Dice
    from tests.parity.vocabulary import Json

_POLICIES: Final[tuple[Json, ...]] = (
    {"default": "10Gi"},
    {"default": "10Gi", "validRange": {"min": "5Gi"}},
    {"default": "10Gi", "validRange": {"min": "10Gi", "max": "30Gi", "step": "5Gi"}},
    *[{"default": "5Gi", "validRange": {"min": "5Gi", "step": "10Gi"}}] * 2,
    {"default": "10Gi", "validRange": {"min": "5Gi", "max": "40Gi", "step": "4Gi"}},
    {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
    {"default": "10Gi", "validValues": ["10Gi"]},
)
_COUNTER = ("1", "1", "2", "3", "500m")
_COUNTERS = ("cores", "lanes")
_SETS = ("first", "second")


def _consumption(dice: Dice, broken: bool) -> list[Json]:
    sets = dice.some(_SETS, 1, 2)
    if broken and dice.chance(8):
        sets = ["unknown"]
    names = (*_COUNTERS, "unknown") if broken and dice.chance(8) else _COUNTERS
    return [
        {
            "counterSet": each,
            "counters": {name: {"value": dice.choice(_COUNTER)} for name in dice.some(names, 1, 2)},
        }
        for each in sets
    ]


def _device(dice: Dice, name: str, theme: Theme, *, counted: bool) -> Json:
    device: Json = {"name": name, "attributes": attributes(dice)}
    if theme.odd and dice.chance(20):
        device["attributes"]["strange"] = {}
    shared = theme.shared and dice.chance(70)
    if shared:
        device["allowMultipleAllocations"] = True
    capacity: Json = {}
    if dice.chance(70 if theme.shared else 30):
        capacity["memory"] = {"value": dice.choice(("40Gi", "80Gi", "80Gi", "10Gi", "8"))}
        if shared and dice.chance(85):
            capacity["memory"]["requestPolicy"] = dice.choice(_POLICIES)
    if dice.chance(30):
        capacity["slots"] = {"value": dice.choice(("4", "2", "1500m"))}
    if capacity:
        device["capacity"] = capacity
    if counted and dice.chance(80):
        device["consumesCounters"] = _consumption(dice, theme.pools)
    if theme.tainted and dice.chance(50):
        device["taints"] = taints(dice)
    if theme.binding and dice.chance(50):
        device["bindingConditions"] = dice.choice(([CONDITIONS[0]], list(CONDITIONS), []))
        device["bindingFailureConditions"] = ["failed"]
    if theme.binding and dice.chance(20):
        device["bindsToNode"] = True
    return device


def _where(dice: Dice, node_names: list[str], theme: Theme) -> Json:
    """Return the nodes of a slice, or of a device of one."""
    kind = dice.choice(("name", "selector", "selector", "all"))
    if theme.terms and dice.chance(60):
        kind = "selector"
    if kind == "name":
        return {"nodeName": dice.choice(node_names)}
    if kind == "all":
        return {"allNodes": True}
    selector = node_selectors(dice)
    if theme.terms and dice.chance(80):
        selector = {"nodeSelectorTerms": selector["nodeSelectorTerms"] * 2}
    return {"nodeSelector": selector}


class _Pool:
    """A pool in the making; it numbers its slices."""

    def __init__(self, driver: str, name: str, generation: int) -> None:
        self.driver, self.name, self.generation = driver, name, generation
        self.specs: list[Json] = []

    def slices(self, count: int) -> list[Json]:
        """Return the slices as objects that say that there are so many of them."""
        pool = {"name": self.name, "generation": self.generation, "resourceSliceCount": count}
        short = self.driver.partition(".")[0]
        return [
            cluster_object(
                "ResourceSlice",
                # The later ones come first by name.
                f"{self.name}-{short}-{self.generation}-{9 - index}",
                {"driver": self.driver, "pool": pool, **spec},
            )
            for index, spec in enumerate(self.specs)
        ]


def _filled(
    dice: Dice, pool: _Pool, where: Json, theme: Theme, node_names: list[str]
) -> list[Json]:
    """Return the slices of a pool; in themes of their own they reach different nodes."""
    scattered = theme.network and "nodeName" not in where and dice.chance(30)
    counted = theme.counters and pool.driver == DRIVERS[0] and dice.chance(70)
    if counted:
        sets = [
            {
                "name": name,
                "counters": {each: {"value": dice.choice(_COUNTER)} for each in _COUNTERS},
            }
            for name in _SETS
        ]
        if theme.pools and dice.chance(5):
            sets = [sets[0], sets[0]]
        pool.specs.append({**where, "sharedCounters": sets})
    number = 0
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        one_by_one = theme.per_device and dice.chance(50)
        many = theme.many and dice.chance(50)
        some: list[Json] = []
        for _ in range(dice.choice((12, 32, 33) if many else (2, 1, 3, 3, 4))):
            device = _device(dice, f"dev-{number}", theme, counted=counted)
            number += 1
            if one_by_one:
                device |= _where(dice, node_names, theme)
            some.append(device)
            if theme.pools and dice.chance(4):
                number -= 1  # the next one has this name, too
        reach = {"perDeviceNodeSelection": True} if one_by_one else where
        if scattered and not one_by_one and dice.chance(50):
            reach = _where(dice, node_names, theme)
        pool.specs.append({**reach, "devices": some})
    count = len(pool.specs)
    if theme.pools and dice.chance(20):
        count = max(1, count + dice.choice((-1, 1)))
    return pool.slices(count)


def resource_slices(dice: Dice, node_names: list[str], theme: Theme) -> list[Json]:
    """Return the slices of a pool for most nodes, and of pools that several nodes reach."""
    slices: list[Json] = []
    for name in node_names:
        for driver in DRIVERS:
            if dice.chance(75 if driver == DRIVERS[0] else 30):
                pool = _Pool(driver, name, 1)
                slices += _filled(dice, pool, {"nodeName": name}, theme, node_names)
                if theme.pools and dice.chance(20):
                    newer = _Pool(driver, name, 2)
                    where = {"nodeName": dice.choice(node_names)}
                    slices += _filled(dice, newer, where, theme, node_names)
    if theme.network or theme.per_device or theme.terms or dice.chance(5):
        for name in SHARED_POOLS:
            if dice.chance(80):
                pool = _Pool(dice.choice(DRIVERS), name, 1)
                where = _where(dice, node_names, theme)
                slices += _filled(dice, pool, where, theme, node_names)
                if theme.pools and dice.chance(50):
                    newer = _Pool(pool.driver, name, 2)
                    where = _where(dice, node_names, theme)
                    slices += _filled(dice, newer, where, theme, node_names)
    return slices


Published = tuple[str, str, "Json"]
"""Driver, pool and device."""


def published(slices: list[Json]) -> list[Published]:
    """Return every device there is."""
    return [
        (each["spec"]["driver"], each["spec"]["pool"]["name"], device)
        for each in slices
        for device in each["spec"].get("devices", ())
    ]

"""Device classes, and claims on devices: of the pod that is asked about, and of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.parity.device_words import (
    API_VERSION,
    CONDITIONS,
    CONSTRAINED,
    DRIVERS,
    EXTENDED_ANNOTATION,
    EXTENDED_NAMES,
    FAR_AHEAD,
    LONG_AGO,
    Theme,
    cluster_object,
    node_selectors,
    selectors,
    tolerations,
)
from tests.parity.devices import Published, published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.parity.dice import Dice
    from tests.parity.vocabulary import Json

CLASSES: Final = ("all-d", "any", "filtered")
EXTENDED_CLASSES: Final = ("gpu", "gpu-too", "nic")
POD_CLAIMS: Final = ("claim-0", "claim-1", "claim-2")


def _configs(dice: Dice) -> list[Json]:
    return [
        {"opaque": {"driver": dice.choice(DRIVERS), "parameters": {"value": dice.choice("xy")}}}
        for _ in range(dice.randint(1, 2))
    ]


def device_classes(dice: Dice, theme: Theme) -> list[Json]:
    """Return the classes that claims name; some have a name as an extended resource."""
    classes = []
    for name in (*CLASSES, *(EXTENDED_CLASSES if theme.extended else ())):
        if dice.chance(2 if name in CLASSES else 40):
            continue
        spec: Json = {}
        if name == "all-d":
            expression = f'device.driver == "{DRIVERS[0]}"'
            spec["selectors"] = [{"cel": {"expression": expression}}]
        elif name == "filtered" or dice.chance(20):
            spec["selectors"] = selectors(dice, theme, of_class=True)
        if dice.chance(20):
            spec["config"] = _configs(dice)
        if name.startswith("gpu"):
            spec["extendedResourceName"] = EXTENDED_NAMES[0]
        elif name == "nic":
            spec["extendedResourceName"] = EXTENDED_NAMES[1]
        made = dice.choice((LONG_AGO, "2021-01-01T00:00:00Z"))
        classes.append(cluster_object("DeviceClass", name, spec, creationTimestamp=made))
    return classes


# --- requests -----------------------------------------------------------------------------------


def _exact(dice: Dice, theme: Theme, *, alternative: bool = False) -> Json:
    """Return a request, or an alternative of one, which has no admin access."""
    name = dice.choice(("all-d", "all-d", "any", "any", "filtered"))
    request: Json = {"deviceClassName": "gone" if dice.chance(2) else name}
    if dice.chance(60 if theme.many else 16):
        request["allocationMode"] = "All"
    else:
        count = dice.choice((1, 1, 1, 1, 2, 2, 3))
        if dice.chance(2) and not theme.many and not alternative:
            # Of an alternative, kube-scheduler would try all subsets of the devices.
            count = dice.choice((20, 33, 500))
        request |= {"allocationMode": "ExactCount", "count": count}
    if some := selectors(dice, theme):
        request["selectors"] = some
    if theme.tainted and dice.chance(50):
        request["tolerations"] = tolerations(dice)
    if theme.admin and not alternative and dice.chance(50):
        request["adminAccess"] = dice.chance(80)
    if theme.shared and dice.chance(70) and (amounts := _amounts(dice)):
        request["capacity"] = {"requests": amounts}
    if theme.odd and dice.chance(12):
        request |= dice.choice(({"allocationMode": "Some"}, {"deviceClassName": ""}))
    return request


def _amounts(dice: Dice) -> dict[str, str]:
    amounts = {}
    if dice.chance(80):
        amounts["memory"] = dice.choice(
            ("1Gi", "2Gi", "6Gi", "11Gi", "12Gi", "12Gi", "40Gi", "100Gi", "0")
        )
    if dice.chance(30):
        amounts["slots"] = dice.choice(("1", "2", "500m"))
    if dice.chance(5):
        amounts["unknown"] = "1"
    return amounts


def _request(dice: Dice, name: str, theme: Theme) -> Json:
    if theme.odd and dice.chance(5):
        return {"name": name}
    if theme.alternatives and dice.chance(70):
        some = [
            {"name": f"s{index}", **_exact(dice, theme, alternative=True)}
            for index in range(dice.choice((3, 3, 2, 1)))
        ]
        return {"name": name, "firstAvailable": some}
    return {"name": name, "exactly": _exact(dice, theme)}


def _references(requests: Sequence[Json]) -> list[str]:
    """Return what constraints and configurations may name."""
    return [
        *(request["name"] for request in requests),
        *(
            f"{request['name']}/{each['name']}"
            for request in requests
            for each in request.get("firstAvailable", ())
        ),
    ]


def claim_specs(dice: Dice, theme: Theme) -> Json:
    """Return requests, with constraints and configurations about some of them or all."""
    requests = [
        _request(dice, f"r{index}", theme) for index in range(dice.choice((1, 1, 1, 2, 2, 3)))
    ]
    references = _references(requests)
    spec: Json = {"requests": requests}
    if theme.constraints and dice.chance(80):
        constraints = []
        for _ in range(dice.choice((1, 1, 2))):
            kind = dice.choice(("matchAttribute", "distinctAttribute"))
            constraint: Json = {kind: dice.choice(CONSTRAINED)}
            if theme.odd and dice.chance(35):
                constraint = {}
            if some := dice.some(references, 0, 2):
                constraint["requests"] = some
            constraints.append(constraint)
        spec["constraints"] = constraints
    if dice.chance(20):
        spec["config"] = _configs(dice)
        for config in spec["config"]:
            if some := dice.some(references, 0, 2):
                config["requests"] = some
    return {"devices": spec}


# --- allocations --------------------------------------------------------------------------------


def _results(dice: Dice, devices: Sequence[Published], spec: Json, theme: Theme) -> list[Json]:
    """Return devices that a claim holds: mostly those there are, of which some are gone."""
    references = _references(spec["devices"]["requests"])
    results = []
    for index in range(dice.choice((1, 1, 2))):
        if not devices or dice.chance(5):
            driver, pool, device = DRIVERS[0], "node-0", {"name": "gone"}
        else:
            driver, pool, device = dice.choice(devices)
        result: Json = {
            "request": dice.choice(references),
            "driver": driver,
            "pool": pool,
            "device": device["name"],
        }
        if device.get("allowMultipleAllocations") and dice.chance(80):
            result["shareID"] = f"00000000-0000-4000-8000-{index:012}"
            if "memory" in device.get("capacity", {}) and dice.chance(80):
                result["consumedCapacity"] = {"memory": dice.choice(("10Gi", "30Gi", "1Gi"))}
        if theme.admin and dice.chance(20):
            result["adminAccess"] = True
        if device.get("bindingConditions"):
            result["bindingConditions"] = device["bindingConditions"]
            result["bindingFailureConditions"] = device["bindingFailureConditions"]
        results.append(result)
    return results


_STATUSES = ("True", "True", "True", "False", "Unknown")


def _reports(dice: Dice, results: Sequence[Json]) -> list[Json]:
    """Return what drivers say of the devices of a claim."""
    reports = []
    for result in results:
        if dice.chance(20):
            continue
        types = [each for each in CONDITIONS if dice.chance(80)]
        if dice.chance(25):
            types.append("failed")
        common = {"lastTransitionTime": LONG_AGO, "reason": "Reported", "message": ""}
        reports.append(
            {
                **{key: result[key] for key in ("driver", "pool", "device")},
                "conditions": [
                    {"type": each, "status": dice.choice(_STATUSES), **common} for each in types
                ],
            }
        )
    return reports


def _one_node(name: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def claim(name: str, spec: Json, **metadata: object) -> Json:
    """Return a claim that has no allocation."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "10",
            **metadata,
        },
        "spec": spec,
        "status": {},
    }


def allocated_claim(
    dice: Dice, name: str, devices: Sequence[Published], theme: Theme, users: Sequence[str]
) -> Json:
    """Return a claim that holds devices, and is reserved for some pods."""
    made = claim(name, claim_specs(dice, theme))
    results = _results(dice, devices, made["spec"], theme)
    allocation: Json = {"devices": {"results": results}}
    if dice.chance(70):
        one = _one_node(dice.choice(("node-0", "node-1")))
        allocation["nodeSelector"] = one if dice.chance(50) else node_selectors(dice)
    if dice.chance(80):
        allocation["allocationTimestamp"] = dice.choice((LONG_AGO, FAR_AHEAD))
    status: Json = {"allocation": allocation}
    if users:
        status["reservedFor"] = [
            {"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users
        ]
    if theme.binding and dice.chance(70):
        status["devices"] = _reports(dice, results)
    made["status"] = status
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    return made


_OTHER_PODS = "of another pod"
_STATES = (*["new"] * 40, *["allocated"] * 7, "missing", "deleted", _OTHER_PODS, _OTHER_PODS)
_USERS: Final[tuple[list[str], ...]] = ([], [], ["asked"], ["other"], ["asked", "other"])


def _of_the_pod(dice: Dice, name: str, devices: Sequence[Published], theme: Theme) -> list[Json]:
    state = "allocated" if theme.held and dice.chance(85) else dice.choice(_STATES)
    if state == "missing":
        return []
    if state == "allocated":
        # Those that nobody else uses are given back when the pod fits nowhere.
        users = dice.choice(_USERS[: 3 if theme.held and dice.chance(60) else None])
        made = allocated_claim(dice, name, devices, theme, users)
    else:
        made = claim(name, claim_specs(dice, theme))
    if state == "deleted":
        made["metadata"]["deletionTimestamp"] = LONG_AGO
        made["metadata"]["finalizers"] = ["example.com/keep"]
    uid = "uid-former" if state == _OTHER_PODS else "uid-asked"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "asked", "uid": uid, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return [made]


def resource_claims(dice: Dice, slices: list[Json], theme: Theme) -> list[Json]:
    """Return the claims that pods may name, and what other claims hold."""
    devices = published(slices)
    claims = [made for name in POD_CLAIMS for made in _of_the_pod(dice, name, devices, theme)]
    claims += [
        allocated_claim(dice, f"taken-{index}", devices, theme, ["other"])
        for index in range(dice.choice((1, 2, 0, 3, 4)))
    ]
    if theme.extended and dice.chance(12):
        special = allocated_claim(dice, "asked-extended-resources-x", devices, theme, [])
        if dice.chance(50):
            special["status"] = {}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "asked", "uid": "uid-asked"}
        special["metadata"] |= {
            "annotations": {EXTENDED_ANNOTATION: "true"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        claims.append(special)
    return claims

"""Changes of pods and clusters as plain JSON, from nothing but what a relaxation says of itself.

None of this is Berth's code: whoever reads a relaxation must be able to carry it out.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.relaxations.random_clusters import Json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PLACES = ("zone", "region")
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "m": 0}


def carried_out(pod: Json, objects: list[Json], changes: Iterable[Json]) -> tuple[Json, list[Json]]:
    """Return the pod and the cluster after all changes: what is removed goes last to first."""
    pod, objects = deepcopy(pod), deepcopy(objects)
    for change in sorted(changes, key=lambda each: _place(each["path"]), reverse=True):
        _carry_out(pod, objects, change)
    return pod, objects


def _place(path: str) -> list[tuple[int, str]]:
    return [(int(each), "") if each.isdigit() else (0, each) for each in re.split(r"[\[\].]", path)]


def _carry_out(pod: Json, objects: list[Json], change: Json) -> None:
    spec, kind, to = pod["spec"], change["kind"], change["to"]
    if kind == "resource":
        request_at_most(spec, change["subject"], amount(change["subject"], to))
    elif kind == "toleration":
        spec.setdefault("tolerations", []).append(toleration(to))
    elif kind == "label":
        del pod["metadata"]["labels"][change["subject"]]
    elif kind == "nodeSelector":
        if change["subject"]:
            spec["nodeSelector"].pop(change["subject"], None)
        else:
            spec["nodeSelector"] = {}
    elif kind == "nodeAffinity":
        if change["subject"]:
            drop_expression(spec, change["path"])
        else:
            spec["affinity"]["nodeAffinity"].pop(REQUIRED, None)
    elif kind == "maxSkew":
        at, field = re.findall(r"\[(\d+)\]\.(\w+)$", change["path"])[0]
        value: Any = int(to) if field == "maxSkew" else to
        spec["topologySpreadConstraints"][int(at)][field] = value
    elif kind == "hostPort":
        container, port = map(int, re.findall(r"\[(\d+)\]", change["path"]))
        del spec["containers"][container]["ports"][port]
    elif kind == "volumePlace":
        move_anywhere(objects, change["subject"])
    elif kind == "volume":
        spec["volumes"] = [each for each in spec["volumes"] if each["name"] != change["subject"]]
    elif kind == "priority":
        spec["priority"] = int(to)
    elif kind == "preemptionPolicy":
        spec["preemptionPolicy"] = to
    else:
        kind, at = re.findall(r"spec\.affinity\.(\w+)\.\w+\[(\d+)\]$", change["path"])[0]
        del spec["affinity"][kind][REQUIRED][int(at)]


def amount(resource: str, text: str) -> int:
    """Return milli-CPU for ``cpu``, else the plain number."""
    if not text:
        return 0
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()  # type: ignore[union-attr]
    if resource == "cpu":
        return int(number) if unit == "m" else int(number) * 1000
    return int(number) * _UNITS.get(unit, 1)


def requested(spec: Json, resource: str) -> int:
    """Return what the containers request together."""
    return sum(
        amount(resource, each["resources"]["requests"].get(resource, ""))
        for each in spec["containers"]
    )


def request_at_most(spec: Json, resource: str, limit: int) -> None:
    """Let the containers request less together: the last ones give up first."""
    over = requested(spec, resource) - limit
    for container in reversed(spec["containers"]):
        requests = container["resources"]["requests"]
        has = amount(resource, requests.get(resource, ""))
        less = min(max(over, 0), has)
        if less:
            requests[resource] = f"{has - less}m" if resource == "cpu" else str(has - less)
            over -= less


def toleration(text: str) -> Json:
    """Return the toleration for a taint ``key=value:Effect``."""
    taint, _, effect = text.rpartition(":")
    key, _, value = taint.partition("=")
    if value:
        return {"key": key, "operator": "Equal", "value": value, "effect": effect}
    return {"key": key, "operator": "Exists", "effect": effect}


def drop_expression(spec: Json, path: str) -> None:
    """Drop an expression; a term that demands nothing any more matches every node."""
    found = re.findall(r"\[(\d+)\]\.(\w+)\[(\d+)\]$", path)
    term_at, field, at = int(found[0][0]), found[0][1], int(found[0][2])
    affinity = spec["affinity"]["nodeAffinity"]
    term = affinity[REQUIRED]["nodeSelectorTerms"][term_at]
    del term[field][at]
    if not any(term.values()):
        del affinity[REQUIRED]


def move_anywhere(objects: list[Json], name: str) -> None:
    """Let a volume be reachable from every node."""
    for each in objects:
        if each["kind"] == "PersistentVolume" and each["metadata"]["name"] == name:
            labels = each["metadata"]["labels"]
            each["metadata"]["labels"] = {
                key: value for key, value in labels.items() if not key.endswith(_PLACES)
            }
            each["spec"].pop("nodeAffinity", None)

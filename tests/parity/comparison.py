"""When two answers are the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cache.quantity import exact_value

if TYPE_CHECKING:
    from tests.parity.vocabulary import Json

SILENT = frozenset({"DynamicResources"})
"""Its scores of 0 may be missing: berth does not ask it about pods without claims."""


def normalised(answer: Json) -> Json:
    """Return an answer without what may differ: the order of reasons, random ids of shares."""
    if "error" in answer:
        return {"error": answer["error"]}
    pre_filter = answer["prefilter"]
    return {
        "prefilter": None if pre_filter is None else _rejection(pre_filter),
        "nodes": {name: _verdict(verdict) for name, verdict in sorted(answer["nodes"].items())},
    }


def _verdict(verdict: Json) -> Json:
    if "rejected" in verdict:
        return _rejection(verdict)
    scores = {
        name: score
        for name, score in sorted(verdict["scores"].items())
        if score or name not in SILENT
    }
    normal: Json = {"scores": scores, "total": verdict["total"]}
    if "allocations" in verdict:
        normal["allocations"] = [devices_of(each) for each in verdict["allocations"]]
    return normal


def devices_of(value: Any) -> Any:
    """Return (a part of) an allocation without what is empty and without chance."""
    if isinstance(value, list):
        return [devices_of(each) for each in value]
    if not isinstance(value, dict):
        return value
    normal: Json = {}
    for key, part in value.items():
        if part in (None, "", [], {}, False):
            continue
        if key == "shareID":
            normal[key] = "random"
        elif key == "consumedCapacity":
            normal[key] = {name: str(exact_value(amount)) for name, amount in part.items()}
        else:
            normal[key] = devices_of(part)
    return normal


def _rejection(rejection: Json) -> Json:
    return {
        "rejected": rejection["rejected"],
        "code": rejection["code"],
        # kube-scheduler walks over a Go map: a resource's place among the reasons is random.
        "reasons": sorted(rejection["reasons"] or ()),
    }


def differences(oracle: Json, berth: Json) -> list[str]:
    """Return a line for each thing on which two answers differ."""
    if _has_only_run_out_of_time(oracle) and "error" not in berth:
        return []
    if "error" in oracle and "error" in berth:
        return _errors(oracle, berth)
    if "error" in oracle or "error" in berth:
        return [f"oracle: {oracle.get('error', 'answers')}; berth: {berth.get('error', 'answers')}"]
    theirs, ours = normalised(oracle), normalised(berth)
    found = []
    if theirs["prefilter"] != ours["prefilter"]:
        found.append(f"prefilter: oracle {theirs['prefilter']}; berth {ours['prefilter']}")
    for name in sorted({*theirs["nodes"], *ours["nodes"]}):
        expected, seen = theirs["nodes"].get(name), ours["nodes"].get(name)
        if expected != seen:
            found.append(f"{name}: oracle {expected}; berth {seen}")
    message = oracle.get("deallocation", {}).get("message", "")
    if message != berth.get("deallocation", ""):
        found.append(f"deallocation: oracle {message!r}; berth {berth.get('deallocation')!r}")
    return found + _preemption(oracle.get("preemption"), berth.get("preemption"))


TIMED_OUT: Final = "timed out trying to allocate devices"
"""Of kube-scheduler alone that is no difference: berth leaves out what cannot succeed."""

_DEVICES: Final = 'running "DynamicResources" filter plugin: '
_NO_WORDS: Final = re.compile(
    r"(?s)(?<=CEL compile error: ).*|(?<=failed to parse node selector).*"
    r"|(?<=for device )&Device\{Name:(?P<name>[^,]*),.*\}(?= in slice )"
)
"""What is wrong with an expression is said in the words of a parser's generator, and what is wrong
with a node selector after a print of all its fields; a device is printed with all its fields, too.
"""


def _has_only_run_out_of_time(oracle: Json) -> bool:
    errors = oracle.get("errors", {}).values()
    return bool(errors) and all(each.endswith(TIMED_OUT) for each in errors)


def _errors(oracle: Json, berth: Json) -> list[str]:
    """Compare errors; which of several nodes' comes first is chance.

    Their wording is, too, but for those of devices.
    """
    errors = set(oracle.get("errors", {}).values())
    if not errors or not all(each.startswith(_DEVICES) for each in errors):
        return []
    theirs = {_NO_WORDS.sub(_name_alone, each) for each in errors}
    ours = _NO_WORDS.sub(_name_alone, berth["error"])
    return [] if ours in theirs else [f"errors: oracle {sorted(theirs)}; berth {ours}"]


def _name_alone(words: re.Match[str]) -> str:
    return words["name"] or ""


def _parts(message: str) -> list[str]:
    """Return a message in parts that stand in the order of the alphabet."""
    return sorted(message.removeprefix("preemption: ").removesuffix(".").split(", "))


def _preemption(oracle: Json | None, berth: Json | None) -> list[str]:
    """Compare what would be preempted; who preempts nobody may say so or say nothing."""
    theirs = (oracle or {}).get("candidates", {})
    ours = (berth or {}).get("candidates", {})
    found = [
        f"preemption on {name}: oracle {theirs.get(name)}; berth {ours.get(name)}"
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    ]
    if oracle is not None and berth is not None and "message" in berth:
        told, said = _parts(oracle["message"]), _parts(berth["message"])
        # An error of one node is all that kube-scheduler tells then.
        if told != said and not oracle["message"].startswith("preemption: running "):
            found.append(f"preemption: oracle says {told}; berth says {said}")
    best, chosen = (oracle or {}).get("best", []), (berth or {}).get("chosen")
    if chosen not in (best or [None]):
        found.append(f"preemption: oracle would choose of {best}; berth chose {chosen}")
    return found

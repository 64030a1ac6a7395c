"""When two answers are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.parity.vocabulary import Json

# No pod here has resource claims, and this plugin does not exist in berth: it scores 0.
LEFT_OUT = frozenset({"DynamicResources"})

GUARD = "UnsupportedRequests"
"""A plugin of berth alone, which has nothing to say of the pods here."""


def normalised(answer: Json) -> Json:
    """Return an answer without what may differ: the order of reasons, plugins left out."""
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
    for name in LEFT_OUT:
        if verdict["scores"].get(name):
            raise AssertionError(f"{name} is left out of the comparison and yet it scores")
    scores = {
        name: score for name, score in sorted(verdict["scores"].items()) if name not in LEFT_OUT
    }
    return {"scores": scores, "total": verdict["total"]}


def _rejection(rejection: Json) -> Json:
    return {
        "rejected": rejection["rejected"],
        "code": rejection["code"],
        # kube-scheduler walks over a Go map: a resource's place among the reasons is random.
        "reasons": sorted(rejection["reasons"] or ()),
    }


def differences(oracle: Json, berth: Json) -> list[str]:
    """Return a line for each thing on which two answers differ."""
    if "error" in oracle and "error" in berth:
        return []  # which of several nodes' errors comes first is chance, and so is its wording
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
    return found + _preemption(oracle.get("preemption"), berth.get("preemption"))


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

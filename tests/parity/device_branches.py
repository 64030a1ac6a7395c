"""Which branches of dynamic resource allocation the cases have reached."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cache.quantity import exact_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.vocabulary import Json

_ERROR: Final = re.compile(
    r"default/\S+|(?<=claim )[\w<>-]+(?=:)|request \S+|class [\w-]+:|[de]\.example\.com/\S+|#?\d+|"
    r"attribute \S+:|(?<=result of type )\w+|(?<=converted to bool: ).*|(?<=no such key: ).*|"
    r"(?<=CEL compile error: ).*"
)
"""What differs from case to case in an error."""

_PLAIN_FIELDS: Final = frozenset({"request", "driver", "pool", "device"})


def device_branches(question: Json, oracle: Json) -> Iterator[str]:
    """Yield what an answer shows beyond verdicts and scores."""
    for error in oracle.get("errors", {"": oracle.get("error", "")}).values():
        if error:
            yield f"error {_ERROR.sub('_', error.partition(chr(10))[0])}"
    if "error" in oracle:
        return
    deallocation = oracle.get("deallocation")
    if deallocation is not None:
        claims = len(deallocation["claims"])
        yield f"deallocation: {deallocation['message']}" + (" (of several)" * (claims > 1))
    claims_of = {
        each["metadata"]["name"]: each["spec"]
        for each in question["objects"]
        if each["kind"] == "ResourceClaim"
    }
    devices = _Devices(question["objects"])
    for verdict in oracle["nodes"].values():
        allocations = verdict.get("allocations", ())
        if len(allocations) > 1:
            yield "allocation: several claims"
        for each in allocations:
            yield from _of_allocation(each, claims_of.get(each["claim"]))
            of_claim = claims_of.get(each["claim"], {"devices": {}})["devices"]
            requests = each.get("requests") or of_claim.get("requests", [])
            for result in each["allocation"]["devices"].get("results") or ():
                yield from devices.of_result(result, requests)


class _Devices:
    """The devices of a question, with what there is to say of one that is allocated."""

    def __init__(self, objects: list[Json]) -> None:
        slices = [each["spec"] for each in objects if each["kind"] == "ResourceSlice"]
        self._known = {
            (spec["driver"], spec["pool"]["name"], device["name"]): (spec, device)
            for spec in sorted(slices, key=lambda spec: int(spec["pool"]["generation"]))
            for device in spec.get("devices", ())
        }
        self._held = {
            (result["driver"], result["pool"], result["device"])
            for each in objects
            if each["kind"] == "ResourceClaim" and "allocation" in each.get("status", ())
            for result in each["status"]["allocation"]["devices"]["results"]
            if not result.get("adminAccess")
        }

    def of_result(self, result: Json, requests: list[Json]) -> Iterator[str]:
        """Yield why a device could be had."""
        known = (result["driver"], result["pool"], result["device"])
        spec, device = self._known[known]
        if known in self._held:
            yield "device: in use" + (" by others" if "shareID" in result else ", for an admin")
        if any(
            taint["effect"] in ("NoSchedule", "NoExecute") for taint in device.get("taints", ())
        ):
            yield "device: tainted"
        if device.get("consumesCounters"):
            yield "device: consumes counters"
        if device.get("bindsToNode"):
            yield "device: binds to the node"
        if spec.get("perDeviceNodeSelection"):
            yield "device: with nodes of its own"
        wanted = _asked(requests, result["request"]).get("capacity", {}).get("requests", {})
        for name, amount in (result.get("consumedCapacity") or {}).items():
            policy = device.get("capacity", {}).get(name, {}).get("requestPolicy")
            if name not in wanted:
                yield f"capacity: {'default' if policy else 'whole'}"
            elif exact_value(amount) == exact_value(wanted[name]):
                yield f"capacity: as requested{' within a policy' if policy else ''}"
            elif "validRange" not in (policy or {}):
                yield "capacity: next valid value"
            elif exact_value(amount) == exact_value(policy["validRange"]["min"]):
                yield "capacity: least of a range"
            else:
                yield "capacity: next step of a range"


def _asked(requests: list[Json], name: str) -> Json:
    """Return the request, or the alternative of one, that a result names."""
    parent, _, alternative = name.partition("/")
    request: Json = next(each for each in requests if each["name"] == parent)
    if not alternative:
        return request["exactly"]
    return next(each for each in request["firstAvailable"] if each["name"] == alternative)


def _of_allocation(allocated: Json, spec: Json | None) -> Iterator[str]:
    allocation = allocated["allocation"]
    results = allocation["devices"].get("results") or ()
    if "requests" in allocated:
        yield f"allocation: extended resources, {min(len(results), 2)} devices"
    for result in results:
        yield from (f"result: {field}" for field in result if field not in _PLAIN_FIELDS)
        if "/" in result["request"]:
            yield f"result: alternative {result['request'].rpartition('/')[2]}"
    for config in allocation["devices"].get("config", ()):
        yield f"config: {config['source']}" + (" of a request" * ("requests" in config))
    yield f"node selector: {_selector(allocation.get('nodeSelector'))}"
    for constraint in (spec or {"devices": {}})["devices"].get("constraints", ()):
        if len(results) > 1:
            yield f"allocation: {next(iter({*constraint} - {'requests'}), 'no')}"
    requests = (spec or {"devices": {}})["devices"].get("requests", ())
    for request in requests:
        if request.get("exactly", {}).get("allocationMode") == "All":
            yield "allocation: all devices"
    if len({result["request"] for result in results}) > 1:
        yield "allocation: several requests"
    if any(result["device"] != "dev-0" for result in results[:1]):
        yield "allocation: not the first device"


def _selector(selector: Json | None) -> str:
    if selector is None:
        return "none"
    term = selector["nodeSelectorTerms"][0]
    fields = term.get("matchFields", ())
    if len(term) > 1:
        return "fields and expressions"
    return "fields" if fields else "expressions"


_RUNNING: Final = 'error running "DynamicResources" filter plugin: '

DEVICES: Final[frozenset[str]] = frozenset(
    [
        "some node is feasible",
        "score DynamicResources",
        *(
            f"prefilter DynamicResources 3: {reason}"
            for reason in (
                "ResourceClaim _ was not created for Pod _ (Pod is not owner)",
                "could not find ResourceClaim _",
                "pod _, spec.resourceClaim _: none of the supported fields are set",
                "pod _: ResourceClaim not created yet",
                "request _ device class _ does not exist",
                "resource claim _ request _ unknown request _",
                "resourceclaim _ is being deleted",
            )
        ),
        *(
            f"DynamicResources 3: {reason}"
            for reason in (
                "cannot allocate all claims",
                "cannot fit resource",
                "cannot schedule extended resource claim",
                "invalid resource pools were encountered",
                "resourceclaim not available on the node",
            )
        ),
        'error running PreFilter plugin "DynamicResources": _ unsupported _',
        *(
            f"{_RUNNING}{text}"
            for text in (
                "_ selector _: CEL compile error: _",
                "_ selector _: CEL runtime error: _ unsupported attribute value",
                "_ selector _: CEL runtime error: no such key: _",
                "claim _ _ asks for all devices, but resource pool _ is currently being updated",
                "claim _ _ asks for all devices, but resource pool _ is currently invalid",
                "claim _ _ cannot add device _ because a claim constraint would not be satisfied",
                "claim _ _ selector _: CEL expression empty (unsupported selector type?)",
                "claim _ _ unsupported count mode Some",
                "claim _ constraint _: empty constraint (unsupported constraint type?)",
                "claim _ number of requested devices _ exceeds the claim limit of _",
                "claim _ selector _: CEL compile error: _",
                "claim _ selector _: CEL runtime error: _ unsupported attribute value",
                "claim _ selector _: CEL runtime error: no such key: _",
                "claim _ selector _: CEL runtime error: no such overload",
                "claim _ selector _: CEL runtime error: CEL result of type _ could not be "
                "converted to bool: _",
                "claim _ selector _: CEL runtime error: operation cancelled: actual cost limit "
                "exceeded",
                "create NodeSelector for claim _: unsupported ResourceSlice.NodeSelector with _ "
                "terms",
            )
        ),
        *(
            f"deallocation: {message}"
            for message in (
                "deallocation of ResourceClaim completed",
                "deallocation of ResourceClaim completed (of several)",
                "deletion of ResourceClaim completed",
                "still not schedulable",
            )
        ),
        *(
            f"allocation: {what}"
            for what in (
                "all devices",
                "distinctAttribute",
                "extended resources, 1 devices",
                "extended resources, 2 devices",
                "matchAttribute",
                "not the first device",
                "several claims",
                "several requests",
            )
        ),
        *(
            f"result: {field}"
            for field in (
                "adminAccess",
                "alternative s0",
                "alternative s1",
                "alternative s2",
                "bindingConditions",
                "bindingFailureConditions",
                "consumedCapacity",
                "shareID",
                "tolerations",
            )
        ),
        *(
            f"device: {what}"
            for what in (
                "binds to the node",
                "consumes counters",
                "in use by others",
                "in use, for an admin",
                "tainted",
                "with nodes of its own",
            )
        ),
        *(
            f"capacity: {what}"
            for what in (
                "as requested",
                "as requested within a policy",
                "default",
                "least of a range",
                "next step of a range",
                "next valid value",
                "whole",
            )
        ),
        "config: FromClass of a request",
        "config: FromClaim",
        "config: FromClaim of a request",
        "node selector: none",
        "node selector: fields",
        "node selector: expressions",
        "node selector: fields and expressions",
    ]
)
"""Every reason, error and part of an allocation."""

"""Pods and nodes as the API has them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from scheduler.client.api import Api
from scheduler.client.codec import Decoder
from scheduler.extenders import ExtenderError
from scheduler.extenders.whole_objects import ApiWholeObjects, WholeObject, own_bytes
from tests.builders import pod
from tests.scheduler.client.loopback import Loopback, json_answer, status_answer, transport_to

NODE = {
    "metadata": {
        "name": "n1",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"zone": "a"},
        "annotations": {"rack": "4"},
        "ownerReferences": [{"kind": "Machine"}],
        "finalizers": ["example.com/hold"],
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {"podCIDR": "10.0.0.0/24", "anything": {"new": None}},
    "status": {"nodeInfo": {"kernelVersion": "6.1"}},
}
POD = {"metadata": {"name": "p", "namespace": "default", "uid": "uid-default-p"}, "spec": {"x": 1}}


def without_managed_fields(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in manifest["metadata"].items() if k != "managedFields"}
    return {**manifest, "metadata": metadata}


class OneNode:
    def get(self, namespace: str, name: str) -> WholeObject | None:
        found = Decoder(WholeObject).decode(msgspec.json.encode(NODE))
        return own_bytes(found) if name == "n1" else None


def pod_of(answer: Any) -> Any:
    async def handler(request):
        return answer

    async def main():
        async with Loopback(handler) as server, transport_to(server.url) as transport:
            return await ApiWholeObjects(Api(transport), None).pod(pod("p").info())

    return msgspec.json.decode(asyncio.run(main()))


def test_a_node_keeps_every_field_but_managed_fields():
    raw = ApiWholeObjects(None, OneNode()).node("n1")
    assert msgspec.json.decode(raw) == without_managed_fields(NODE)


@pytest.mark.parametrize("nodes", [None, OneNode()], ids=["none are kept", "another is"])
def test_a_node_that_has_not_arrived_is_none(nodes):
    assert ApiWholeObjects(None, nodes).node("n2") is None


def test_a_pod_is_what_the_api_says():
    assert pod_of(json_answer(POD)) == POD


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(
            json_answer({**POD, "metadata": {"name": "p", "uid": "other"}}),
            "no longer exists",
            id="another of the same name",
        ),
        pytest.param(status_answer(404, "NotFound", "gone"), "no longer exists", id="gone"),
        pytest.param(status_answer(500, "InternalError", "oh"), "cannot get the pod", id="failed"),
        pytest.param(json_answer([]), "cannot get the pod", id="garbage"),
    ],
)
def test_a_pod_that_cannot_be_had_is_an_error(answer, why):
    with pytest.raises(ExtenderError, match=why):
        pod_of(answer)

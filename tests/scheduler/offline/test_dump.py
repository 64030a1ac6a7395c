from __future__ import annotations

import json

import pytest

from scheduler.offline.cluster import DumpError, read_dump

POD = {"kind": "Pod", "metadata": {"name": "web"}}
BARE = {"metadata": {"name": "web"}}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param({"kind": "List", "items": [POD, POD]}, [(POD, ""), (POD, "")], id="List"),
        pytest.param({"kind": "PodList", "items": [BARE]}, [(BARE, "Pod")], id="PodList"),
        pytest.param({"kind": "NodeList", "items": []}, [], id="empty"),
        pytest.param(POD, [(POD, "Pod")], id="one object"),
    ],
)
def test_a_dump_falls_into_objects(document: object, found: list[object]) -> None:
    text = json.dumps(document).encode()
    assert [(json.loads(bytes(raw)), kind) for raw, kind in read_dump(text, "f")] == found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"apiVersion: v1\nkind: List\n", id="YAML"),
        pytest.param(b"[]", id="a bare list"),
        pytest.param(b'{"items": 1}', id="items that are none"),
        pytest.param(b'{"kind": "\xff"}', id="not UTF-8"),
    ],
)
def test_what_kubectl_did_not_print_is_refused(text: bytes) -> None:
    with pytest.raises(DumpError, match=r"nodes\.json is not what kubectl get -o json prints"):
        list(read_dump(text, "nodes.json"))

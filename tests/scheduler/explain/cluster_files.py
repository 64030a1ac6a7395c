"""Objects of the builders as the JSON that files and pipes hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from tests.builders import NodeBuilder, PodBuilder

if TYPE_CHECKING:
    from pathlib import Path


def as_object(builder: PodBuilder | NodeBuilder) -> dict[str, Any]:
    """Return an object of the API as plain data, with its kind."""
    kind = "Pod" if isinstance(builder, PodBuilder) else "Node"
    plain = json.loads(msgspec.json.encode(builder.build()))
    return {"apiVersion": "v1", "kind": kind, **plain}


def raw(value: object) -> msgspec.Raw:
    """Return plain data as JSON that is not decoded."""
    return msgspec.Raw(json.dumps(value).encode())


def write_dump(path: Path, *builders: PodBuilder | NodeBuilder) -> str:
    """Write what kubectl would have printed; return where."""
    items = [as_object(each) for each in builders]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)

"""The views that the browser opens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of the dump that are looked at, by kind."""

    waiting: dict[str, str]
    placed: str

    @classmethod
    def of(cls, path: Path) -> Pods:
        """Return the first pod of each kind in a dump."""
        waiting, placed = {}, ""
        for each in json.loads(path.read_bytes())["items"]:
            if each["kind"] != "Pod":
                continue
            meta = each["metadata"]
            key = f"{meta['namespace']}/{meta['name']}"
            if "kind" in meta["labels"]:
                waiting.setdefault(meta["labels"]["kind"], key)
            elif not placed:
                placed = key
        return cls(waiting, placed)


@dataclass(frozen=True, slots=True)
class View:
    """A view: its name, its path, and the colour schemes in which the docs show it."""

    name: str
    path: Callable[[Pods], str]
    in_docs: tuple[str, ...] = ()
    explains: bool = False
    asks: bool = False
    """Whether the form is filled in and sent."""


BOTH: Final = ("light", "dark")

VIEWS: Final = (
    View("pending", lambda _: "pending", in_docs=BOTH),
    View("pod", lambda pods: f"pods/{pods.waiting['big']}", in_docs=BOTH, explains=True),
    View("pod-gpu", lambda pods: f"pods/{pods.waiting['gpu']}", explains=True),
    View("pod-alone", lambda pods: f"pods/{pods.waiting['alone']}", explains=True),
    View("pod-gated", lambda pods: f"pods/{pods.waiting['gated']}", explains=True),
    View("pod-placed", lambda pods: f"pods/{pods.placed}", in_docs=("dark",), explains=True),
    View("pod-nodes", lambda pods: f"pods/{pods.waiting['big']}/nodes?row=0"),
    View("nodes", lambda _: "nodes", in_docs=BOTH),
    View("nodes-racks", lambda _: "nodes?by=topology.kubernetes.io/rack&show=fragmented"),
    View("node-list", lambda _: "nodes/list?order=fragmented"),
    View("node", lambda _: "nodes/one/general-0000"),
    View("decisions", lambda _: "decisions", in_docs=("dark",)),
    View("policies", lambda _: "policies", in_docs=("light",)),
    View("what-if", lambda _: "what-if?drain=general-0001&replicas=500", in_docs=BOTH, asks=True),
    View("error", lambda _: "pods/nobody/nothing"),
)

"""The views that the browser opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of the dump that are looked at, by kind."""

    waiting: dict[str, str]
    placed: str

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> Pods:
        """Return the first pod of each kind among some objects."""
        waiting, placed = {}, ""
        for each in objects:
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
    grows: bool = False
    """Whether rows are added while the page is looked at."""
    words: str = ""
    """What the page has to say in the end."""


BOTH: Final = ("light", "dark")

VIEWS: Final = (
    View("pending", lambda _: "pending", in_docs=("light",)),
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
    View("decisions", lambda _: "decisions"),
    View("policies", lambda _: "policies", in_docs=("light",)),
    View("what-if", lambda _: "what-if?drain=general-0001&replicas=500", in_docs=BOTH, asks=True),
    View("error", lambda _: "pods/nobody/nothing"),
)

NO_LEADER: Final = (
    View(
        "no-leader", lambda _: "decisions", in_docs=("light",), words="The leader cannot be asked"
    ),
)
"""The views while the Lease that the page was told of does not exist."""

LIVE_VIEWS: Final = (
    View(
        "live-pod", lambda pods: f"pods/{pods.waiting['big']}", explains=True, words="by the leader"
    ),
    View("live-what-if", lambda _: "what-if?replicas=20", asks=True, words="By the leader"),
    View("live-policies", lambda _: "policies", words="As the leader"),
    View("live-nodes", lambda _: "nodes", words="leader berth-"),
    View("live-placed", lambda pods: f"pods/{pods.placed}", explains=True, words="by the leader"),
    View("live-decisions", lambda _: "decisions", in_docs=("dark",), grows=True, words="Runner-up"),
    View("live-pending", lambda _: "pending", in_docs=BOTH, words="Counted by the leader"),
)
"""The views that ask the leader; the last ones show what has come meanwhile."""

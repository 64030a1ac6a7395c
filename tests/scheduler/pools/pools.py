"""Pools and pods for the tests of ownership."""

from __future__ import annotations

from msgspec.structs import replace

from cache.selector_text import parse_selector
from scheduler.pools.options import Pool
from scheduler.pools.ownership import POOL, ROUND
from tests.builders import pod

BERTH = frozenset({"berth"})

A = Pool("a", parse_selector("pool=a"), BERTH, "berth-a")
B = Pool("b", parse_selector("pool in (b,b2)"), BERTH, "berth-b")
C = Pool("c", parse_selector("pool=c,!spot"), BERTH | {"berth-c"}, "berth-c")
POOLS = (A, B, C)


def waiting(name: str = "web", owner: str = "", trip: str = "", version: int = 1):
    """A pod that waits, with an owner if one is given."""
    return annotated(pod(name).scheduler("berth").request(cpu="1").build(), owner, trip, version)


def annotated(made, owner: str = "", trip: str = "", version: int = 1):
    """The pod with another owner and version."""
    annotations = {key: text for key, text in ((POOL, owner), (ROUND, trip)) if text}
    metadata = replace(made.metadata, annotations=annotations, resource_version=str(version))
    return replace(made, metadata=metadata)

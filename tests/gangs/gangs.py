"""Gangs of like pods, drawn at random, and the objects that describe them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.pod_groups import by_field, make_pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEDULER_NAME: Final = "gangs"
"""Every contender answers to it, so that all of them find the very same pods."""

NODE_MILLI: Final = 32_000
"""CPU of a node."""

_MEMBER_MILLI: Final = (500, 1_000, 2_000, 4_000)
_GROUP: Final = "gang"


class Gang(NamedTuple):
    """A gang of which all members are needed.

    Attributes
    ----------
    milli
        CPU of each member.
    """

    name: str
    members: int
    milli: int

    @property
    def total_milli(self) -> int:
        """CPU of all members."""
        return self.members * self.milli


def random_gangs(seed: int, count: int, smallest: int, largest: int) -> list[Gang]:
    """Return gangs of random sizes."""
    rng = random.Random(seed)
    return [
        Gang(f"gang-{index:04}", rng.randint(smallest, largest), rng.choice(_MEMBER_MILLI))
        for index in range(count)
    ]


def nodes_for(gangs: Sequence[Gang], share: float) -> int:
    """Return how many nodes have room for that share of the gangs' CPU."""
    return max(round(share * sum(gang.total_milli for gang in gangs) / NODE_MILLI), 1)


def make_nodes(count: int) -> Iterator[dict[str, Any]]:
    """Yield nodes of :data:`NODE_MILLI`."""
    for index in range(count):
        yield make_node(f"node-{index:04}", cpu=f"{NODE_MILLI}m", memory="1Ti", pods="1000")


def objects_of(gang: Gang, **spec: Any) -> Iterator[dict[str, Any]]:
    """Yield the group of a gang and its members.

    Parameters
    ----------
    spec
        Further fields of the pods' spec under their API names.
    """
    yield make_pod_group(gang.name, gang.members)
    for index in range(gang.members):
        pod = make_pod(
            f"{gang.name}-{index:04}",
            scheduler_name=SCHEDULER_NAME,
            cpu=f"{gang.milli}m",
            labels={_GROUP: gang.name},
            **spec,
        )
        yield by_field(pod, gang.name)


def gang_of(pod_name: str) -> str:
    """Return the name of the gang of a member that :func:`objects_of` has made."""
    return pod_name.rpartition("-")[0]

"""Gangs of like pods, drawn at random, and the objects that describe them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.controlplane import pod_groups
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.pod_groups import make_pod_group, make_x_pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEDULER_NAME: Final = "gangs"
"""Every contender answers to it, so that all of them find the very same pods."""

NODE_MILLI: Final = 32_000
"""CPU of a node."""

_MEMBER_MILLI: Final = (500, 1_000, 2_000, 4_000)


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


def group_of(gang: Gang, *, by_label: bool = False, priority_class: str = "") -> dict[str, Any]:
    """Return the group of a gang: of ``scheduling.k8s.io``, or of ``scheduling.x-k8s.io``."""
    if by_label:  # such a group has the priority of its members
        return make_x_pod_group(gang.name, gang.members)
    spec = {"priorityClassName": priority_class} if priority_class else {}
    return make_pod_group(gang.name, gang.members, **spec)


def member_of(
    gang: Gang,
    suffix: str,
    scheduler_name: str = SCHEDULER_NAME,
    *,
    by_label: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """Return a member of a gang.

    Parameters
    ----------
    suffix
        Of its name, without a hyphen.
    by_label
        Whether it names its group by the label.
    spec
        Further fields of the pod's spec under their API names.
    """
    name = f"{gang.name}-{suffix}"
    pod = make_pod(name, scheduler_name=scheduler_name, cpu=f"{gang.milli}m", **spec)
    join = pod_groups.by_label if by_label else pod_groups.by_field
    return join(pod, gang.name)


def objects_of(gang: Gang) -> Iterator[dict[str, Any]]:
    """Yield the group of a gang of ``scheduling.k8s.io`` and its members."""
    yield group_of(gang)
    for index in range(gang.members):
        yield member_of(gang, f"{index:04}")


def gang_of(pod_name: str) -> str:
    """Return the name of the gang of a member, by the member's name."""
    return pod_name.rpartition("-")[0]

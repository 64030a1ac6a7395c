"""The pods that a journal has decisions about, with their nodes then and now.

*Then* means by the policy that was in force when the journal was recorded, *now* by the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cache.objects import Pod


class Placing(NamedTuple):
    """Where and when a pod got a node.

    Attributes
    ----------
    node_name
        Empty for a pod that has none.
    zone
        The zone of the node; empty where the node names none.
    at_s
        The time of the decision, in seconds since the epoch.
    """

    node_name: str = ""
    zone: str = ""
    at_s: float = 0.0

    @property
    def is_placed(self) -> bool:
        """Whether the pod has a node."""
        return bool(self.node_name)


NOWHERE: Final = Placing()


@dataclass(slots=True)
class Fate:
    """A pod from its first decision to its end, in both clusters.

    Attributes
    ----------
    pod
        Its latest version, without a node.
    profile
        Its schedulerName.
    first_s
        The time of the first decision about it.
    then, now
        Its nodes. One that is evicted now keeps the node that it had.
    lost
        Both nodes of before, if its binding failed then.
    nominated_then, nominated
        The nodes that it is nominated for.
    is_bound_then
        Whether the API server showed it with a node then.
    is_evicted
        Whether the other policy has evicted it.
    is_queued
        Whether the queue of the other cluster tries it again: it is not tried when it was then.
    """

    pod: Pod
    profile: str
    first_s: float
    then: Placing = NOWHERE
    now: Placing = NOWHERE
    lost: tuple[Placing, Placing] = (NOWHERE, NOWHERE)
    nominated_then: str = ""
    nominated: str = ""
    is_bound_then: bool = False
    is_evicted: bool = False
    is_queued: bool = False

    @property
    def uid(self) -> str:
        """The UID of the pod."""
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        """The pod as ``namespace/name``."""
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"

    @property
    def waits(self) -> bool:
        """Whether it has no node in the other cluster, and may get one."""
        if self.now.is_placed or self.is_evicted:
            return False
        return self.pod.metadata.deletion_timestamp is None

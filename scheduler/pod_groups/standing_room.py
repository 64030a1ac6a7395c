"""Whether members stay where a plan put them when pods are put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.pod_info import PodInfo
    from scheduler.pod_groups.counted_room import NodeSlots


class StandingRoom:
    """The nodes of a plan, with its members and without some pods.

    Only amounts are looked at: whether the members still fit is for the planner to say.

    Parameters
    ----------
    slots
        Which amounts count.
    free
        What is free on each node of the plan, by name, without the members and with all pods.
    members
        The members with their nodes.

    Notes
    -----
    *Cost*: some microseconds for each pod that is removed or put back.
    """

    def __init__(
        self,
        slots: NodeSlots,
        free: Mapping[str, Sequence[int]],
        members: Iterable[tuple[PodInfo, str]],
    ) -> None:
        self._slots = slots
        self._free = {name: list(amounts) for name, amounts in free.items()}
        for info, name in members:
            self._add(self._free[name], info, -1)
        self._lacking = {name for name, left in self._free.items() if min(left) < 0}

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods; those on other nodes change nothing."""
        self._change(pods, 1)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Add pods again."""
        self._change(pods, -1)

    def fits(self) -> bool:
        """Return whether nothing that the members request is lacking."""
        return not self._lacking

    def _change(self, pods: Iterable[PodInfo], sign: int) -> None:
        for info in pods:
            free = self._free.get(info.node_name)
            if free is not None:
                self._add(free, info, sign)
                if min(free) < 0:
                    self._lacking.add(info.node_name)
                else:
                    self._lacking.discard(info.node_name)

    def _add(self, free: list[int], info: PodInfo, sign: int) -> None:
        for at, amount in enumerate(self._slots.freed(info)):
            free[at] += sign * amount

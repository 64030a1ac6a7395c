"""The running count of one part of a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.what_if.result import MAX_NAMES, MAX_PLACEMENTS, MAX_SAMPLE, Part, Placement, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.what_if.placer import Outcome

MAX_LISTED: Final = 5

OTHER_REASONS: Final = "other reasons"
"""Stands for all reasons beyond the first thousand."""


def listed(names: Sequence[str]) -> str:
    """Return names for people: the first few and the number of the others."""
    text = ", ".join(names[:MAX_LISTED])
    left = len(names) - MAX_LISTED
    return f"{text} and {left} more" if left > 0 else text


class Tally:
    """Counts what becomes of the pods of one part.

    Parameters
    ----------
    kind, subject
        As in :class:`scheduler.what_if.result.Part`.

    Attributes
    ----------
    next
        Why one more pod or group would not fit; empty if it would; None if nobody knows.
    """

    def __init__(self, kind: str, subject: str) -> None:
        self._kind = kind
        self._subject = subject
        self.placed = 0
        self.undecided = 0
        self.stayed = 0
        self.next: str | None = None
        self._nodes: dict[str, int] = {}
        self._placements: list[Placement] = []
        self._refused: dict[str, tuple[int, list[str]]] = {}

    def count(self, pod: str, outcome: Outcome, from_node: str = "") -> None:
        """Count what becomes of a pod."""
        if outcome.node_name:
            self.place(pod, outcome.node_name, from_node)
        elif outcome.reason:
            self.refuse(pod, outcome.reason)
        else:
            self.undecided += 1

    def place(self, pod: str, node: str, from_node: str = "") -> None:
        """Count a pod that would go to a node."""
        self.placed += 1
        self._nodes[node] = self._nodes.get(node, 0) + 1
        if len(self._placements) < MAX_PLACEMENTS:
            self._placements.append(Placement(pod, node, from_node))

    def refuse(self, pod: str, reason: str, pods: int = 1) -> None:
        """Count pods that would wait for one reason; one of them is named."""
        if reason not in self._refused and len(self._refused) >= MAX_NAMES:
            reason = OTHER_REASONS
        count, sample = self._refused.setdefault(reason, (0, []))
        if len(sample) < MAX_SAMPLE:
            sample.append(pod)
        self._refused[reason] = count + pods, sample

    @property
    def refused(self) -> int:
        """The pods that would wait."""
        return sum(count for count, _ in self._refused.values())

    @property
    def total(self) -> int:
        """All pods that were counted."""
        return self.placed + self.refused + self.undecided

    def part(self) -> Part:
        """Return the part as counted so far; the nodes with the most pods come first."""
        nodes = sorted(self._nodes.items(), key=lambda each: (-each[1], each[0]))
        refusals = tuple(
            Refusal(reason, count, tuple(sample))
            for reason, (count, sample) in self._refused.items()
        )
        return Part(
            self._kind,
            self._subject,
            self.placed,
            self.refused,
            self.undecided,
            self.stayed,
            dict(nodes),
            refusals[0].reason if refusals else "",
            self.next or "",
            None if self.next is None else not self.next,
            tuple(sorted(refusals, key=lambda each: -each.pods)),
            tuple(self._placements),
            self.placed - len(self._placements),
        )

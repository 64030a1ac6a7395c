"""What a search knows about the requests of a claim: which devices they can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plugins.dynamic_resources.requests import Request


class Candidates:
    """The devices of a node for one request.

    Attributes
    ----------
    request
        The request.
    index
        The place of the request in its claim.
    matches
        For each device of the node, whether the request can select it; None while unknown.
    count
        How many devices the request needs.
    all_devices
        The indices of the devices of a request for all of them.
    """

    __slots__ = ("all_devices", "count", "index", "matches", "request")

    def __init__(self, request: Request, index: int, n_devices: int) -> None:
        self.request = request
        self.index = index
        self.matches: list[bool | None] = [None] * n_devices
        self.count = request.count
        self.all_devices: list[int] = []


class Choice:
    """The alternatives of a prioritized list, and the one that is tried."""

    __slots__ = ("alternatives", "chosen", "is_too_many")

    def __init__(self, alternatives: tuple[Candidates, ...]) -> None:
        self.alternatives = alternatives
        self.chosen = 0
        self.is_too_many = True
        """Whether all alternatives tried so far failed for the number of devices alone."""


RequestsOfClaims: TypeAlias = "Sequence[Sequence[Candidates | Choice]]"
"""The requests of each claim, in order."""


def alternatives_of(each: Candidates | Choice) -> tuple[Candidates, ...]:
    """Return the alternatives of a request; a request without any is its only one."""
    return (each,) if isinstance(each, Candidates) else each.alternatives

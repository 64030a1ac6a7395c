"""Nodes that come, go, and change during the campaign."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.api import ApiError
from tests.controlplane.objects import ZONE_LABEL, make_node

if TYPE_CHECKING:
    from tests.controlplane.api import ApiClient

_ZONES: Final = ("zone-0", "zone-1", "zone-2", "zone-3")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule")
_MILLI: Final = (4_000, 8_000, 12_000)


class NodeChurn:
    """Changes one node at a time.

    Attributes
    ----------
    changes
        How often each kind of change was made.
    """

    def __init__(self, api: ApiClient, seed: int, count: int) -> None:
        self._api = api
        self._rng = random.Random(seed)
        self._sizes: dict[str, int] = {}
        self._gone: list[str] = []
        self._next = count
        self._count = count
        self.changes: Counter[str] = Counter()
        self._kinds = {
            "relabel": self._relabel,
            "another zone": self._move,
            "taint": self._taint,
            "cordon": self._cordon,
            "recreate with half the size": self._halve,
            "remove": self._remove,
            "add": self._add,
        }

    async def begin(self) -> None:
        """Create the first nodes."""
        names = [f"node-{number:04}" for number in range(self._count)]
        await self._api.create_many([self._node(name, self._rng.choice(_MILLI)) for name in names])

    async def change(self) -> None:
        """Make one random change."""
        # As many come as go.
        if len(self._sizes) < self._count * 0.9:
            kind = "add"
        else:
            kind = self._rng.choice(tuple(self._kinds))
        with contextlib.suppress(ApiError):
            await self._kinds[kind]()
            self.changes[kind] += 1

    def _node(self, name: str, milli: int) -> dict[str, Any]:
        rng = self._rng
        self._sizes[name] = milli
        labels = {
            "pool": rng.choice("abc"),
            "lifecycle": rng.choices(("on-demand", "spot"), (80, 20))[0],
            "example.com/cost-per-hour": f"{rng.uniform(0.1, 3):.2f}",
        }
        taints = []
        if rng.random() < 0.1:
            taints = [{"key": "reserved", "value": "yes", "effect": rng.choice(_EFFECTS)}]
        return make_node(
            name, cpu=f"{milli}m", zone=rng.choice(_ZONES), labels=labels, taints=taints
        )

    def _any(self) -> str:
        return self._rng.choice(sorted(self._sizes))

    async def _patch(self, body: object) -> None:
        await self._api.patch(f"/api/v1/nodes/{self._any()}", body)

    async def _relabel(self) -> None:
        labels = {
            "pool": self._rng.choice("abc"),
            "example.com/cost-per-hour": f"{self._rng.uniform(0.1, 3):.2f}",
        }
        await self._patch({"metadata": {"labels": labels}})

    async def _move(self) -> None:
        await self._patch({"metadata": {"labels": {ZONE_LABEL: self._rng.choice(_ZONES)}}})

    async def _taint(self) -> None:
        taint = {"key": "busy", "value": "yes", "effect": self._rng.choice(_EFFECTS)}
        await self._patch({"spec": {"taints": [taint] if self._rng.random() < 0.5 else None}})

    async def _cordon(self) -> None:
        await self._patch({"spec": {"unschedulable": self._rng.random() < 0.4}})

    async def _halve(self) -> None:
        """Delete a node, and create one of its name again at once: its pods stay bound to it."""
        name = self._any()
        milli = self._sizes[name]
        await self._api.delete(f"/api/v1/nodes/{name}")
        await self._api.create_many([self._node(name, max(milli // 2, 2_000))])

    async def _remove(self) -> None:
        name = self._any()
        await self._api.delete(f"/api/v1/nodes/{name}")
        del self._sizes[name]
        self._gone.append(name)

    async def _add(self) -> None:
        """Create a node; every other time one that was there before."""
        if self._gone and self._rng.random() < 0.5:
            name = self._gone.pop(self._rng.randrange(len(self._gone)))
        else:
            name, self._next = f"node-{self._next:04}", self._next + 1
        await self._api.create_many([self._node(name, self._rng.choice(_MILLI))])

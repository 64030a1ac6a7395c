"""Plays the history of a seed: what the scheduler wrote at each step, and where it all ended."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from tests.regressions.world import World
from tests.worlds import steps
from tests.worlds.histories import history
from tests.worlds.recorded_cluster import RecordedCluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

_TURNS: Final = 5_000
"""Of the loop after one step. Without pauses nothing that ends takes as many."""


class RecordedWorld(World):
    """A world whose API server remembers what is written.

    Attributes
    ----------
    impossible
        Why steps could not happen, such as that a pod was gone.
    """

    cluster: RecordedCluster

    def __init__(self) -> None:
        super().__init__(RecordedCluster)
        # Timers of the loop, such as that of a binding which waits for volumes, follow the
        # world's clock as well: how fast a machine is must not show.
        asyncio.get_running_loop().time = self.clock
        self.impossible: list[str] = []

    def hear(self) -> bool:
        """Hand over what the watches tell; there no report breaks down, it is one of a cycle."""
        broken = vars(self._recorder).pop("event", self._recorder.event)
        try:
            return super().hear()
        finally:
            vars(self._recorder)["event"] = broken

    async def settle(self) -> None:
        """Let everything that is under way come to its end, or to where it is held.

        However many turns of the loop it takes: what is recorded must not depend on that.
        """
        self.hear()
        await _nothing_is_ready()
        while self.hear():
            await _nothing_is_ready()


async def _nothing_is_ready() -> None:
    ready = asyncio.get_running_loop()._ready  # nothing public says so
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if not ready:
            return
    raise RuntimeError("something goes on for ever")


@dataclass(frozen=True, slots=True)
class Played:
    """What happened in the world of a seed.

    Attributes
    ----------
    steps
        What happened, and what the scheduler wrote about it, in order.
    placements
        Each pod that is left, with its node and its nominated node, by name.
    has_died
        Whether the scheduling thread would have ended.
    """

    seed: int
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    placements: tuple[str, ...]
    has_died: bool

    def to_json(self) -> str:
        """Return it as one line, for :meth:`of_json` in another process."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, line: str | bytes) -> Self:
        """Return what :meth:`to_json` made a line of."""
        told = json.loads(line)
        steps = tuple((step, tuple(writes)) for step, writes in told["steps"])
        return cls(told["seed"], steps, tuple(told["placements"]), told["has_died"])


def play(seed: int) -> Played:
    """Play the world of a seed."""
    with _quiet():
        return asyncio.run(_play(seed, history(seed)))


def play_and_listen(seed: int) -> tuple[Played, Counter[str]]:
    """Play the world of a seed; return also how often each log line was written."""
    with structlog.testing.capture_logs() as logs:
        played = asyncio.run(_play(seed, history(seed)))
    return played, Counter(f"{each['log_level']}: {each['event']}" for each in logs)


@contextmanager
def _quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


async def _play(seed: int, lines: Sequence[str]) -> Played:
    seen: list[tuple[str, int]] = []
    async with RecordedWorld() as world:
        for line in lines:
            steps.of(line)(world)
            await world.settle()
            seen.append((line, len(world.cluster.writes)))
        # Outcomes come later than requests: they are read when all is over.
        writes = [str(each) for each in world.cluster.writes]
        placements = tuple(_placement(pod) for pod in world.cluster.pods())
        begins = [0, *(end for _, end in seen)]
        happened = tuple(
            (line, tuple(writes[begin:end]))
            for begin, (line, end) in zip(begins, seen, strict=False)
        )
        return Played(seed, happened, placements, world.has_died)


def _placement(pod: dict[str, Any]) -> str:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    node, nominated = spec.get("nodeName", ""), status.get("nominatedNodeName", "")
    return f"{metadata['namespace']}/{metadata['uid']} on={node} nominated={nominated}"

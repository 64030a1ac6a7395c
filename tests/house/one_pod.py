"""``python one_pod.py CHECKOUT``: the way of one pod from the watch to its binding, as JSON.

The pod takes its way through the parts that ``tests/regressions`` of that checkout puts together.
This file is run by its path, so that nothing but the checkout's own code is imported.
"""

from __future__ import annotations

import asyncio
import json
import sys
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import CodeType, FrameType

BEFORE: Final = ("node a cpu=4", "node b cpu=4", "node c cpu=4", "pod first cpu=1", "cycle")
"""What is made once for all pods is made for the first one."""

POD: Final = ("pod second cpu=2", "cycle")
LIKE_POD: Final = ("pod third cpu=2", "cycle")
BIND: Final = "bind_pod"
"""The function of ``tests/regressions/cluster.py`` that takes a binding."""

_RESUMABLE: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


class Way:
    """Records each call that leads from one room of ``scheduler`` into another.

    Calls of the cache and of plugins are a room's own work; where a plugin asks the scheduler
    something, the room that has called the plugin counts as the one that asks.

    Attributes
    ----------
    calls
        The room that calls, empty for the loop, and the one that is called; a call that only
        repeats the one before is left out.
    ended
        The binding was sent; nothing is recorded any more.
    """

    def __init__(self, root: Path) -> None:
        self.calls: list[tuple[str, str]] = []
        self.ended = False
        self._root = root
        self._rooms: dict[CodeType, str] = {}
        self._begun: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Look at a call; called by the interpreter."""
        if self.ended or event != "call" or self._goes_on(frame):
            return
        code = frame.f_code
        if code.co_name == BIND and code.co_filename == str(self._cluster):
            self.ended = True
            return
        room = self._room(code)
        if not room:
            return
        caller = self._caller(frame)
        if caller != room and (caller, room) != (self.calls or [None])[-1]:
            self.calls.append((caller, room))

    @property
    def _cluster(self) -> Path:
        return self._root / "tests" / "regressions" / "cluster.py"

    def _goes_on(self, frame: FrameType) -> bool:
        """Return whether this is no call, but a generator or coroutine that is resumed."""
        if not frame.f_code.co_flags & _RESUMABLE:
            return False
        if frame in self._begun:
            return True
        self._begun.add(frame)
        return False

    def _caller(self, frame: FrameType) -> str:
        """Return the next room up the stack; empty if there is none."""
        above = frame.f_back
        while above is not None:
            room = self._room(above.f_code)
            if room:
                return room
            above = above.f_back
        return ""

    def _room(self, code: CodeType) -> str:
        """Return the room of a function, empty for what has none."""
        if code not in self._rooms:
            self._rooms[code] = self._room_of_path(Path(code.co_filename))
        return self._rooms[code]

    def _room_of_path(self, path: Path) -> str:
        if not path.is_relative_to(self._root):
            return ""
        parts = path.relative_to(self._root).with_suffix("").parts
        if parts[0] != "scheduler":
            return ""
        return ".".join(parts if len(parts) == 2 else parts[:-1])


async def ways(root: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the calls between rooms for a pod of a new kind, and for one more of the kind.

    Raises
    ------
    RuntimeError
        When a pod was not bound.
    """
    from tests.regressions import steps
    from tests.regressions.world import World

    found = {}
    async with World() as world:
        for text in BEFORE:
            steps.of(text)(world)
            await world.settle()
        for kind, texts in (("a new kind of pod", POD), ("one more of the kind", LIKE_POD)):
            way = Way(root)
            sys.setprofile(way)
            try:
                for text in texts:
                    steps.of(text)(world)
                    await world.settle()
            finally:
                sys.setprofile(None)
            if not way.ended:
                raise RuntimeError(f"{texts[0]}: no binding was sent")
            found[kind] = way.calls
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ways(Path(sys.argv[1]).resolve()))))

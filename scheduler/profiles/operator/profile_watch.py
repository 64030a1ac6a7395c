"""What SchedulingProfiles there are: lists of our own now and then, and kopf, kept alive.

    absent --- 404 -------> absent      the kind is not installed: asked for again, quietly
    absent --- a list ----> present     kopf is started; when it ends, again after a pause
    present -- a list ----> present     what kopf has not told, the list does
    present -- 404, twice -> absent     all objects are gone, kopf is stopped
    any ------ no answer -> the same    what is known stays

So a kopf that is dead, or cut off, or deaf costs half a minute, and no policy.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from cache.resource_versions import parse_resource_version
from scheduler.client.errors import ApiError
from scheduler.informers.backoff import Backoff
from scheduler.profiles.operator.kopf_thread import KopfThread
from scheduler.profiles.operator.scheduling_profile import (
    GROUP,
    PATH,
    PLURAL,
    VERSION,
    ProfileObject,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from scheduler.client.credentials import Credentials
    from scheduler.client.transport import Transport
    from scheduler.profiles.operator.reconciler import ProfileIntake

LIST_S: Final = 30.0
"""Between two lists while kopf watches."""

LIST_ALONE_S: Final = 5.0
"""Between two lists while it does not, or the kind is not installed."""

DEAF_S: Final = 15.0
"""For how long kopf may keep to itself what lists know, before it is started anew."""

SERVED_S: Final = 0.5
"""Between two lists while discovery does not know the kind yet."""

CONFIG_MAPS_S: Final = 2.0
"""Between two looks at the ConfigMaps that are named, if any are."""

_PAGE: Final = 500
_JOIN_S: Final = 5.0

log = structlog.get_logger(__name__)


class ProfileWatch:
    """Tells the intake of every SchedulingProfile.

    Parameters
    ----------
    transport
        For the lists.
    load_credentials
        For kopf, on its own loop.
    intake
        Who is told.
    do
        Has something done on the thread of the policies, in order; never waits.

    Notes
    -----
    *Concurrency*: loop-confined, but for the numbers, which may be read anywhere.
    """

    def __init__(
        self,
        transport: Transport,
        load_credentials: Callable[[], Awaitable[Credentials]],
        intake: ProfileIntake,
        do: Callable[[Callable[[], object]], None],
        rng: random.Random,
        *,
        list_s: float = LIST_S,
        list_alone_s: float = LIST_ALONE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._load_credentials = load_credentials
        self._intake = intake
        self._do = do
        self._list_s = list_s
        self._list_alone_s = list_alone_s
        self._clock = clock
        self._backoff = Backoff(1.0, 60.0, rng)
        self._kopf: KopfThread | None = None
        self._start_kopf_s = float("-inf")
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._told: dict[str, int] = {}
        """The newest generation that kopf has told of, by UID. Written on kopf's thread."""
        self._untold: dict[tuple[str, int], float] = {}
        """What lists had and kopf has not told, and since when."""
        self._missing = 0
        """How many lists in a row found no such kind."""
        self._is_answered = False
        """Whether the last list was answered with one."""
        self._said = ""
        self._tasks: list[asyncio.Task[None]] = []
        self.first_list = asyncio.Event()
        """Set once the first list, or what came instead of it, has been taken in."""
        self.is_installed = False
        self.restarts = 0
        """How often kopf was started again."""
        self.lists = 0
        """Lists that were answered."""

    @property
    def kopf(self) -> KopfThread | None:
        """The run of kopf, if there is one."""
        return self._kopf

    @property
    def kopf_is_up(self) -> bool:
        """Whether kopf runs and the API server answers it."""
        return self._kopf is not None and self._kopf.is_up

    def start(self) -> None:
        """Begin to list and to watch."""
        self._tasks = [
            self._loop.create_task(self._run(), name="profile-watch"),
            self._loop.create_task(self._look_at_config_maps(), name="profile-config-maps"),
        ]

    async def stop(self) -> None:
        """End, kopf too; one that does not end is left behind."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        kopf, self._kopf = self._kopf, None
        if kopf is not None:
            kopf.stop()
            if not await asyncio.to_thread(kopf.join, _JOIN_S):
                log.warning("kopf does not end")

    # --- the loop -----------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._news.clear()
            try:
                await self._look()
            except Exception:
                # Reached only by a mistake of ours, which shall not end the watch.
                log.exception("scheduling profiles could not be looked at")
            self._do(self._first_list_is_in)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._news.wait()

    def _pause_s(self) -> float:
        if self._missing or not self._is_answered:
            return self._list_alone_s
        if self.kopf_is_up and not self._untold:
            return self._list_s
        if self._kopf is not None:
            return self._list_alone_s
        left_s = self._start_kopf_s - self._clock()
        return min(left_s if left_s > 0 else SERVED_S, self._list_alone_s)

    async def _look(self) -> None:
        self._bury_kopf()
        self._is_answered = False
        try:
            found, version = await self._list()
        except ApiError as error:
            await self._failed(error)
            return
        self.lists += 1
        self._is_answered = True
        self._missing = 0
        self.is_installed = True
        self._say("scheduling profiles are watched", count=len(found))
        self._do(lambda: self._intake.listed(found, version))
        await self._compare(found)
        if self._kopf is None and self._clock() >= self._start_kopf_s and await self._is_served():
            self._start_kopf()

    async def _failed(self, error: ApiError) -> None:
        if error.status != 404:
            self._say("scheduling profiles cannot be listed", error=str(error))
            return
        self._missing += 1
        if self._missing == 1 and self.is_installed:
            # An API server that has just been started may not know yet what it serves.
            return
        if self.is_installed:
            self.is_installed = False
            self._do(self._intake.not_installed)
            await self._stop_kopf()
        self._say("the kind SchedulingProfile is not installed")

    async def _list(self) -> tuple[list[ProfileObject], int]:
        """Return all objects, and the version of the list."""
        found: list[ProfileObject] = []
        token, version = "", 0
        while True:
            query = [("limit", str(_PAGE)), *([("continue", token)] if token else [])]
            answer = await self._transport.request("GET", PATH, query=query, timeout_s=15.0)
            page = _decoded(answer.body)
            metadata = page["metadata"]
            # A later page may be newer than the first; what came in between is seen next time.
            version = version or parse_resource_version(metadata.get("resourceVersion", ""))
            found += [ProfileObject.of(each) for each in page.get("items") or ()]
            token = metadata.get("continue") or ""
            if not token:
                return found, version

    async def _is_served(self) -> bool:
        """Tell whether discovery knows the kind: kopf asks once, and never again."""
        try:
            groups = _decoded((await self._transport.request("GET", "/apis")).body)
            path = f"/apis/{GROUP}/{VERSION}"
            kinds = _decoded((await self._transport.request("GET", path)).body)
        except ApiError:
            return False
        return any(each.get("name") == GROUP for each in groups.get("groups") or ()) and any(
            each.get("name") == PLURAL for each in kinds.get("resources") or ()
        )

    async def _look_at_config_maps(self) -> None:
        while True:
            await asyncio.sleep(CONFIG_MAPS_S)
            if self._intake.names_config_maps:
                done = asyncio.Event()

                def look(done: asyncio.Event = done) -> None:
                    try:
                        self._intake.look_at_config_maps()
                    finally:
                        with contextlib.suppress(RuntimeError):
                            self._loop.call_soon_threadsafe(done.set)

                self._do(look)
                await done.wait()

    def _first_list_is_in(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.first_list.set)

    # --- kopf ---------------------------------------------------------------------------------

    def _start_kopf(self) -> None:
        self._told.clear()
        self._untold.clear()
        self._kopf = KopfThread(self._load_credentials, self._changed, self._deleted, self._wake)
        self._kopf.start()

    def _bury_kopf(self) -> None:
        """Take note of the end of kopf, and when to start it again."""
        kopf = self._kopf
        if kopf is None or kopf.is_alive:
            return
        self._kopf = None
        self.restarts += 1
        delay_s = self._backoff.delay_s(self._clock())
        self._start_kopf_s = self._clock() + delay_s
        log.warning("kopf has ended", error=repr(kopf.failure), again_in_s=round(delay_s, 1))

    async def _stop_kopf(self) -> None:
        kopf, self._kopf = self._kopf, None
        if kopf is not None:
            kopf.stop()
            await asyncio.to_thread(kopf.join, _JOIN_S)

    async def _compare(self, found: list[ProfileObject]) -> None:
        """Start kopf anew when it does not tell what lists know, though it is connected."""
        now_s = self._clock()
        untold = [
            (each.uid, each.generation)
            for each in found
            if self._told.get(each.uid, 0) < each.generation
        ]
        if not self.kopf_is_up:
            self._untold.clear()
            return
        self._untold = {key: self._untold.get(key, now_s) for key in untold}
        if any(now_s - since_s >= DEAF_S for since_s in self._untold.values()):
            log.warning("kopf tells nothing", objects=len(untold))
            self._untold.clear()
            await self._stop_kopf()
            self.restarts += 1
            self._start_kopf_s = now_s + self._backoff.delay_s(now_s)

    def _changed(self, raw: bytes) -> None:
        found = ProfileObject.of(_decoded(raw))
        self._told[found.uid] = found.generation
        self._do(lambda: self._intake.seen(found))

    def _deleted(self, raw: bytes) -> None:
        found = ProfileObject.of(_decoded(raw))
        self._told.pop(found.uid, None)
        self._do(lambda: self._intake.gone(found.name, found.uid))

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    def _say(self, event: str, **fields: object) -> None:
        """Log a state when it changes: it is asked for again and again."""
        if event != self._said:
            self._said = event
            log.info(event, **fields)


def _decoded(body: bytes) -> dict[str, Any]:
    """Return an answer as plain data.

    Raises
    ------
    ApiError
        It is something else.
    """
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(None, "BadResponse", f"this is no JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata", {}), dict):
        raise ApiError(None, "BadResponse", "this is no object")
    return data

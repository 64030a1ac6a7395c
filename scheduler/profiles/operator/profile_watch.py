"""The supervisor of kopf: it starts kopf for the kind SchedulingProfile and restarts it.

    absent --- 404 --------> absent      the kind is not installed; the next check follows
    any ------ a list -----> present     kopf runs; after its end it is restarted after a pause
    present -- 404, twice -> absent      all objects are removed
    any ------ no response -> the same   the known objects remain

Each run of kopf begins with a list, which contains the changes that the previous run missed. The
running profiles keep running meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from scheduler.client.codec import read_answer
from scheduler.client.errors import ApiError
from scheduler.informers.backoff import Backoff
from scheduler.profiles.operator.kopf_thread import KopfThread
from scheduler.profiles.operator.scheduling_profile import GROUP, PATH, PLURAL, VERSION

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from scheduler.client.credentials import Credentials
    from scheduler.client.transport import Transport
    from scheduler.profiles.operator.reconciler import ProfileReconciler

RESTART_S: Final = (0.1, 5.0)
"""The first and the longest pause between two runs of kopf."""

ABSENT_S: Final = 5.0
"""The pause between two checks for a kind that is not installed."""

SERVED_S: Final = 0.5
"""The pause between two checks while discovery does not contain the kind yet."""

LIST_S: Final = 30.0
"""The time after which a run of kopf that has not delivered a list is ended."""

CONFIG_MAPS_S: Final = 2.0
"""The pause between two reads of the ConfigMaps that SchedulingProfiles name."""

_JOIN_S: Final = 5.0
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])

log = structlog.get_logger(__name__)


class ProfileWatch:
    """Checks that the kind is installed and served, then runs kopf, and restarts it when it ends.

    Parameters
    ----------
    transport
        Used for these checks.
    load_credentials
        Loads credentials for kopf, on kopf's own loop.
    reconciler
        Receives all SchedulingProfiles.
    do
        Queues a call for the reconciler's thread, in order; never blocks.

    Notes
    -----
    *Concurrency*: loop-confined, except for the numbers, which may be read from any thread.
    """

    def __init__(
        self,
        transport: Transport,
        load_credentials: Callable[[], Awaitable[Credentials]],
        reconciler: ProfileReconciler,
        do: Callable[[Callable[[], object]], None],
        rng: random.Random,
    ) -> None:
        self._transport = transport
        self._load_credentials = load_credentials
        self._reconciler = reconciler
        self._do = do
        self._backoff = Backoff(*RESTART_S, rng)
        self._loop = asyncio.get_running_loop()
        self._turned = asyncio.Event()
        """Set when the state of kopf has changed."""
        self._not_found_count = 0
        """Number of successive responses with status 404."""
        self._last_state = ""
        self._tasks: list[asyncio.Task[None]] = []
        self.first_list = asyncio.Event()
        """Set once the first list has been handled, or the first attempt to list has failed."""
        self.kopf: KopfThread | None = None
        """The newest run of kopf."""
        self.is_installed = False
        self.restarts = 0
        """Number of runs of kopf that have ended."""

    @property
    def kopf_is_up(self) -> bool:
        """Whether kopf has delivered a list and watches for changes."""
        return self.kopf is not None and self.kopf.is_up

    def start(self) -> None:
        """Start to watch."""
        self._tasks = [
            self._loop.create_task(self._run(), name="profile-watch"),
            self._loop.create_task(self._poll_config_maps(), name="profile-config-maps"),
        ]

    async def stop(self) -> None:
        """Stop watching, and end kopf."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stop_kopf()

    async def _run(self) -> None:
        while True:
            try:
                pause_s = await self._watch()
            except Exception:
                # Only a bug of Berth can cause this; it must not end the watch.
                log.exception("scheduling profiles could not be watched")
                pause_s = ABSENT_S
            await asyncio.sleep(pause_s)

    async def _watch(self) -> float:
        """Run kopf once, if there is anything to watch; return the pause after it in seconds."""
        pause_s = 0.0
        try:
            # One object is enough to check that the kind exists and that Berth may list it.
            await self._transport.request("GET", PATH, query=[("limit", "1")], timeout_s=15.0)
        except ApiError as error:
            pause_s = self._not_listed(error)
        else:
            self._not_found_count = 0
            self.is_installed = True
            if not await self._is_served():
                return SERVED_S
            await self._run_kopf()
        self._do(partial(self._set, self.first_list))
        return pause_s or self._backoff.delay_s(time.monotonic())

    def _not_listed(self, error: ApiError) -> float:
        """Return the pause in seconds; 0 for the pause between two runs of kopf."""
        if error.status == 404:
            self._not_found_count += 1
            # An API server that has just started may not serve the kind yet.
            if self.is_installed and self._not_found_count > 1:
                self.is_installed = False
                self._do(partial(self._reconciler.listed, frozenset()))
            if not self.is_installed:
                self._log_state("the kind SchedulingProfile is not installed")
        else:
            self._log_state("scheduling profiles cannot be listed", error=str(error))
        is_refused = error.status is not None and error.status < 500
        return ABSENT_S if is_refused else 0.0

    async def _is_served(self) -> bool:
        """Return whether discovery contains the kind, which kopf checks only once."""
        try:
            groups = (await self._get("/apis")).get("groups") or ()
            kinds = (await self._get(f"/apis/{GROUP}/{VERSION}")).get("resources") or ()
        except ApiError:
            return False
        return any(each.get("name") == GROUP for each in groups) and any(
            each.get("name") == PLURAL for each in kinds
        )

    async def _get(self, path: str) -> dict[str, Any]:
        body = await self._transport.get(path)
        return {} if body is None else read_answer(_OBJECT, body, "an object")

    async def _poll_config_maps(self) -> None:
        while True:
            await asyncio.sleep(CONFIG_MAPS_S)
            if self._reconciler.names_config_maps:
                done = asyncio.Event()
                self._do(self._reconciler.look_at_config_maps)
                self._do(partial(self._set, done))
                await done.wait()

    # --- kopf ---------------------------------------------------------------------------------

    async def _run_kopf(self) -> None:
        """Start kopf and return when it has ended, or has not delivered a list in time."""
        kopf = self.kopf = KopfThread(
            self._load_credentials,
            self._reconciler,
            self._do,
            partial(self._set, self._turned),
        )
        kopf.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LIST_S):
                await self._wait(lambda: kopf.is_up or kopf.is_over)
            if kopf.is_up:
                self._log_state("scheduling profiles are watched")
            self._do(partial(self._set, self.first_list))
            await self._wait(lambda: kopf.is_over)
        error = kopf.failure or TimeoutError("no list was delivered in time")
        await self._stop_kopf()
        self.restarts += 1
        self._log_state("kopf has ended", "warning", error=f"{type(error).__name__}: {error}")

    async def _wait(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._turned.clear()
            if not holds():
                await self._turned.wait()

    async def _stop_kopf(self) -> None:
        """End kopf. A thread that does not end is abandoned; the reconciler ignores its events."""
        if self.kopf is not None:
            self.kopf.stop()
            if not await asyncio.to_thread(self.kopf.join, _JOIN_S):
                log.warning("kopf did not end in time")

    def _set(self, event: asyncio.Event) -> None:
        """Set an event of the loop, from any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(event.set)

    def _log_state(self, event: str, level: str = "info", **fields: object) -> None:
        """Log a state when it changes; most checks find the same state again."""
        if event != self._last_state:
            self._last_state = event
            getattr(log, level)(event, **fields)

"""One run of kopf, on a thread and a loop of its own.

kopf takes every task of its loop that came after it for its own and cancels it, and ends as a whole
when something fails that it does not know. So nothing of ours lives on its loop, and its end is an
event for :class:`~scheduler.profiles.operator.profile_watch.ProfileWatch`, never for the process:
the setting that would send a SIGKILL is off. It posts no Events, writes no annotations or
finalizers, looks for no peers and sees no kind but ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.process.version import VERSION as BERTH_VERSION
from scheduler.profiles.operator.scheduling_profile import GROUP, PATH, PLURAL, VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    import kopf

    from scheduler.client.credentials import Credentials

_ERROR_BACKOFFS: Final = (0.5, 1.0, 2.0, 4.0)
"""How often kopf itself repeats a request before it ends: the rest is the supervisor's."""

_CONNECT_TIMEOUT_S: Final = 5.0

_HANG_UP_S: Final = 0.05

_TALKATIVE: Final = ("kopf._cogs", "kopf._core", "kopf.activities", "kopf.objects")
"""kopf's loggers: a line for each event, two tracebacks for each error. What matters of it, its end
and why, is told by whoever starts it again."""


class KopfThread:
    """A kopf operator that tells of SchedulingProfiles.

    Parameters
    ----------
    load_credentials
        Called on kopf's loop.
    changed, deleted
        Told of an object, as bytes of JSON, on kopf's loop. Must not wait and must not raise.
    turned
        Called when :attr:`is_up` has changed, and at the end of the run, on kopf's thread.

    Notes
    -----
    *Concurrency*: :meth:`start` once; everything from any thread.
    """

    def __init__(
        self,
        load_credentials: Callable[[], Awaitable[Credentials]],
        changed: Callable[[bytes], None],
        deleted: Callable[[bytes], None],
        turned: Callable[[], None],
    ) -> None:
        self._load_credentials = load_credentials
        self._changed = changed
        self._deleted = deleted
        self._turned = turned
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self._lock = threading.Lock()
        self._is_stopping = False
        self._is_over = False
        self._is_connected = False
        self._operating: asyncio.Task[None] | None = None
        self._sessions: list[aiohttp.ClientSession] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        """kopf's loop, once it runs."""
        self.failure: BaseException | None = None
        """Why it ended, if it was not told to."""

    @property
    def is_alive(self) -> bool:
        """Whether it has been started and has not come to its end."""
        return self._thread.ident is not None and not self._is_over

    @property
    def is_up(self) -> bool:
        """Whether it watches: its last request for our kind was answered."""
        return self._is_connected and self.is_alive

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it to end. Does not wait.

        By cancelling it: told by a flag, kopf waits five seconds for what it has under way.
        """
        with self._lock:
            self._is_stopping = True
            if self.loop is not None and self._operating is not None:
                with contextlib.suppress(RuntimeError):
                    self.loop.call_soon_threadsafe(self._operating.cancel)

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; return whether it has come."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # noqa: BLE001 - whatever ends kopf shall end nothing else
            self.failure = error
        finally:
            self._is_over = True
            self._turned()

    async def _operate(self) -> None:
        # Here and not above: it takes a third of a second, and most never need it.
        import kopf  # noqa: PLC0415

        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with self._lock:
            if self._is_stopping:
                return
            self._operating = asyncio.current_task()
            self.loop = asyncio.get_running_loop()
        try:
            await kopf.operator(
                registry=self._registry(kopf.OperatorRegistry()),
                settings=_settings(kopf.OperatorSettings()),
                standalone=True,
                clusterwide=True,
            )
        finally:
            await self._hang_up()

    async def _hang_up(self) -> None:
        """Close all connections, without the good-bye of TLS: some are in the middle of a watch."""
        for session in self._sessions:
            if session.connector is not None:
                await session.connector.close(abort_ssl=True)
            await session.close()
        # The transports are closed in the next turns of the loop, which is about to end.
        await asyncio.sleep(_HANG_UP_S)

    def _registry(self, registry: kopf.OperatorRegistry) -> kopf.OperatorRegistry:
        import kopf  # noqa: PLC0415 - see _operate

        credentials: list[Credentials] = []

        @kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def log_in(**_: Any) -> kopf.AiohttpSession:
            """Give kopf a session with our credentials; once more after each 401."""
            if credentials:
                await credentials[0].refresh()
            else:
                credentials.append(await self._load_credentials())
            session = self._session(credentials[0])
            self._sessions.append(session)
            return kopf.AiohttpSession(server=credentials[0].base_url, aiohttp_session=session)

        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def tell(event: Any, **_: Any) -> None:
            raw = msgspec.json.encode(event["object"])
            if event["type"] == "DELETED":
                self._deleted(raw)
            else:
                self._changed(raw)

        return registry

    def _session(self, credentials: Credentials) -> aiohttp.ClientSession:
        """Return a session whose every request carries fresh credentials, and is looked at."""
        import aiohttp  # noqa: PLC0415 - see _operate

        async def watch_over(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            is_ours = request.url.path.endswith(PATH)
            try:
                header = await credentials.auth_header()
                if header is not None:
                    request.headers["Authorization"] = header
                request.server_hostname = credentials.tls_server_name
                response = await handler(request)
            except BaseException:
                self._connected(is_connected=False)
                raise
            if is_ours:
                # kopf asks for ever when nobody answers, and tells nobody.
                self._connected(is_connected=response.ok)
            return response

        context = credentials.ssl_context
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if context is None else context),
            headers={"User-Agent": f"berth/{BERTH_VERSION} (kopf)"},
            middlewares=(watch_over,),
            proxy=credentials.proxy,
        )

    def _connected(self, *, is_connected: bool) -> None:
        if is_connected != self._is_connected:
            self._is_connected = is_connected
            self._turned()


def _settings(settings: kopf.OperatorSettings) -> kopf.OperatorSettings:
    settings.process.ultimate_exiting_timeout = None
    settings.peering.standalone = True
    settings.posting.enabled = False
    # What kinds there are is asked before each start, and needs no right to see all of them.
    settings.scanning.disabled = True
    settings.networking.error_backoffs = _ERROR_BACKOFFS
    settings.networking.connect_timeout = _CONNECT_TIMEOUT_S
    settings.watching.connect_timeout = _CONNECT_TIMEOUT_S
    return settings

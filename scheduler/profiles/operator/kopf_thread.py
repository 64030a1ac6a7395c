"""One run of kopf, on a thread and a loop of its own: a list of SchedulingProfiles, then a watch.

    credentials -- discovery -- list -- all of it handled --> up -- watch, again and again
    a request fails or is refused, or kopf lists again -----> over

kopf is left no choice of its own: where it would retry, or list again, the run is over, which is an
event for :class:`~scheduler.profiles.operator.profile_watch.ProfileWatch`, never for the process
(the setting that would send a SIGKILL is off). kopf takes every task of its loop that came after it
for its own and cancels it, so nothing of ours lives on that loop.

kopf writes nothing: it posts no Events, looks for no peers, reads and writes no annotations or
finalizers, and its session refuses every request that is not a GET.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.process.version import VERSION as BERTH_VERSION
from scheduler.profiles.operator.scheduling_profile import GROUP, PATH, PLURAL, VERSION
from scheduler.profiles.operator.shallow_json import shallow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import aiohttp
    import kopf

    from scheduler.client.credentials import Credentials
    from scheduler.profiles.operator.reconciler import ProfileReconciler

SILENCE_S: Final = 30.0
"""A watch that is silent for so long is asked for anew: its connection may be dead."""

_WATCH_S: Final = 25
"""For so long the API server keeps a watch open. Before it ends it, it sends a bookmark, so that a
watch of objects that never change begins at a version that is not old."""

_REQUEST_S: Final = 15.0

_CONNECT_S: Final = 5.0

_HANG_UP_S: Final = 0.05

_LOGGERS: Final = ("kopf._cogs", "kopf._core", "kopf.activities", "kopf.objects")
"""kopf's loggers: a line for each event, two tracebacks for each error. What matters, the end of a
run and its reason, is logged by whoever starts the next one."""


class RunOverError(Exception):
    """Nothing that kopf knows; it ends."""


class KopfThread:
    """A kopf operator that hands SchedulingProfiles to a reconciler.

    Parameters
    ----------
    load_credentials
        Called on kopf's loop.
    reconciler
        Receives each object of the list, each event of the watch, and once, after the last object
        of the list, the UIDs of all objects that there are.
    do
        Calls something on the reconciler's thread, in order; never waits.
    turned
        Called when :attr:`is_up` has changed, and at the end of the run, on kopf's thread.

    Notes
    -----
    *Concurrency*: :meth:`start` once; everything from any thread.
    """

    def __init__(
        self,
        load_credentials: Callable[[], Awaitable[Credentials]],
        reconciler: ProfileReconciler,
        do: Callable[[Callable[[], object]], None],
        turned: Callable[[], None],
    ) -> None:
        self._load_credentials = load_credentials
        self._reconciler = reconciler
        self._do = do
        self._turned = turned
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self._lock = threading.Lock()
        self._is_stopping = False
        self._is_over = False
        self._operating: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._unhandled: set[str] | None = None
        """UIDs of the list that kopf has not called the handler for; None before the list."""
        self._uids: set[str] = set()
        """Of all objects that this run has seen and that were not deleted since."""
        self.is_up = False
        """Whether all of the list was handed over, and no request has failed."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """kopf's loop, once it runs."""
        self.failure: BaseException | None = None
        """Why the run is over, if nobody stopped it."""

    @property
    def is_over(self) -> bool:
        """Whether it has failed or ended; its thread may still be cleaning up."""
        return self._is_over or self.failure is not None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the run; does not wait. The reconciler receives nothing any more.

        kopf is cancelled: a stop flag would let it wait five seconds for what it has under way.
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
            self.failure = self.failure or error
        finally:
            self._is_over = True
            self.is_up = False
            self._turned()

    async def _operate(self) -> None:
        # Here and not above: it takes a third of a second, and most never need it.
        import kopf  # noqa: PLC0415

        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with self._lock:
            if self._is_stopping:
                return
            self._operating = asyncio.current_task()
            self.loop = asyncio.get_running_loop()
        # Of the requests that kopf makes side by side it looks at the first failure alone.
        self.loop.set_exception_handler(lambda *_: None)
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
        if self._session is None:
            return
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        # The transports are closed in the next turns of the loop, which is about to end.
        await asyncio.sleep(_HANG_UP_S)

    def _fail(self, error: BaseException) -> None:
        """End the run, on kopf's loop; a second cancellation would interrupt its cleaning up."""
        if self.failure is None:
            self.failure = error
            self.is_up = False
            self._turned()
            if self._operating is not None:
                self._operating.cancel()

    # --- what kopf calls ----------------------------------------------------------------------

    def _registry(self, registry: kopf.OperatorRegistry) -> kopf.OperatorRegistry:
        import kopf  # noqa: PLC0415 - see _operate

        @kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def log_in(**_: Any) -> kopf.AiohttpSession:
            try:
                credentials = await self._load_credentials()
                self._session = self._make_session(credentials)
            except Exception as error:
                self._fail(error)
                raise
            return kopf.AiohttpSession(server=credentials.base_url, aiohttp_session=self._session)

        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def handle(event: Any, **_: Any) -> None:
            self._handle(event["type"], event["object"])

        return registry

    def _handle(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """Pass an event on; its type is None for an object of the list."""
        if self._is_stopping:
            return
        uid = raw["metadata"]["uid"]
        if kind == "DELETED":
            self._uids.discard(uid)
            self._do(partial(self._reconciler.deleted, raw))
        else:
            self._uids.add(uid)
            self._do(partial(self._reconciler.changed, raw, is_listed=kind is None))
        if self._unhandled:
            self._unhandled.discard(uid)
            self._check_list()

    def _listed(self, data: Mapping[str, Any]) -> None:
        """Take note of what stands in the list, before kopf calls the handler for any of it."""
        self._unhandled = {each["metadata"]["uid"] for each in data["items"]}
        self._check_list()

    def _check_list(self) -> None:
        if not self._unhandled:
            self._do(partial(self._reconciler.listed, frozenset(self._uids)))
            self.is_up = self.failure is None
            self._turned()

    def _make_session(self, credentials: Credentials) -> aiohttp.ClientSession:
        """Return a session that adds fresh credentials, and ends the run when a request fails."""
        import aiohttp  # noqa: PLC0415 - see _operate

        class ShallowResponse(aiohttp.ClientResponse):
            """Parses a list whatever its objects are.

            An event that cannot be parsed ends the run, and the list of the next one has it.
            """

            async def json(self, **_: Any) -> Any:
                return msgspec.json.decode(shallow(await self.read()))

        async def watch_over(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            is_list = request.url.path.endswith(PATH) and "watch" not in request.url.query
            try:
                if self.failure is not None:
                    raise RunOverError("the run is over")
                if request.method != "GET":
                    raise RunOverError(f"kopf may not {request.method}")
                if is_list and self._unhandled is not None:
                    # After "410 Gone", or when the list was cut off.
                    raise RunOverError("kopf wants to list again")
                header = await credentials.auth_header()
                if header is not None:
                    request.headers["Authorization"] = header
                request.server_hostname = credentials.tls_server_name
                response = await handler(request)
                response.raise_for_status()
                if is_list:
                    self._listed(await response.json())
            except BaseException as error:
                self._fail(error)
                # kopf passes over a failing connection, and over some cancellations, and goes on.
                raise RunOverError("a request has failed") from error
            return response

        context = credentials.ssl_context
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if context is None else context),
            headers={"User-Agent": f"berth/{BERTH_VERSION} (kopf)"},
            middlewares=(watch_over,),
            response_class=ShallowResponse,
            proxy=credentials.proxy,
        )


def _settings(settings: kopf.OperatorSettings) -> kopf.OperatorSettings:
    import kopf  # noqa: PLC0415 - see _operate

    class NoDiffBase(kopf.DiffBaseStorage):
        """Keeps nothing in objects, and reads nothing in them.

        kopf's own skips an object for minutes whose annotation it cannot parse.
        """

        def build(self, **_: Any) -> kopf.BodyEssence:
            return kopf.BodyEssence()

        def fetch(self, **_: Any) -> None:
            return None

        def store(self, **_: Any) -> None:
            raise NotImplementedError

    settings.process.ultimate_exiting_timeout = None
    settings.peering.standalone = True
    settings.posting.enabled = False
    # What kinds there are is asked before each start, and needs no right to see all of them.
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffBase()
    # kopf removes its own finalizer wherever it finds it. This is the name of none.
    settings.persistence.finalizer = ""
    settings.networking.error_backoffs = ()
    settings.networking.request_timeout = _REQUEST_S
    settings.networking.connect_timeout = _CONNECT_S
    settings.watching.connect_timeout = _CONNECT_S
    settings.watching.server_timeout = _WATCH_S
    settings.watching.inactivity_timeout = SILENCE_S
    return settings

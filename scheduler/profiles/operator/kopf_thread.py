"""One run of kopf, on its own thread and event loop: a list of SchedulingProfiles, then watches.

    credentials -- discovery -- list -- all objects handled --> up -- successive watches
    a request fails or is refused, or kopf lists again -------> over

kopf never retries: where it would retry or list again, the run is over.
:class:`~scheduler.profiles.operator.profile_watch.ProfileWatch` handles the end of a run, and the
process continues (the setting that would send a SIGKILL is off). kopf regards every task of its
loop that started after it as its own and cancels it, so Berth runs nothing else on that loop.

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
"""A watch without an event for this time is restarted: its connection may be dead."""

_WATCH_S: Final = 25
"""The time for which the API server keeps a watch open. It sends a bookmark before it ends the
watch, so that the next watch of objects that never change begins at a recent version."""

_REQUEST_S: Final = 15.0

_CONNECT_S: Final = 5.0

_CLOSE_S: Final = 0.05

_LOGGERS: Final = ("kopf._cogs", "kopf._core", "kopf.activities", "kopf.objects")
"""kopf's loggers, which write a line for each event and two tracebacks for each error. The end of a
run and its reason are logged by ``ProfileWatch``."""


class RunOverError(Exception):
    """A request is refused because the run is over; kopf does not handle this type, and ends."""


class KopfThread:
    """A kopf operator that passes SchedulingProfiles to a reconciler.

    Parameters
    ----------
    load_credentials
        Loads credentials; called on kopf's loop.
    reconciler
        Receives each object of the list, each event of the watch, and once, after the last object
        of the list, the UIDs of all existing objects.
    do
        Queues a call for the reconciler's thread, in order; never blocks.
    turned
        Called when :attr:`is_up` has changed, and at the end of the run, on kopf's thread.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`start` may be called once.
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
        """UIDs in the list for which kopf has not called the handler yet; None before the list."""
        self._uids: set[str] = set()
        """UIDs of all objects that this run has seen and that were not deleted since."""
        self.is_up = False
        """Whether the whole list was delivered, and no request has failed."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """kopf's loop, once it runs."""
        self.failure: BaseException | None = None
        """Why the run is over; None if it runs or was stopped."""

    @property
    def is_over(self) -> bool:
        """Whether the run has failed or ended; its thread may still be cleaning up."""
        return self._is_over or self.failure is not None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the run without waiting. The reconciler receives nothing from it after this call.

        kopf is cancelled, because with a stop flag it would wait five seconds for its tasks.
        """
        with self._lock:
            self._is_stopping = True
            if self.loop is not None and self._operating is not None:
                with contextlib.suppress(RuntimeError):
                    self.loop.call_soon_threadsafe(self._operating.cancel)

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the thread; return whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # noqa: BLE001 - an error in kopf must not end anything else
            self.failure = self.failure or error
        finally:
            self._is_over = True
            self.is_up = False
            self._turned()

    async def _operate(self) -> None:
        # Imported here: it takes a third of a second, and most processes do not need kopf.
        import kopf  # noqa: PLC0415

        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with self._lock:
            if self._is_stopping:
                return
            self._operating = asyncio.current_task()
            self.loop = asyncio.get_running_loop()
        # kopf handles only the first failure of its parallel requests; this drops the others.
        self.loop.set_exception_handler(lambda *_: None)
        try:
            await kopf.operator(
                registry=self._registry(kopf.OperatorRegistry()),
                settings=_settings(kopf.OperatorSettings()),
                standalone=True,
                clusterwide=True,
                # kopf would look up the user's name, which a container's user need not have.
                identity="berth",  # type: ignore[arg-type]
            )
        finally:
            await self._close_session()

    async def _close_session(self) -> None:
        """Close all connections without a TLS shutdown: some are in the middle of a watch."""
        if self._session is None:
            return
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        # The transports are closed in the next iterations of the loop, which is about to end.
        await asyncio.sleep(_CLOSE_S)

    def _fail(self, error: BaseException) -> None:
        """End the run, on kopf's loop; only once, as a second cancellation interrupts cleanup."""
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
        """Pass an event to the reconciler; its type is None for an object of the list."""
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
        """Store the UIDs in the list, before kopf calls the handler for any of its objects."""
        self._unhandled = {each["metadata"]["uid"] for each in data["items"]}
        self._check_list()

    def _check_list(self) -> None:
        if not self._unhandled:
            self._do(partial(self._reconciler.listed, frozenset(self._uids)))
            self.is_up = self.failure is None
            self._turned()

    def _make_session(self, credentials: Credentials) -> aiohttp.ClientSession:
        """Return a session that adds current credentials, and ends the run if a request fails."""
        import aiohttp  # noqa: PLC0415 - see _operate

        class ShallowResponse(aiohttp.ClientResponse):
            """Parses a list even if its objects are nested too deeply.

            An event that cannot be parsed ends the run, and the list of the next run contains it.
            """

            async def json(self, **_: Any) -> Any:
                return msgspec.json.decode(shallow(await self.read()))

        async def check_request(
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
                # kopf ignores failing connections and some cancellations, and continues.
                raise RunOverError("a request has failed") from error
            return response

        context = credentials.ssl_context
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if context is None else context),
            headers={"User-Agent": f"berth/{BERTH_VERSION} (kopf)"},
            middlewares=(check_request,),
            response_class=ShallowResponse,
            proxy=credentials.proxy,
        )


def _settings(settings: kopf.OperatorSettings) -> kopf.OperatorSettings:
    import kopf  # noqa: PLC0415 - see _operate

    class NoDiffBase(kopf.DiffBaseStorage):
        """Stores nothing in objects, and reads nothing from them.

        kopf's own storage skips an object for minutes if it cannot parse the object's annotation.
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
    # ProfileWatch checks that the kind is served before each start; scanning all kinds would need
    # permission to read all of them.
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffBase()
    # kopf removes its own finalizer from objects. No finalizer has an empty name.
    settings.persistence.finalizer = ""
    settings.networking.error_backoffs = ()
    settings.networking.request_timeout = _REQUEST_S
    settings.networking.connect_timeout = _CONNECT_S
    settings.watching.connect_timeout = _CONNECT_S
    settings.watching.server_timeout = _WATCH_S
    settings.watching.inactivity_timeout = SILENCE_S
    return settings

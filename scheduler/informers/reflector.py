"""Keep one resource up to date: list it once, then watch it, and recover from every failure.

:mod:`scheduler.informers.reflector_states` defines the steps; this module runs them. It ends only
when it is cancelled. Whatever the API server does, the store keeps the last known state, and
the version that is asked for never decreases, with one exception that is logged as an error: when
a consistent read has shown several times in a row that the server's own history is shorter than
what was seen (etcd was restored from a backup), the server is believed. What one resource has shown
then holds for all others: each is listed anew and believed, because a watch from a version of the
old history may go on in the new one without a word.

*Concurrency*: loop-confined, but for the properties, which any thread may read.

*Source*: client-go 1.36, tools/cache/reflector.go, for what is asked for and when.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic

import msgspec

from cache.resource_versions import INCOMPARABLE, parse_resource_version
from scheduler.client.errors import ApiError
from scheduler.client.paths import in_namespace
from scheduler.informers.backoff import Backoff
from scheduler.informers.listing import Listing, PageReader, read_objects
from scheduler.informers.metadata_list import metadata_pages
from scheduler.informers.object_reader import ObjectReader
from scheduler.informers.reflector_log import Diary
from scheduler.informers.reflector_states import (
    Delay,
    Ending,
    Outcome,
    ReflectorMachine,
    State,
    ending_of,
)
from scheduler.informers.reflector_statistics import ReflectorStatistics
from scheduler.informers.store import LOOKED_AT, Store
from scheduler.informers.watch_events import (
    BookmarkEvent,
    ErrorEvent,
    EventType,
    ObjectEvent,
    ObjectKind,
    T,
    UnreadableEvent,
    WatchEvent,
)
from scheduler.informers.watch_stream import WatchDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from scheduler.client.http1 import RawResponse
    from scheduler.client.transport import Transport
    from scheduler.informers.metadata_list import MetadataPage
    from scheduler.informers.reflector_options import ReflectorOptions
    from scheduler.informers.store import Delta, DeltaKind

_WATCH_TIMEOUT_S: Final = (300.0, 600.0)
"""The server ends a watch after a random time between these (client-go's minWatchTimeout, twice
that), so that watches spread over API servers anew."""

_INITIAL_EVENTS_TIMEOUT_S: Final = 300.0
"""A streaming list that takes longer will never end: 150 000 pods take about 10 s."""

_PAGE_TIMEOUT_S: Final = 60.0

# Differs: client-go waits up to 60 s between attempts. A scheduler that hears nothing binds
# nothing, it has about ten watches, and it has promised to be back 30 s after the server is.
_RETRY_BACKOFF_S: Final = (0.25, 8.0)
_LIST_BACKOFF_S: Final = (0.8, 15.0)

_GOOD_WATCH_S: Final = 10.0
"""A watch that ends sooner, and brings nothing, is not opened again at once."""

_STRETCH_BYTES: Final = 256 << 10
"""Of a chunk, decoded before anybody else may run: about 80 pods, a millisecond and the handlers'
time."""

_STRETCH_OBJECTS: Final = 100
"""Of a page, decoded before anybody else may run."""

_SILENT_WATCHES: Final = 2
"""Watches in a row that were broken off in silence. A server that was restored from a backup, and
has not got as far as the version yet, sends nothing, not even bookmarks, until it has; and then it
goes on as if there were no gap. One such watch is a dead connection.

*Source*: k8s.io/apiserver 1.36, pkg/storage/cacher/cache_watcher.go, process."""

_OLD_BOOKMARKS: Final = 2
"""Bookmarks in a row, a minute apart, from before what was seen: this server is far behind."""


class Reflector(ABC, Generic[T]):
    """Keep a store equal to what the API server has of one resource.

    Whoever inherits this hands on what changes: see :meth:`_deliver`.

    Parameters
    ----------
    transport
        How to reach the API server.
    kind
        What to list and watch.
    transform
        See :class:`~scheduler.informers.object_reader.ObjectReader`.
    options
        See there.
    on_restore
        Called when this reflector has found out that etcd was restored.
    """

    def __init__(
        self,
        transport: Transport,
        kind: ObjectKind[T],
        *,
        on_restore: Callable[[], None] | None = None,
        transform: Callable[[T], T] | None = None,
        options: ReflectorOptions,
    ) -> None:
        self._transport = transport
        self.kind = kind
        self._store: Store[T] = Store()
        self._selected = [("labelSelector", kind.label_selector)] if kind.label_selector else []
        self._reader = ObjectReader(kind, transform)
        self._pages = PageReader[T](self._reader.struct)
        self._read_timeout_s = options.read_timeout_s
        self._page_size = options.page_size
        self._clock = options.clock
        self._sleep = options.sleep
        self._rng = options.rng
        self._retry_backoff = Backoff(*_RETRY_BACKOFF_S, self._rng)
        self._list_backoff = Backoff(*_LIST_BACKOFF_S, self._rng)
        self._diary = Diary(kind.name)
        self._statistics = ReflectorStatistics()
        self._machine = ReflectorMachine(lists_in_pages=kind.name in options.paged)
        self._version = ""  # the last version seen, as the server wrote it
        self._seen = INCOMPARABLE  # the same as a number
        self._old_bookmarks = 0  # in a row
        self._silent_watches = 0  # in a row
        self._lossy = False  # a deletion may have been missed on this watch
        self._listing: Listing[T] | None = None  # what a streaming list has brought so far
        self._opened_at = 0.0  # when the present stream was opened
        self._on_restore = on_restore
        self._restore_expected = False
        self._scope: asyncio.Timeout | None = None  # of the present attempt
        self._synced = asyncio.Event()
        self._last_byte_at: float | None = None

    @abstractmethod
    def _deliver(self, deltas: Sequence[Delta[T]]) -> None:
        """Hand on the deltas of a chunk, in order, right after the store has them.

        Must not raise.
        """

    # --- what can be asked --------------------------------------------------------------------

    @property
    def has_synced(self) -> bool:
        """Whether a whole list has been taken in and delivered; stays true."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """The last version seen; empty before the first list."""
        return self._version

    def staleness_s(self, now: float) -> float:
        """Return seconds since any bytes of a watch, or a page of a list, have come.

        Bookmarks count. Infinite before the first time.
        """
        return float("inf") if self._last_byte_at is None else max(0.0, now - self._last_byte_at)

    async def wait_synced(self) -> None:
        """Return once `has_synced` is true."""
        await self._synced.wait()

    # --- what a watch has not told ------------------------------------------------------------

    def metadata_pages(self) -> AsyncIterator[MetadataPage]:
        """Yield the metadata of all that the server has, in pages.

        Raises
        ------
        ApiError
            A page cannot be had.
        """
        return metadata_pages(self._transport, self.kind.path, selected=self._selected)

    async def reread(self, namespace: str, name: str, uid: str) -> list[DeltaKind]:
        """Ask for one object, and take in what the watch should have told of it.

        The watch goes on meanwhile: what it reports as gone, or newer, is not undone by an answer
        that comes later and is older.

        Returns
        -------
        What has changed in the store, and has been delivered; nothing when it was right, or when
        the object cannot be read: what was known of it stays.

        Raises
        ------
        ApiError
            There is no answer, or one from before what the watch had shown when it was asked for.
        """
        seen = self._seen
        path = in_namespace(self.kind.path, namespace)
        query = [*self._selected, ("fieldSelector", f"metadata.name={name}")]
        with self._store.removals() as removed:
            response = await self._transport.request("GET", path, query=query)
        listing = Listing(self._store)
        try:
            page = self._pages.read(response.body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ApiError(None, "Unreadable", f"{path}: not a list: {error}") from error
        self._read_into(listing, page.objects)
        version = parse_resource_version(page.resource_version)
        if INCOMPARABLE < version < seen:
            why = f"{path}: a list of {version}, older than {seen}"
            raise ApiError(None, "Stale", why)
        deltas: list[Delta[T]] = []
        there = set(listing.present)
        for obj in listing.objects:
            there.add(obj.metadata.uid)
            if obj.metadata.uid not in removed:
                self._store.apply(EventType.MODIFIED, obj, deltas)
        if uid not in there and not self._is_known_since(uid, version):
            self._store.discard(uid, deltas)
        if deltas:
            self._deliver(deltas)
        return [delta.kind for delta in deltas]

    def _is_known_since(self, uid: str, version: int) -> bool:
        """Tell whether the store has a state of an object from after a version."""
        known = self._store.get_by_uid(uid)
        if known is None or version == INCOMPARABLE:
            return False
        return parse_resource_version(known.metadata.resource_version) > version

    # --- the loop -----------------------------------------------------------------------------

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            delay_s = self._step(await self._attempt())
            if delay_s > 0:
                await self._sleep(delay_s)

    def expect_restore(self) -> None:
        """Break off what is under way, list anew, and believe the list however old it is.

        For what another resource has shown: etcd was restored.
        """
        self._restore_expected = True
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _attempt(self) -> Ending:
        try:
            return await self._list_or_watch()
        except ApiError as error:
            return ending_of(error.status, error.reason, error.message, error.retry_after_s)
        except Exception as error:  # noqa: BLE001 - see below
            # A mistake of ours must not leave the scheduler with a view that never changes again.
            self._diary.mistake(self._machine.state)
            self._lossy = True
            return Ending(Outcome.FAILED, f"{type(error).__name__}: {error}")

    async def _list_or_watch(self) -> Ending:
        """Do what the state says, until :meth:`expect_restore` breaks it off."""
        if not self._restore_expected:
            scope = asyncio.timeout(None)
            try:
                async with scope:
                    self._scope = scope
                    if self._machine.state is State.PAGED_LIST:
                        return await self._list_pages()
                    return await self._follow()
            except TimeoutError:
                if not scope.expired():
                    raise
            finally:
                self._scope = None
        self._restore_expected = False
        return Ending(Outcome.RESTORED, "another resource shows that etcd was restored")

    def _step(self, ending: Ending) -> float:
        """Go where `ending` leads; return seconds to wait before going on."""
        counts, state = self._statistics, self._machine.state
        counts.expired += ending.outcome is Outcome.EXPIRED
        counts.rejected_lists += ending.outcome is Outcome.REWOUND and state is not State.WATCHING
        if ending.problem:
            counts.failures += 1
            self._diary.problem(ending, state, len(self._store), self._version)
        delay = self._machine.step(ending.outcome)
        if delay is Delay.LIST:
            return self._list_backoff.delay_s(self._clock(), ending.retry_after_s)
        if delay is Delay.RETRY:
            return self._retry_backoff.delay_s(self._clock(), ending.retry_after_s)
        return 0.0

    def _recovered(self) -> None:
        """Take note that something new has come."""
        self._retry_backoff.reset()
        self._diary.recovered(self._version)

    # --- streams ------------------------------------------------------------------------------

    async def _follow(self) -> Ending:
        """Open a watch, with or without a list at its beginning, and take in all that comes."""
        streaming_list = self._machine.state is State.STREAMING_LIST
        self._listing = self._new_listing() if streaming_list else None
        self._statistics.reconnects += not streaming_list
        decoder = WatchDecoder(self._reader)
        self._opened_at, opened_with = self._clock(), self._seen
        opened, silent, problem = False, True, ""
        try:
            async with self._transport.stream(
                self.kind.path, query=self._stream_query(), read_timeout_s=self._read_timeout_s
            ) as stream:
                opened = True
                self._last_byte_at = self._clock()
                async for chunk in stream.chunks():
                    self._last_byte_at, silent = self._clock(), False
                    for start in range(0, len(chunk), _STRETCH_BYTES):
                        if start:
                            await asyncio.sleep(0)  # the loop has binds to send meanwhile
                        stretch = chunk[start : start + _STRETCH_BYTES]
                        ending = await self._absorb(decoder.feed(stretch))
                        if ending is not None:
                            return ending
        except ApiError as error:
            if not opened:
                raise
            problem = f"{error.reason}: {error.message}"
            silent &= error.reason == "Timeout"
            self._silent_watches = self._silent_watches + 1 if silent else 0
        if self._listing is not None:
            return Ending(Outcome.ENDED, problem or "a streaming list ended before it was complete")
        if self._silent_watches >= _SILENT_WATCHES:
            self._silent_watches = 0
            return Ending(Outcome.REWOUND, f"watches bring nothing, not even bookmarks: {problem}")
        if self._seen == opened_with and self._clock() - self._opened_at < _GOOD_WATCH_S:
            return Ending(Outcome.FAILED, problem or "a watch ended before anything new came")
        return Ending(Outcome.LOSSY if self._lossy else Outcome.ENDED, problem)

    def _stream_query(self) -> list[tuple[str, str]]:
        query = [
            *self._selected,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(int(self._rng.uniform(*_WATCH_TIMEOUT_S)))),
        ]
        if self._listing is None:
            return [*query, ("resourceVersion", self._version)]
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        if self._version and not self._machine.most_recent:
            query.append(("resourceVersion", self._version))
        return query

    async def _absorb(self, events: Sequence[WatchEvent[T]]) -> Ending | None:
        """Take in the events of one chunk; return how the stream ends if they end it."""
        listing = self._listing
        if listing is None:
            return self._apply(events)
        for position, event in enumerate(events):
            if isinstance(event, ErrorEvent):
                return self._ended_by(event)
            if isinstance(event, UnreadableEvent):
                self._count_unreadable(event)
            listing.take(event)
            if listing.resource_version:
                self._statistics.bookmarks += 1
                ending = await self._take_in(listing)
                if ending.outcome is not Outcome.SYNCED:
                    return ending
                self._step(ending)
                self._listing = None
                return self._apply(events[position + 1 :])
        if self._clock() - self._opened_at > _INITIAL_EVENTS_TIMEOUT_S:
            return Ending(Outcome.UNSUPPORTED, "a streaming list does not end")
        return None

    def _apply(self, events: Sequence[WatchEvent[T]]) -> Ending | None:
        """Take in events of a watch, deliver what they change; return the ending among them.

        *Cost*: 2-3 us for an event, besides the handlers. With HTTP and decoding an event about a
        pod of 3.2 KB costs 15 us.
        """
        ending: Ending | None = None
        deltas: list[Delta[T]] = []
        counts, apply, seen_before = self._statistics, self._store.apply, self._seen
        try:
            for event in events:
                if isinstance(event, ObjectEvent):
                    counts.events += 1
                    if self._advance(event.object.metadata.resource_version):
                        apply(event.type, event.object, deltas)
                    else:
                        counts.stale_events += 1
                elif isinstance(event, BookmarkEvent):
                    counts.bookmarks += 1
                    ending = self._take_bookmark(event)
                elif isinstance(event, UnreadableEvent):
                    self._take_unreadable(event, deltas)
                else:
                    ending = self._ended_by(event)
                if ending is not None:
                    break
        finally:
            if deltas:
                self._deliver(deltas)  # what the store has is told, whatever happens
        if self._seen != seen_before:
            self._recovered()
        return ending

    def _advance(self, version: str) -> bool:
        """Note that `version` has been seen; return False when it is not new.

        A watch sends changes in the order of their versions, each once, so whatever is not newer
        has been taken in before: without this a repeated ADDED would bring back the dead.
        """
        number = parse_resource_version(version)
        if number == INCOMPARABLE:
            return True
        if number <= self._seen:
            return False
        self._version, self._seen = version, number
        return True

    def _take_bookmark(self, bookmark: BookmarkEvent) -> Ending | None:
        if self._advance(bookmark.resource_version) or bookmark.resource_version == self._version:
            self._old_bookmarks = 0
            return None
        self._old_bookmarks += 1
        if self._old_bookmarks < _OLD_BOOKMARKS:
            return None
        self._old_bookmarks = 0
        problem = f"the server is at {bookmark.resource_version}, behind {self._version}"
        return Ending(Outcome.REWOUND, problem)

    def _take_unreadable(self, event: UnreadableEvent, deltas: list[Delta[T]]) -> None:
        """Do with a line that costs its object what can be done: the dead go all the same."""
        self._count_unreadable(event)
        identity = event.identity
        if identity is None:
            # It may have been a deletion, and no watch repeats it: list again when this one ends.
            self._lossy |= event.type in (None, EventType.DELETED)
        elif not self._advance(identity.resource_version):
            self._statistics.stale_events += 1
        elif event.type is EventType.DELETED:
            self._store.discard(identity.uid, deltas)
        else:
            namesake = self._store.get(identity.namespace, identity.name)
            if namesake is not None and namesake.metadata.uid != identity.uid:
                self._store.discard(namesake.metadata.uid, deltas)

    def _ended_by(self, event: ErrorEvent) -> Ending:
        ending = ending_of(event.code, event.reason, event.message, event.retry_after_s)
        if self._listing is not None and ending.outcome is Outcome.FAILED and event.code != 429:
            # Servers that cannot stream a list from their storage say so in this way.
            return ending._replace(outcome=Outcome.ENDED)
        return ending

    def _count_unreadable(self, event: UnreadableEvent) -> None:
        self._statistics.unreadable += 1
        self._diary.unreadable(event)

    # --- lists --------------------------------------------------------------------------------

    def _new_listing(self) -> Listing[T]:
        return Listing(self._store, restored=self._machine.believes_rewind)

    async def _list_pages(self) -> Ending:
        """List in pages and take the list in."""
        listing = self._new_listing()
        query = [*self._selected, ("limit", str(self._page_size))]
        # Differs: client-go begins with resourceVersion=0, which API servers answer from their
        # cache, as stale as that may be, and whole, whatever the limit. Only a read of the most
        # recent state comes in pages, so only that bounds the memory of both sides.
        freshness = []
        if self._version and not self._machine.most_recent:
            freshness = [
                ("resourceVersion", self._version),
                ("resourceVersionMatch", "NotOlderThan"),
            ]
        # Taken in at once, while the server makes the next page: nobody relies on the store yet.
        is_first = not self._synced.is_set() and not self._machine.believes_rewind
        request = asyncio.ensure_future(self._page(query + freshness))
        try:
            while True:
                page = self._pages.read((await request).body)
                self._last_byte_at = self._clock()
                if page.token:
                    # The server makes the next page while this one is decoded.
                    request = asyncio.ensure_future(self._page([*query, ("continue", page.token)]))
                for start in range(0, len(page.objects), _STRETCH_OBJECTS):
                    await asyncio.sleep(0)  # the loop has binds to send meanwhile
                    stretch = page.objects[start : start + _STRETCH_OBJECTS]
                    objects = self._read_into(listing, stretch)
                    if is_first and (deltas := self._store.added(objects)):
                        self._deliver(deltas)
                if not page.token:
                    break
        finally:
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
        listing.resource_version = page.resource_version
        if not listing.resource_version:
            return Ending(Outcome.FAILED, "a list without a resourceVersion")
        ending = await self._take_in(listing)
        self._statistics.paged_lists += ending.outcome is Outcome.SYNCED
        return ending

    def _read_into(self, listing: Listing[T], objects: Sequence[T | msgspec.Raw]) -> list[T]:
        """Have a listing take in objects of a page; return those that can be read."""
        found = []
        for event in read_objects(objects, self._reader):
            listing.take(event)
            if isinstance(event, UnreadableEvent):
                self._count_unreadable(event)
            else:
                found.append(event.object)
        return found

    async def _page(self, query: Sequence[tuple[str, str]]) -> RawResponse:
        try:
            return await self._transport.request(
                "GET", self.kind.path, query=query, timeout_s=_PAGE_TIMEOUT_S
            )
        except ApiError as error:
            if error.reason == "ResponseTooLarge":
                self._page_size = max(1, self._page_size // 8)
            raise

    async def _take_in(self, listing: Listing[T]) -> Ending:
        """Make the store equal to a complete list, unless the list is older than what was seen."""
        version = parse_resource_version(listing.resource_version)
        told = self._machine.is_restored
        if not told and await self._is_rewritten(listing, version):
            if self._on_restore is not None:
                self._on_restore()
            return Ending(Outcome.RESTORED, f"a list of {version} has objects from before theirs")
        rewind = told or INCOMPARABLE < version < self._seen
        if rewind:
            problem = f"a list of {listing.resource_version}, older than {self._version}"
            if not self._machine.believes_rewind:
                return Ending(Outcome.REWOUND, problem)
            self._diary.history_went_back(listing.resource_version, self._version)
            self._statistics.rewinds += 1
            if self._on_restore is not None and not told:
                self._on_restore()
        batches = self._store.replace_in_batches(
            listing.objects, present=listing.present, rewind=rewind
        )
        for deltas in batches:
            if deltas:
                self._deliver(deltas)
            await asyncio.sleep(0)  # the loop has binds to send meanwhile
        self._version, self._seen = listing.resource_version, version
        self._old_bookmarks, self._lossy = 0, False
        self._statistics.lists += 1
        self._recovered()
        self._synced.set()
        return Ending(Outcome.SYNCED)

    async def _is_rewritten(self, listing: Listing[T], version: int) -> bool:
        """Tell whether a list comes from another history than what the store has.

        An object cannot be older in a list than it was at a version that the list is not older
        than: etcd was restored, and has got as far again as it was.
        """
        for number, obj in enumerate(listing.objects, 1):
            if not number % LOOKED_AT:
                await asyncio.sleep(0)  # the loop has binds to send meanwhile
            known = self._store.get_by_uid(obj.metadata.uid)
            if known is None or known is obj:
                continue
            seen = parse_resource_version(known.metadata.resource_version)
            if (
                INCOMPARABLE
                < parse_resource_version(obj.metadata.resource_version)
                < seen
                <= version
            ):
                return True
        return False

"""Count what happened in a reflector and its handlers."""

from __future__ import annotations

from cache.value import MutableValue


class ReflectorStatistics(MutableValue):
    """What a reflector has been through since its start; all are counts.

    Attributes
    ----------
    lists
        Lists taken in, the first one included.
    paged_lists
        Of these, the ones that came in pages.
    reconnects
        Watches resumed from the last version.
    events
        Watch events about objects, stale ones included.
    stale_events
        Events that were not newer than what had been seen, and were dropped.
    bookmarks
        Bookmarks, the one at the end of a streaming list included.
    unreadable
        Lines and list items that could not be decoded; each cost one object.
    expired
        410, in whatever form.
    rejected_lists
        Lists that were older than what had been seen.
    rewinds
        Lists that were believed although they were older.
    failures
        Requests and streams that did not end well, for whatever reason; 410 and rejected lists
        included, the ends that the server gives to every watch not.
    deltas
        Delivered to each handler.
    handler_failures
        Exceptions that handlers raised.
    """

    lists: int = 0
    paged_lists: int = 0
    reconnects: int = 0
    events: int = 0
    stale_events: int = 0
    bookmarks: int = 0
    unreadable: int = 0
    expired: int = 0
    rejected_lists: int = 0
    rewinds: int = 0
    failures: int = 0
    deltas: int = 0
    handler_failures: int = 0

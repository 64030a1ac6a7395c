"""Berth without what keeps its stores and its cache equal to the cluster."""

from __future__ import annotations

from itertools import count
from typing import Any
from unittest.mock import patch

from msgspec.json import encode

from cache import scheduler_cache
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from scheduler.client.errors import ApiError
from scheduler.client.http1 import Headers, RawResponse
from scheduler.client.stream import Stream
from scheduler.event_handlers import pods_and_nodes
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.informers import reflector
from scheduler.informers.backoff import Backoff
from scheduler.informers.listing import read_page
from scheduler.informers.reflector import Reflector
from scheduler.informers.reflector_states import Outcome, ReflectorMachine
from scheduler.informers.store import Store
from tests.storm.mutations.registry import mutation, variant

# --- watches ------------------------------------------------------------------------------------


@mutation(Reflector, "_advance", theme="history")
def _repeated_events_count(real: Any) -> Any:
    """the look whether an event is newer than what the watch has told"""

    def advance(self: Any, version: str) -> bool:
        real(self, version)
        return True

    return advance


@mutation(ReflectorMachine, "believes_rewind", theme="history")
def _old_lists_are_believed(real: Any) -> Any:
    """the refusal of a list that is older than what was seen"""
    return property(lambda self: True)


@mutation(Stream, "_check_silence", theme="losses")
def _silence_is_waited_out(real: Any) -> Any:
    """the end of a watch that brings nothing for 75 seconds"""
    return lambda self: None


@mutation(reflector, "ending_of", theme="history")
def _expired_watches_go_on(real: Any) -> Any:
    """the list after a 410, be it a status or an event"""

    def ending_of(*args: Any) -> Any:
        ending = real(*args)
        if ending.outcome is Outcome.EXPIRED:
            return ending._replace(outcome=Outcome.FAILED)
        return ending

    return ending_of


@mutation(Reflector, "_take_bookmark", theme="losses")
def _bookmarks_say_nothing(real: Any) -> Any:
    """the version of a bookmark"""
    return lambda self, bookmark: None


@mutation(Backoff, "delay_s", theme="refusals")
def _lists_are_repeated_at_once(real: Any) -> Any:
    """the pause before a list or a watch that has failed is tried again"""
    return lambda self, now, retry_after_s=None: 0.0


@mutation(Store, "replace_in_batches", theme="history")
def _lists_take_nothing_away(real: Any) -> Any:
    """the removal of what a list does not have any more"""

    def replace_in_batches(self: Any, *args: Any, **more: Any) -> Any:
        with patch.object(self, "discard", lambda uid, deltas: None):
            yield from real(self, *args, **more)

    return replace_in_batches


@mutation(Store, "_add", theme="names")
def _namesakes_stay(real: Any) -> Any:
    """the end of an object when another one has its name"""

    def add(self: Any, obj: Any, deltas: Any) -> None:
        with patch.object(self, "discard", lambda uid, deltas: None):
            real(self, obj, deltas)

    return add


@mutation(Reflector, "_page", extra="pages")
def _lists_end_before_a_page_that_fails(real: Any) -> Any:
    """the end of a list in pages when one of them fails"""
    versions: dict[Any, str] = {}

    async def page(self: Any, query: Any) -> Any:
        try:
            answer = await real(self, query)
        except ApiError:
            if "continue" not in dict(query):
                raise
            last = {"metadata": {"resourceVersion": versions[self]}}
            return RawResponse(200, Headers(b""), encode(last), reusable=True)
        versions[self] = read_page(answer.body).resource_version
        return answer

    return page


variant(
    "store-knows-objects-by-name",
    "the UID in the differences that a store tells of",
    extra="incidents",
)
variant(
    "nobody-looks-for-lost-events", "the comparison of the stores with the API server", "losses"
)

# --- pods and nodes -----------------------------------------------------------------------------


@mutation(SchedulerCache, "remove_uid")
def _pods_that_left_stay(real: Any) -> Any:
    """the removal of a pod that is gone"""
    return lambda self, uid: None


@mutation(SchedulerCache, "remove_node")
def _nodes_that_left_stay(real: Any) -> Any:
    """the removal of a node that is gone"""
    return lambda self, name: True


@mutation(pods_and_nodes, "is_terminal")
def _ended_pods_keep_their_room(real: Any) -> Any:
    """the look whether a pod has ended"""
    return lambda pod: False


@mutation(SchedulerCache, "_replace_pod_locked", theme="answers")
def _pods_stay_where_they_were_assumed(real: Any) -> Any:
    """the move of a pod that somebody else has bound to another node"""

    def replace(self: Any, info: Any, node_name: str) -> None:
        real(self, info, self._pods[info.uid].node_name)

    return replace


@mutation(EventHandlers, "_malformed")
def _unreadable_pods_end_the_watch(real: Any) -> Any:
    """the handling of a pod that cannot be read, apart from all others"""

    def malformed(self: Any, resource: str, obj: Any, error: Any, note: str) -> None:
        raise error

    return malformed


variant("cache-knows-pods-by-name", "the UID as the key of the cache", "names")
variant(
    "pods-of-unknown-nodes-are-passed-over", "the imaginary node of a pod that comes first", "nodes"
)
variant(
    "pods-are-forgotten-with-their-node", "the imaginary node of pods that stay longer", "nodes"
)
variant("only-what-is-assumed-is-given-back", "the room of a confirmed pod that is gone", "losses")
variant(
    "bound-elsewhere-is-no-news",
    "the event of the room where a pod was assumed",
    extra="incidents",
)

# --- snapshots ----------------------------------------------------------------------------------


@mutation(SchedulerCache, "_touch_locked", theme="nodes")
def _generations_begin_anew_with_each_node(real: Any) -> Any:
    """the one counter of generations for all nodes"""

    def touch(self: Any, name: str) -> None:
        since = count(self._nodes[name].info.generation + 1)
        with patch.object(scheduler_cache, "_generations", since):
            real(self, name)

    return touch


@mutation(Snapshot, "remove", theme="nodes")
def _snapshots_keep_nodes_that_left(real: Any) -> Any:
    """the removal of a node from the snapshot"""
    return lambda self, name: None

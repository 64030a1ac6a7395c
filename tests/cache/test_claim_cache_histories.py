"""Histories of claims: what is shown and what is in use follow a simple model, whoever comes first.

The API server of the model keeps the versions of each claim. The watch brings them in order, late;
writes return the newest one, and their answers come late as well, or never.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cache.allocated_devices import NO_USE, AllocatedDevices, claim_user, device_use
from cache.claim_cache import ClaimCache
from tests.cache.devices import claim, share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.allocated_devices import AllocatedState
    from cache.claim_cache import ClaimKey
    from cache.device_objects import ResourceClaim

NAMES = st.sampled_from(["a", "b"])
DEVICES = st.one_of(
    st.sampled_from(["gpu-0", "gpu-1"]),
    st.builds(share, st.just("nic"), st.sampled_from(["s1", "s2"]), memory=st.just("1Gi")),
)


class Histories(RuleBasedStateMachine):
    """An API server, its watch, and answers to writes that are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ClaimCache()
        self.version = 1
        self.server: dict[str, ResourceClaim] = {}
        self.watch: deque[tuple[ResourceClaim | None, ResourceClaim | None]] = deque()
        self.answers: list[ResourceClaim] = []
        self.seen_by_watch: dict[str, ResourceClaim] = {}
        self.newest: dict[str, ResourceClaim] = {}
        """What the cache was told last of each claim that it knows: by version the newest."""
        self.flights: dict[str, ResourceClaim] = {}
        self.heard: dict[ClaimKey, ResourceClaim] = {}
        self.cache.subscribe(self._hear)

    def _hear(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and old is self.flights.get(old.metadata.uid):
            return  # devices that were given up: nothing that is shown changes
        subject = new if new is not None else old
        assert subject is not None
        key = (subject.metadata.namespace, subject.metadata.name)
        assert self.heard.get(key) == old, "each change begins where the one before it ended"
        if new is None:
            del self.heard[key]
        else:
            self.heard[key] = new

    # --- the server ---------------------------------------------------------------------------

    @rule(name=NAMES, devices=st.lists(DEVICES, max_size=2), is_ours=st.booleans())
    def write(self, name: str, devices: list[object], is_ours: bool) -> None:
        """A claim is created, allocated or deallocated, by us or by others."""
        self.version += 1
        old = self.server.get(name)
        uid = f"{name}-{self.version}" if old is None else old.metadata.uid
        new = claim(name, *devices, version=self.version, uid=uid)  # type: ignore[arg-type]
        self.server[name] = new
        self.watch.append((old, new))
        if is_ours and old is not None:
            self.answers.append(new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        old = self.server.pop(name, None)
        if old is not None:
            self.version += 1
            self.watch.append((old, None))

    # --- what reaches the cache ---------------------------------------------------------------

    @rule(is_repeated=st.booleans())
    def watch_event(self, is_repeated: bool) -> None:
        """The watch brings its next event, perhaps twice."""
        if not self.watch:
            return
        old, new = self.watch.popleft()
        for _ in range(1 + (is_repeated and new is not None)):
            self.cache.changed(old, new)
        subject = new if new is not None else old
        assert subject is not None
        name = subject.metadata.name
        if new is None:
            self.seen_by_watch.pop(name, None)
            self.newest.pop(name, None)
            return
        self.seen_by_watch[name] = new
        if name not in self.newest or number(self.newest[name]) <= number(new):
            self.newest[name] = new

    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """The answer to one of our writes comes."""
        if not self.answers:
            return
        new = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        name = new.metadata.name
        is_news = name in self.newest and number(new) >= number(self.newest[name])
        assert self.cache.stored(new) is is_news
        if is_news:
            self.newest[name] = new

    @rule(name=NAMES)
    def go_back(self, name: str) -> None:
        """An attempt fails, after its write if there was one: what is written stays known."""
        self.cache.restore("default", name)

    @rule(name=NAMES)
    def etcd_is_restored(self, name: str) -> None:
        """The API goes back to an older version of a claim: writes under way are lost."""
        if name not in self.seen_by_watch or name not in self.server:
            return
        known = self.seen_by_watch[name]
        old = claim(name, version=1, uid=known.metadata.uid)
        self.watch = deque(each for each in self.watch if not is_about(name, each))
        self.answers = [each for each in self.answers if each.metadata.name != name]
        self.cache.changed(known, old, restored=True)
        self.server[name] = self.seen_by_watch[name] = self.newest[name] = old

    @rule(name=NAMES, devices=st.lists(DEVICES, min_size=1, max_size=2))
    def take_off(self, name: str, devices: list[object]) -> None:
        known = self.newest.get(name)
        if known is None or known.metadata.uid in self.flights:
            return
        flying = claim(name, *devices, uid=known.metadata.uid)  # type: ignore[arg-type]
        self.cache.begin_flight(flying)
        self.flights[known.metadata.uid] = flying

    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        if not self.flights:
            return
        uid = data.draw(st.sampled_from(sorted(self.flights)))
        assert self.cache.end_flight(uid)
        del self.flights[uid]

    # --- what must hold -----------------------------------------------------------------------

    @invariant()
    def the_newest_version_is_shown(self) -> None:
        shown = {name: each for (_, name), each in self.cache.all().items()}
        assert shown == self.newest
        assert {name: self.cache.get("default", name) for name in self.newest} == self.newest

    @invariant()
    def the_watchs_version_is_kept_beside_it(self) -> None:
        known = {name: self.cache.api("default", name) for name in self.seen_by_watch}
        assert known == self.seen_by_watch

    @invariant()
    def listeners_have_heard_of_all_that_is_shown(self) -> None:
        assert self.heard == dict(self.cache.all())

    @invariant()
    def the_devices_in_use_are_those_of_claims_and_flights(self) -> None:
        uses = {claim_user(each): device_use(each) for each in self.newest.values()}
        for each in self.flights.values():
            user = claim_user(each)
            uses[user] = uses.get(user, NO_USE).merged(device_use(each))
        rebuilt = AllocatedDevices()
        for user, use in uses.items():
            rebuilt.replace(user, NO_USE, use)
        assert parts(self.cache.allocated()) == parts(rebuilt.state())

    def teardown(self) -> None:
        """Without claims and flights nothing is left."""
        for uid in list(self.flights):
            self.cache.end_flight(uid)
        for each in self.seen_by_watch.values():
            self.cache.changed(each, None)
        cache = self.cache
        tables = (cache._api, cache._written, cache._in_flight, cache._by_owner, cache._uses)
        assert not any(tables)
        assert not cache._events


def parts(state: AllocatedState) -> tuple[Mapping[object, object], ...]:
    return dict(state.devices), dict(state.shared), dict(state.consumed)


def number(known: ResourceClaim) -> int:
    return int(known.metadata.resource_version)


def is_about(name: str, event: tuple[ResourceClaim | None, ResourceClaim | None]) -> bool:
    return any(each is not None and each.metadata.name == name for each in event)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

"""What is known of a claim follows the watch and our own writes, whichever is newer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cache.claim_cache import ClaimCache
from cache.device_objects import DeviceId
from cache.objects import OwnerReference
from tests.cache.devices import claim, share
from tests.device_builders import DRIVER

if TYPE_CHECKING:
    from cache.device_objects import DeviceRequestAllocationResult, ResourceClaim

FREE, TAKEN = claim("c", version=1), claim("c", "gpu-0", version=2)


class Seen:
    """What listeners hear of, as pairs of versions."""

    def __init__(self, cache: ClaimCache) -> None:
        self.events: list[tuple[str, str]] = []
        cache.subscribe(self.hear)

    def hear(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self.events.append((version(old), version(new)))


def version(claim: ResourceClaim | None) -> str:
    return "" if claim is None else claim.metadata.resource_version


def known(*claims: ResourceClaim) -> ClaimCache:
    cache = ClaimCache()
    for each in claims:
        cache.changed(None, each)
    return cache


def shown(cache: ClaimCache) -> str:
    return version(cache.get("default", "c"))


def test_what_a_write_returned_is_shown_before_the_watch_brings_it() -> None:
    cache = known(FREE)
    seen = Seen(cache)
    assert cache.stored(TAKEN)
    assert (shown(cache), version(cache.api("default", "c"))) == ("2", "1")
    assert seen.events == [("1", "2")]


def test_the_watch_that_brings_what_was_written_is_no_change() -> None:
    cache = known(FREE)
    cache.stored(TAKEN)
    seen = Seen(cache)
    cache.changed(FREE, TAKEN)
    assert (shown(cache), seen.events) == ("2", [])


def test_a_version_between_does_not_hide_what_was_written() -> None:
    cache = known(FREE)
    cache.stored(claim("c", "gpu-0", version=3))
    cache.changed(FREE, claim("c", version=2))
    assert (shown(cache), version(cache.api("default", "c"))) == ("3", "2")


def test_a_newer_version_of_the_watch_replaces_what_was_written() -> None:
    cache = known(FREE)
    cache.stored(TAKEN)
    seen = Seen(cache)
    cache.changed(FREE, claim("c", version=3))
    assert (shown(cache), seen.events) == ("3", [("2", "3")])


def test_an_answer_that_the_watch_has_overtaken_is_not_shown() -> None:
    cache = known(claim("c", version=3))
    assert not cache.stored(TAKEN)
    assert shown(cache) == "3"


def test_an_answer_for_a_claim_that_is_gone_is_not_shown() -> None:
    cache = known(FREE)
    cache.changed(FREE, None)
    assert not cache.stored(TAKEN)
    assert cache.get("default", "c") is None


def test_a_deleted_claim_takes_what_was_written_with_it() -> None:
    cache = known(FREE)
    cache.stored(TAKEN)
    seen = Seen(cache)
    cache.changed(FREE, None)
    assert (shown(cache), seen.events) == ("", [("2", "")])
    assert not cache.allocated().devices


def test_an_old_version_from_the_watch_is_ignored() -> None:
    cache = known(TAKEN)
    seen = Seen(cache)
    cache.changed(None, FREE)
    assert (shown(cache), seen.events) == ("2", [])


def test_after_a_restored_etcd_an_older_version_counts() -> None:
    before = claim("c", version=3)
    cache = known(before)
    cache.stored(claim("c", "gpu-0", version=4))
    cache.changed(before, claim("c", version=2), restored=True)
    assert shown(cache) == "2"
    assert not cache.allocated().devices


def test_going_back_keeps_what_is_known_to_be_written() -> None:
    cache = known(FREE)
    cache.stored(TAKEN)
    cache.restore("default", "c")
    assert shown(cache) == "2"
    assert cache.allocated().devices


def test_going_back_shows_the_apis_version_where_versions_say_nothing() -> None:
    plain = claim("c", version="")
    cache = known(plain)
    cache.stored(claim("c", "gpu-0", version=""))
    seen = Seen(cache)
    cache.restore("default", "c")
    assert cache.get("default", "c") == plain
    assert len(seen.events) == 1


def test_claims_are_found_by_their_owner() -> None:
    owned = claim("c", owner_references=(OwnerReference(kind="Pod", uid="pod-uid"),))
    cache = known(owned, claim("d"))
    assert cache.by_owner("pod-uid") == (owned,)
    cache.changed(owned, claim("c", version=2))
    assert cache.by_owner("pod-uid") == ()


def test_all_shows_what_was_written() -> None:
    cache = known(FREE, claim("d"))
    before = cache.all()
    cache.stored(TAKEN)
    assert cache.all()["default", "c"] == TAKEN
    assert before["default", "c"] == FREE


def test_a_listener_that_changes_a_claim_hears_of_that_afterwards() -> None:
    cache = ClaimCache()
    seen = Seen(cache)
    cache.subscribe(lambda old, new: old is None and new is FREE and cache.stored(TAKEN))
    cache.changed(None, FREE)
    assert seen.events == [("", "1"), ("1", "2")]


def test_who_waits_for_a_claim_hears_of_no_other() -> None:
    cache = known(FREE, claim("d"))
    heard: list[str] = []

    def listener() -> None:
        heard.append(shown(cache))

    cache.listen("default", "c", listener)
    cache.changed(None, claim("d", version=2))
    cache.stored(TAKEN)
    cache.unlisten("default", "c", listener)
    cache.changed(TAKEN, None)
    assert heard == ["2"]


# --- in flight --------------------------------------------------------------------------------


def test_what_is_in_flight_is_in_use_and_the_claim_is_shown_as_it_is() -> None:
    cache = known(FREE)
    cache.begin_flight(TAKEN)
    assert [each.device for each in cache.allocated().devices] == ["gpu-0"]
    assert (shown(cache), cache.in_flight("c")) == ("1", TAKEN)


def test_a_flight_that_lands_keeps_its_devices_and_is_no_event() -> None:
    cache = known(FREE)
    cache.begin_flight(TAKEN)
    version = cache.allocated().version
    cache.stored(TAKEN)
    seen = Seen(cache)
    assert cache.end_flight("c")
    assert (seen.events, cache.in_flight("c")) == ([], None)
    assert cache.allocated().devices
    assert cache.allocated().version == version, "the devices were in use all the time"


def test_a_flight_that_is_given_up_frees_its_devices_and_wakes_those_who_wait() -> None:
    cache = known(FREE)
    cache.begin_flight(TAKEN)
    events: list[tuple[bool, bool]] = []
    cache.subscribe(lambda *claims: events.append(tuple(map(is_allocated, claims))))
    assert cache.end_flight("c")
    assert not cache.allocated().devices
    assert events == [(True, False)]


def test_a_claim_that_exists_nowhere_can_be_in_flight() -> None:
    cache = ClaimCache()
    cache.begin_flight(TAKEN)
    events: list[tuple[bool, bool]] = []
    cache.subscribe(lambda *claims: events.append(tuple(map(is_allocated, claims))))
    assert cache.allocated().devices
    cache.end_flight("c")
    assert not cache.allocated().devices
    assert events == [(True, False)]


@pytest.mark.parametrize("device", ["gpu-0", share("gpu-0", "s", memory="1Gi")])
def test_devices_that_another_claim_has_by_now_are_not_freed(
    device: str | DeviceRequestAllocationResult,
) -> None:
    """As those of a claim for extended resources, which gets its name when it is written."""
    cache = known(claim("created"))
    cache.begin_flight(claim("in memory", device))
    cache.stored(claim("created", device, version=2))
    seen = Seen(cache)
    cache.end_flight("in memory")
    assert seen.events == []
    assert len(cache.allocated().users(DeviceId(DRIVER, "pool", "gpu-0"))) == 1


def test_a_flight_ends_once() -> None:
    cache = known(FREE)
    cache.begin_flight(TAKEN)
    cache.begin_flight(claim("c", "gpu-1"))
    assert cache.in_flight("c") == TAKEN
    assert [cache.end_flight("c"), cache.end_flight("c")] == [True, False]


def is_allocated(claim: ResourceClaim | None) -> bool:
    return claim is not None and claim.status.allocation is not None


@pytest.mark.parametrize("elsewhere", ["gpu-0", "gpu-1"])
def test_a_claim_allocated_elsewhere_meanwhile_uses_both_until_its_flight_ends(
    elsewhere: str,
) -> None:
    cache = known(FREE)
    cache.begin_flight(TAKEN)
    cache.changed(FREE, claim("c", elsewhere, version=2))
    assert {each.device for each in cache.allocated().devices} == {"gpu-0", elsewhere}
    events: list[tuple[bool, bool]] = []
    cache.subscribe(lambda *claims: events.append(tuple(map(is_allocated, claims))))
    cache.end_flight("c")
    assert {each.device for each in cache.allocated().devices} == {elsewhere}
    assert events == ([] if elsewhere == "gpu-0" else [(True, False)])


def test_who_waits_for_the_watch_is_woken_when_it_brings_a_write() -> None:
    cache = known(FREE)
    cache.stored(TAKEN)
    woken: list[str] = []
    cache.listen("default", "c", lambda: woken.append(version(cache.api("default", "c"))))
    cache.changed(FREE, TAKEN)
    assert woken == ["2"]


# --- several threads --------------------------------------------------------------------------


def test_threads_that_write_at_once_are_heard_in_one_order() -> None:
    cache = known(*(claim(name) for name in "abcd"))
    heard = {name: ["1"] for name in "abcd"}
    broken: list[str] = []

    def hear(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        assert old is not None
        assert new is not None
        name = new.metadata.name
        if heard[name][-1] != version(old):
            broken.append(name)
        heard[name].append(version(new))

    cache.subscribe(hear)

    def write(thread: int) -> None:
        for i in range(300):
            name = "abcd"[(thread + i) % 4]
            device = "gpu-0" if i % 2 else "gpu-1"
            cache.stored(claim(name, device, version=2 + i * 4 + thread))
            cache.begin_flight(claim(f"flight-{thread}", "gpu-2"))
            cache.allocated()
            cache.restore("default", name)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert broken == []
    assert {name: versions[-1] for name, versions in heard.items()} == {
        name: version(cache.get("default", name)) for name in "abcd"
    }
    assert {user.name for user in cache.allocated().users(DeviceId(DRIVER, "pool", "gpu-2"))} == {
        f"flight-{thread}" for thread in range(4)
    }

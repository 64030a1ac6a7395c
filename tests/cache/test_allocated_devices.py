"""The devices in use are those of the claims that are allocated, however they came to be so."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from cache.allocated_devices import NO_USE, AllocatedDevices, AllocatedState, claim_user, device_use
from cache.claim_cache import ClaimCache
from cache.device_objects import DeviceId, ResourceClaim
from tests.cache.devices import claim, share
from tests.device_builders import DRIVER, allocated

GPU = DeviceId(DRIVER, "pool", "gpu")


def state_of(*claims: ResourceClaim) -> AllocatedState:
    cache = ClaimCache()
    for each in claims:
        cache.changed(None, each)
    return cache.allocated()


def test_a_device_names_the_claim_that_has_it() -> None:
    taken = claim("c", "gpu")
    assert dict(state_of(taken).devices) == {GPU: (claim_user(taken),)}
    assert state_of(taken).users(GPU) == (claim_user(taken),)


def test_admin_access_takes_nothing() -> None:
    assert not state_of(claim("c", allocated("gpu", admin=True))).devices


def test_a_device_given_twice_is_free_when_the_last_claim_lets_it_go() -> None:
    first, second = claim("first", "gpu"), claim("second", "gpu")
    cache = ClaimCache()
    cache.changed(None, first)
    cache.changed(None, second)
    cache.changed(first, None)
    assert cache.allocated().devices[GPU] == (claim_user(second),)
    cache.changed(second, None)
    assert GPU not in cache.allocated().devices


def test_shares_consume_capacity_and_leave_the_device_free() -> None:
    one = claim("one", share("gpu", "s1", memory="40Gi", slots="500m"))
    two = claim("two", share("gpu", "s2", memory="1Gi", slots="500m"))
    state = state_of(one, two)
    assert GPU not in state.devices
    assert state.shared[GPU] == {"s1": (claim_user(one),), "s2": (claim_user(two),)}
    assert state.consumed[GPU] == {"memory": 41 << 30, "slots": 1}
    assert state.users(GPU) == (claim_user(one), claim_user(two))


def test_a_share_without_capacities_consumes_nothing() -> None:
    state = state_of(claim("c", share("gpu", "s")))
    assert (list(state.shared), dict(state.consumed)) == ([GPU], {})


def test_what_shares_consume_is_exact() -> None:
    cache = ClaimCache()
    parts = [claim(f"c{i}", share("gpu", f"s{i}", slots="0.1")) for i in range(3)]
    for each in parts:
        cache.changed(None, each)
    assert cache.allocated().consumed[GPU] == {"slots": Fraction(3, 10)}
    for each in parts:
        cache.changed(each, None)
    assert not cache.allocated().consumed


def test_an_amount_that_cannot_be_read_counts_as_none() -> None:
    cache = ClaimCache()
    bad = claim("c", share("gpu", "s", memory="much", slots="1"))
    cache.changed(None, bad)
    assert cache.allocated().consumed[GPU] == {"slots": 1}
    cache.changed(bad, None)
    assert not cache.allocated().shared


def test_a_view_does_not_change_later() -> None:
    cache = ClaimCache()
    cache.changed(None, claim("c", "gpu"))
    before = cache.allocated()
    cache.changed(None, claim("d", "other"))
    assert list(before.devices) == [GPU]
    assert before.version < cache.allocated().version


def test_the_journal_names_the_devices_that_were_taken_or_freed() -> None:
    cache = ClaimCache()
    taken = claim("c", "gpu")
    cache.changed(None, taken)
    since = cache.allocated().version
    cache.changed(None, claim("d", "other", share("shared", "s")))
    version, changed = cache.device_changes(since)
    assert version == cache.allocated().version
    assert changed == {GPU._replace(device="other"), GPU._replace(device="shared")}
    cache.changed(taken, claim("c", version=2))
    assert cache.device_changes(version)[1] == {GPU}


def test_a_condition_of_a_device_does_not_touch_the_state() -> None:
    cache = ClaimCache()
    taken = claim("c", "gpu")
    cache.changed(None, taken)
    before = cache.allocated()
    cache.changed(taken, claim("c", "gpu", version=2))
    assert cache.allocated() is before


DEVICES = st.sampled_from(["a", "b", "c"])
RESULTS = st.one_of(
    DEVICES,
    st.builds(lambda name: allocated(name, admin=True), DEVICES),
    st.builds(
        lambda name, share_id, consumed: share(name, share_id, **consumed),
        DEVICES,
        st.sampled_from(["s1", "s2"]),
        st.dictionaries(
            st.sampled_from(["memory", "slots"]), st.sampled_from(["0", "1", "100m", "1Gi", "x"])
        ),
    ),
)
CLAIMS = st.builds(
    lambda name, devices: claim(name, *devices),
    st.sampled_from(["c1", "c2", "c3"]),
    st.lists(RESULTS, max_size=4),
)


@settings(max_examples=60)
@given(st.lists(CLAIMS, max_size=12))
def test_the_incremental_state_is_the_rebuilt_one(history: list[ResourceClaim]) -> None:
    used, uses = AllocatedDevices(), {}
    for each in history:
        user, use = claim_user(each), device_use(each)
        used.replace(user, uses.get(user, NO_USE), use)
        uses[user] = use
        used.state()
    rebuilt = AllocatedDevices()
    for user, use in sorted(uses.items(), reverse=True):
        rebuilt.replace(user, NO_USE, use)
    assert parts(used.state()) == parts(rebuilt.state())


def parts(state: AllocatedState) -> tuple[object, ...]:
    return dict(state.devices), dict(state.shared), dict(state.consumed)

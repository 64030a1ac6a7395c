"""From a reserved node to written claims, against an API that only answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.dynamic_resources import binding
from plugins.framework.status import Code
from scheduler.client.errors import ApiError
from scheduler.kinds import RESOURCE_CLAIMS
from tests.builders import node, pod
from tests.device_builders import allocated, device, device_class, resource_claim
from tests.plugins.dynamic_resources.device_world import NOW_S, STAMP, DeviceWorld, the_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cache.device_objects import DeviceId

WEB = pod("web").resource_claim("r", "c")
CLAIM = resource_claim("c").request("r", "gpu")
REFUSED = ApiError(403, "Forbidden", "not allowed")
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def one_device() -> DeviceWorld:
    world = DeviceWorld("n1").local("n1", "gpu-0")
    world.claim(CLAIM)
    return world


def used(world: DeviceWorld) -> list[str]:
    return sorted(each.device for each in world.known.allocated().devices)


def users_of(world: DeviceWorld, name: str = "c") -> list[str]:
    return [each.name for each in world.shown(name).status.reserved_for]


# --- reserve and unreserve --------------------------------------------------------------------


def test_from_reserve_on_the_devices_are_in_use() -> None:
    world = one_device()
    world.cycle(WEB).reserve()
    assert used(world) == ["gpu-0"]


def test_two_pods_never_get_one_device() -> None:
    world = one_device()
    world.claim(resource_claim("d").request("r", "gpu"))
    assert world.cycle(WEB).reserve().is_success
    assert world.cycle(pod("b").resource_claim("r", "d")).refusal() == "cannot allocate all claims"


def test_unreserve_gives_the_devices_back() -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    cycle.unreserve()
    cycle.unreserve()
    assert used(world) == []
    assert world.api.requests == []
    assert world.cycle(WEB).feasible() == ["n1"]


def test_a_node_that_was_not_judged_cannot_be_reserved() -> None:
    status = one_device().cycle(WEB).reserve("elsewhere")
    assert (status.code, status.message) == (Code.ERROR, "claim allocation not found for node")


def test_a_claim_that_is_allocated_needs_no_reserve() -> None:
    world = DeviceWorld("n1")
    world.claim(CLAIM.allocated(allocated("gpu-0")))
    cycle = world.cycle(WEB)
    assert cycle.reserve().is_success
    assert world.known.claims.in_flight("uid-claim-default-c") is None


COUNTS = st.lists(st.integers(1, 3), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(COUNTS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_no_device_is_given_twice_and_unreserve_leaves_no_trace(counts, undone) -> None:
    world = DeviceWorld("n1", "n2")
    world.local("n1", *(f"a{i}" for i in range(4))).local("n2", *(f"b{i}" for i in range(4)))
    held: list[DeviceId] = []
    for index, (count, undo) in enumerate(zip(counts, undone, strict=False)):
        world.claim(resource_claim(f"c{index}").request("r", "gpu", count=count))
        before = world.known.allocated().devices
        cycle = world.cycle(pod(f"p{index}").resource_claim("r", f"c{index}"))
        if not cycle.feasible():
            continue
        name = cycle.feasible()[-1]
        cycle.reserve(name)
        taken = set(world.known.allocated().devices) - set(before)
        assert len(taken) == count
        if undo:
            cycle.unreserve(name)
            assert world.known.allocated().devices == before
        else:
            held += taken
    assert len(held) == len(set(held)) == len(world.known.allocated().devices)


# --- writing ----------------------------------------------------------------------------------


def test_the_claim_is_allocated_and_reserved_and_no_longer_in_flight() -> None:
    world = one_device()
    assert world.place(WEB) == "n1"
    claim = world.shown("c")
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.results[0].device == "gpu-0"
    assert claim.status.allocation.allocation_timestamp == STAMP
    assert users_of(world) == ["web"]
    assert world.known.claims.in_flight(claim.metadata.uid) is None
    assert used(world) == ["gpu-0"]


def test_five_pods_share_a_claim() -> None:
    world = DeviceWorld("n1", "n2").local("n2", "gpu-0")
    world.claim(CLAIM)
    pods = [pod(f"p{i}").resource_claim("r", "c") for i in range(5)]
    assert [world.place(each) for each in pods] == ["n2"] * 5
    assert users_of(world) == [f"p{i}" for i in range(5)]
    assert len(world.api.requests) == 2 + 4


def test_a_claim_that_is_reserved_already_is_not_written() -> None:
    world = DeviceWorld("n1")
    world.claim(CLAIM.allocated(allocated("gpu-0"), nodes="n1", at=STAMP).reserved_for(WEB.build()))
    assert world.place(WEB) == "n1"
    assert world.api.requests == []


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        pytest.param(
            lambda world: world.api.delete(RESOURCE_CLAIMS, "default", "c"),
            'add finalizer to claim default/c: resourceclaims "c" not found',
            id="the claim is deleted",
        ),
        pytest.param(
            lambda world: world.change("c", {"metadata": {"deletionTimestamp": STAMP}}),
            "claim default/c got deleted in the meantime",
            id="its deletion begins",
        ),
        pytest.param(
            lambda world: world.change("c", {"status": {"allocation": {}}}),
            "claim default/c got allocated elsewhere in the meantime",
            id="somebody else allocates it",
        ),
        pytest.param(
            lambda world: world.api.faults.append(REFUSED),
            "add finalizer to claim default/c: not allowed",
            id="the write is refused",
        ),
    ],
)
def test_nothing_is_left_in_flight_when_the_claim_cannot_be_written(happens, why) -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    happens(world)
    assert cycle.pre_bind() == why
    assert world.known.claims.in_flight("uid-claim-default-c") is None
    cycle.unreserve()
    assert used(world) == []


def test_a_conflict_is_no_reason_to_fail() -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    world.change("c", {"metadata": {"labels": {"x": "y"}}})
    assert cycle.pre_bind() == ""
    assert users_of(world) == ["web"]


def test_when_the_bind_fails_the_reservation_goes_and_the_allocation_stays() -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    cycle.pre_bind()
    cycle.unreserve()
    assert users_of(world) == []
    assert used(world) == ["gpu-0"]


def test_after_a_failed_bind_the_pod_goes_to_the_same_node_without_a_second_allocation() -> None:
    world = DeviceWorld("n1", "n2").local("n1", "gpu-0").local("n2", "gpu-1")
    world.claim(CLAIM)
    cycle = world.cycle(WEB)
    cycle.reserve("n2")
    cycle.pre_bind("n2")
    cycle.unreserve("n2")
    assert world.place(WEB) == "n2"
    assert used(world) == ["gpu-1"]
    assert users_of(world) == ["web"]


def test_a_second_claim_that_fails_releases_the_first() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0", "gpu-1")
    world.claim(CLAIM)
    world.claim(resource_claim("d").request("r", "gpu"))
    cycle = world.cycle(WEB.resource_claim("s", "d"))
    cycle.reserve()
    world.change("d", {"metadata": {"deletionTimestamp": STAMP}})
    assert cycle.pre_bind() == "claim default/d got deleted in the meantime"
    cycle.unreserve()
    assert users_of(world) == []
    assert used(world) == ["gpu-0"]


def test_a_pod_that_was_released_a_moment_ago_is_reserved_again() -> None:
    """The release of the first attempt is still to be written when the second one binds."""
    world = one_device()
    first = world.cycle(WEB)
    first.reserve()
    first.pre_bind()
    second = world.cycle(WEB)
    world.plugin.unreserve(first.state, first.info, "n1")
    assert second.pre_bind() == ""
    assert users_of(world) == ["web"]


# --- devices that others have allocated too ---------------------------------------------------


def taken_by_another_scheduler(world: DeviceWorld) -> None:
    other = resource_claim("theirs").request("r", "gpu")
    world.claim(other.allocated(allocated("gpu-0", pool="n1"), nodes="n1"))


def test_a_device_that_another_scheduler_allocated_too_is_given_back() -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    taken_by_another_scheduler(world)
    why = "device gpu.example.com/n1/gpu-0 of claim default/c was also allocated to default/theirs"
    assert cycle.pre_bind() == why
    assert world.shown("c").status.allocation is None
    assert world.handle.device_reports.collisions == ["gpu.example.com"]


def test_a_device_that_is_known_to_be_taken_is_not_allocated_at_all() -> None:
    """kube-scheduler takes a device for free that one of two claims has given back."""
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    taken_by_another_scheduler(world)
    cycle.pre_bind()
    assert ("PATCH", "resourceclaims/status", "c") not in world.api.requests


def test_what_was_allocated_before_a_collision_is_given_back() -> None:
    """The first claim of the pod is written when the second one turns out to be impossible."""
    world = DeviceWorld("n1").local("n1", "gpu-0", "gpu-1")
    world.claim(CLAIM)
    world.claim(resource_claim("d").request("r", "gpu"))
    cycle = world.cycle(pod("web").resource_claim("r", "c").resource_claim("s", "d"))
    cycle.reserve()
    other = resource_claim("theirs").request("r", "gpu")
    world.claim(other.allocated(allocated("gpu-1", pool="n1"), nodes="n1"))
    assert "of claim default/d was also allocated to default/theirs" in cycle.pre_bind()
    assert [world.shown(name).status.allocation for name in "cd"] == [None, None]
    cycle.unreserve()
    assert used(world) == ["gpu-1"]
    assert world.handle.device_reports.collisions == ["gpu.example.com"]


def test_after_a_collision_the_pod_gets_another_device() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0", "gpu-1")
    world.claim(CLAIM)
    cycle = world.cycle(WEB)
    cycle.reserve()
    taken_by_another_scheduler(world)
    cycle.pre_bind()
    cycle.unreserve()
    assert world.place(WEB) == "n1"
    assert sorted(used(world)) == ["gpu-0", "gpu-1"]


def test_a_write_that_the_watch_brings_with_ours_is_seen() -> None:
    world = one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    world.api.hold_watches()
    taken_by_another_scheduler_unseen(world)
    assert "was also allocated" in cycle.pre_bind(meanwhile=later(world.api.release_watches))


def taken_by_another_scheduler_unseen(world: DeviceWorld) -> None:
    other = resource_claim("theirs").request("r", "gpu")
    claim = other.allocated(allocated("gpu-0", pool="n1"), nodes="n1").build()
    world.api.put(RESOURCE_CLAIMS, "default", "theirs", msgspec.to_builtins(claim))


def later(act: Callable[[], None]) -> Callable[[], None]:
    """Return what does something after a few turns of the loop."""

    def begin(turns: int = 20) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(begin, turns - 1)
        else:
            act()

    return begin


@pytest.mark.parametrize(
    ("theirs", "collides"),
    [
        pytest.param("40Gi", False, id="enough for both"),
        pytest.param("60Gi", True, id="too much"),
    ],
)
def test_a_shared_device_collides_when_its_capacity_is_overdrawn(theirs, collides) -> None:
    world = DeviceWorld("n1").local("n1", device("gpu-0").capacity(memory="80Gi").shared())
    world.claim(resource_claim("c").request("r", "gpu", capacity={"memory": "40Gi"}))
    cycle = world.cycle(WEB)
    cycle.reserve()
    share = allocated("gpu-0", pool="n1", share="s", consumed={"memory": theirs})
    world.claim(resource_claim("theirs").request("r", "gpu").allocated(share, nodes="n1"))
    assert ("was also allocated" in cycle.pre_bind()) is collides


# --- binding conditions -----------------------------------------------------------------------

SLOW = device("nic").binding("Ready", failures=("Broken",))


def slow_device(**more: Any) -> DeviceWorld:
    world = DeviceWorld("n1", **more).local("n1", SLOW)
    world.claim(CLAIM)
    return world


def says(world: DeviceWorld, condition: str, status: str = "True") -> Callable[[], None]:
    """Return what the driver reports, once the claim is allocated."""
    shown = {"type": condition, "status": status, "reason": "Why", "message": "so"}
    report = {
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "nic",
        "conditions": [shown],
    }
    return later(lambda: world.change("c", {"status": {"devices": [report]}}))


def test_binding_waits_for_the_driver() -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    assert cycle.pre_bind(meanwhile=says(world, "Ready")) == ""
    assert world.handle.device_reports.waits == ["web on n1"]
    assert world.handle.device_reports.results == ["success"]


@pytest.mark.parametrize("is_long", [True, False])
def test_a_binding_that_waits_for_long_lets_others_go_ahead(monkeypatch, is_long) -> None:
    monkeypatch.setattr(binding, "BRIEFLY_S", 0.0 if is_long else 600.0)
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    assert cycle.pre_bind(meanwhile=says(world, "Ready")) == ""
    assert (cycle.info.uid in world.waiting) is is_long


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_binding_without_conditions_is_brief(is_slow) -> None:
    world = slow_device() if is_slow else one_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    flight = world.plugin.pre_bind_pre_flight(cycle.state, cycle.info, "n1")
    assert flight.is_brief is not is_slow


def test_a_device_that_fails_ends_the_binding() -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    why = cycle.pre_bind(meanwhile=says(world, "Broken"))
    assert why == 'device binding failed: claim=c, reason=Why, message="so"'
    assert world.handle.device_reports.results == ["failure"]


def test_after_a_failure_the_claim_is_given_back() -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    cycle.pre_bind(meanwhile=says(world, "Broken"))
    cycle.unreserve()
    again = world.cycle(WEB)
    assert again.refusal() == "resourceclaim not available on the node"
    assert again.post_filter() == "deallocation of ResourceClaim completed"
    assert world.shown("c").status.allocation is None


def test_a_binding_that_takes_too_long_ends() -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()

    def later_still() -> None:
        world.now_s = NOW_S + 601.0
        world.change("c", {"metadata": {"labels": {"x": "y"}}})

    why = cycle.pre_bind(meanwhile=later(later_still))
    assert why == "device binding timeout: claim=c"
    assert world.handle.device_reports.results == ["timeout"]


def test_the_wait_ends_even_if_the_clock_of_the_allocation_stands_still(monkeypatch) -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    real, late_s = the_loop().time, [0.0]
    monkeypatch.setattr(the_loop(), "time", lambda: real() + late_s[0])

    def later_still() -> None:
        late_s[0] = 601.0
        world.change("c", {"metadata": {"labels": {"x": "y"}}})

    why = cycle.pre_bind(meanwhile=later(later_still))
    assert why == "device binding timeout: context deadline exceeded"
    assert world.handle.device_reports.results == ["timeout"]


def test_a_claim_that_is_gone_ends_the_wait() -> None:
    world = slow_device()
    cycle = world.cycle(WEB)
    cycle.reserve()
    gone = later(lambda: world.api.delete(RESOURCE_CLAIMS, "default", "c"))
    assert cycle.pre_bind(meanwhile=gone) == 'could not find ResourceClaim "default/c"'
    assert world.handle.device_reports.results == ["error"]


# --- extended resources -----------------------------------------------------------------------

GPU = "example.com/gpu"
ASKS = pod("web").request({GPU: "1"})


def extended(*nodes: Any) -> DeviceWorld:
    world = DeviceWorld(*(nodes or ("n1",))).local("n1", "gpu-0")
    return world.classes(device_class("gpus").extended_resource(GPU))


def test_the_special_claim_is_created_allocated_and_shown() -> None:
    world = extended()
    assert world.place(ASKS) == "n1"
    (claim,) = world.known.claims.all().values()
    assert claim.metadata.name.startswith("web-extended-resources-")
    assert [each.name for each in claim.status.reserved_for] == ["web"]
    assert used(world) == ["gpu-0"]
    ((_, patch),) = world.api.pod_statuses
    assert patch["extendedResourceClaimStatus"]["resourceClaimName"] == claim.metadata.name
    (mapping,) = patch["extendedResourceClaimStatus"]["requestMappings"]
    assert mapping["requestName"] == claim.spec.devices.requests[0].name


def test_a_device_plugin_needs_no_special_claim() -> None:
    world = extended("n1", node("n2").capacity({GPU: "4"}))
    cycle = world.cycle(ASKS)
    assert cycle.reserve("n2").is_success
    assert cycle.pre_bind("n2") == ""
    assert world.api.requests == []


def test_beside_a_claim_of_the_pod_a_device_plugin_needs_none_either() -> None:
    world = extended("n1", node("n2").capacity({GPU: "4"})).local("n2", "nic")
    world.claim(CLAIM)
    cycle = world.cycle(ASKS.resource_claim("r", "c"))
    assert cycle.reserve("n2").is_success
    assert cycle.pre_bind("n2") == ""
    assert list(world.known.claims.all()) == [("default", "c")]
    assert used(world) == ["nic"]


def test_when_the_bind_fails_the_special_claim_is_deleted() -> None:
    world = extended()
    cycle = world.cycle(ASKS)
    cycle.reserve()
    cycle.pre_bind()
    cycle.unreserve()
    assert world.known.claims.all() == {}
    assert used(world) == []


def test_a_special_claim_that_cannot_be_created_leaves_nothing() -> None:
    world = extended()
    cycle = world.cycle(ASKS)
    cycle.reserve()
    world.api.faults.append(REFUSED)
    assert cycle.pre_bind().startswith("create claim for extended resources ")
    cycle.unreserve()
    assert used(world) == []

"""Writes of claims against an API that changes its mind, loses answers and is too busy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cache.device_objects import AllocationResult, DeviceAllocationResult
from cache.objects import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus
from plugins.dynamic_resources.extended_resources import (
    DeviceRequests,
    new_special_claim,
    with_requests,
)
from scheduler.api_writes.claim_patcher import ClaimWriteError
from scheduler.api_writes.claim_writer import CONFLICT_TRIES, ClaimWriter
from scheduler.client.errors import ApiError
from scheduler.kinds import RESOURCE_CLAIMS
from tests.builders import pod
from tests.device_builders import allocated, name_selector, resource_claim
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cache.device_objects import ResourceClaim
    from tests.device_builders import ResourceClaimBuilder

WEB, OTHER = pod("web").build(), pod("other").build()
NEW = AllocationResult(DeviceAllocationResult((allocated("gpu-0"),)), name_selector("n1"))
NOW_S = 1_750_000_000.9
STAMP = "2025-06-15T15:06:40Z"
FINALIZER = "resource.kubernetes.io/delete-protection"
CONFLICT = ApiError(409, "Conflict", "the object has been modified")
BUSY = ApiError(503, "ServiceUnavailable", "busy", retry_after_s=1)
LOST = ApiError(None, "Disconnected", "no answer", ambiguous=True)
REFUSED = ApiError(403, "Forbidden", "not allowed")


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


class Scene:
    """One claim in the API, and what the writer returned."""

    def __init__(self, claim: ResourceClaimBuilder | None) -> None:
        self.api = FakeObjectApi()
        self.stored: list[ResourceClaim] = []
        self.created: list[str] = []
        self.waiting: list[str] = []
        if claim is not None:
            self.put(claim)

    def put(self, claim: ResourceClaimBuilder) -> None:
        raw = msgspec.to_builtins(claim.build())
        raw["metadata"]["annotations"] = {"kept": "as it is"}
        self.api.put(RESOURCE_CLAIMS, "default", raw["metadata"]["name"], raw)

    def change(self, patch: Any) -> None:
        self.api.change(RESOURCE_CLAIMS, "default", "c", patch)

    def raw(self) -> dict[str, Any]:
        return self.api.raw(RESOURCE_CLAIMS, "default", "c")

    def run(self, act: Callable[[ClaimWriter, ResourceClaim | None], Awaitable[Any]]) -> Any:
        """Run a write of the claim as it is in the API now."""

        async def play() -> Any:
            ports = fake_ports(self.api, wall=lambda: NOW_S, executor=FakeExecutor(no_wait))
            writer = ClaimWriter(
                ports, self.stored.append, self.created.append, only_waits=self.waiting.append
            )
            claim = await self.api.get_object(RESOURCE_CLAIMS, "default", "c")
            result = await act(writer, claim)
            await asyncio.sleep(0)
            return result

        return asyncio.run(play())

    def reserve(self, allocation: AllocationResult | None, between: Any = None) -> Any:
        async def act(writer: ClaimWriter, claim: Any) -> Any:
            if between is not None:
                between(self)
            return await writer.reserve(claim, WEB, allocation)

        return self.run(act)

    def refused(self, allocation: AllocationResult | None, between: Any = None) -> str:
        with pytest.raises(ClaimWriteError) as caught:
            self.reserve(allocation, between)
        return str(caught.value)


FREE = resource_claim("c").request("r", "gpu")
TAKEN = FREE.finalizer(FINALIZER).allocated(allocated("gpu-0"), at=STAMP)


def test_the_finalizer_is_written_before_the_allocation() -> None:
    scene = Scene(FREE)
    scene.reserve(NEW)
    assert scene.api.requests == [
        ("PATCH", "resourceclaims", "c"),
        ("PATCH", "resourceclaims/status", "c"),
    ]
    assert scene.raw()["metadata"]["finalizers"] == [FINALIZER]


def test_the_allocation_is_written_with_its_time_and_the_reservation() -> None:
    scene = Scene(FREE.finalizer("other"))
    written = scene.reserve(NEW)
    assert scene.raw()["status"] == {
        "allocation": {**msgspec.to_builtins(NEW), "allocationTimestamp": STAMP},
        "reservedFor": [{"resource": "pods", "name": "web", "uid": WEB.metadata.uid}],
    }
    assert scene.raw()["metadata"]["annotations"] == {"kept": "as it is"}
    assert scene.raw()["metadata"]["finalizers"] == ["other", FINALIZER]
    assert scene.stored[-1] == written


def test_a_shared_claim_costs_one_write_and_keeps_other_reservations() -> None:
    scene = Scene(TAKEN.reserved_for(OTHER))
    scene.reserve(None)
    assert scene.api.requests == [("PATCH", "resourceclaims/status", "c")]
    uids = [each["uid"] for each in scene.raw()["status"]["reservedFor"]]
    assert uids == [OTHER.metadata.uid, WEB.metadata.uid]


def test_a_missing_time_of_the_allocation_is_added() -> None:
    scene = Scene(FREE.allocated(allocated("gpu-0")))
    scene.reserve(None)
    allocation = scene.raw()["status"]["allocation"]
    assert allocation["allocationTimestamp"] == STAMP
    assert allocation["devices"]["results"][0]["device"] == "gpu-0"


def test_after_a_conflict_the_newest_claim_is_written() -> None:
    scene = Scene(FREE)
    scene.reserve(NEW, lambda scene: scene.change({"metadata": {"labels": {"x": "y"}}}))
    assert scene.raw()["metadata"]["labels"] == {"x": "y"}
    assert scene.raw()["status"]["reservedFor"][0]["name"] == "web"


@pytest.mark.parametrize(
    ("claim", "allocation", "patch", "why"),
    [
        pytest.param(
            FREE,
            NEW,
            {"metadata": {"deletionTimestamp": STAMP}},
            "claim default/c got deleted in the meantime",
            id="deleted",
        ),
        pytest.param(
            FREE,
            NEW,
            {"status": {"allocation": {}}},
            "claim default/c got allocated elsewhere in the meantime",
            id="allocated",
        ),
        pytest.param(
            TAKEN,
            None,
            {"status": {"allocation": None}},
            "claim default/c got deallocated elsewhere in the meantime",
            id="deallocated",
        ),
        pytest.param(
            FREE,
            NEW,
            {"metadata": {"uid": "another"}},
            "claim default/c got deleted in the meantime",
            id="another claim of the name",
        ),
    ],
)
def test_a_change_that_came_between_is_the_reason(claim, allocation, patch, why) -> None:
    assert Scene(claim).refused(allocation, lambda scene: scene.change(patch)) == why


def test_a_claim_that_is_gone_is_the_reason() -> None:
    why = Scene(FREE).refused(NEW, lambda scene: scene.api.delete(RESOURCE_CLAIMS, "default", "c"))
    assert why.startswith("add finalizer to claim default/c: ")
    assert why.endswith('"c" not found')


@pytest.mark.parametrize(
    ("claim", "allocation", "doing"),
    [
        pytest.param(FREE, NEW, "add finalizer to", id="finalizer"),
        pytest.param(
            FREE.finalizer(FINALIZER), NEW, "add allocation and reservation to", id="allocation"
        ),
        pytest.param(TAKEN, None, "add reservation to", id="reservation"),
    ],
)
def test_a_refused_write_is_the_reason(claim, allocation, doing) -> None:
    scene = Scene(claim)
    scene.api.faults.append(REFUSED)
    assert scene.refused(allocation) == f"{doing} claim default/c: not allowed"


def test_conflicts_end_after_five_tries() -> None:
    scene = Scene(TAKEN)
    scene.api.faults.extend([CONFLICT] * 10)
    assert scene.refused(None).startswith("add reservation to claim default/c: ")
    assert len(scene.api.requests) == CONFLICT_TRIES


def test_a_lost_answer_is_settled_by_asking() -> None:
    scene = Scene(FREE.finalizer(FINALIZER))
    scene.api.faults.append((LOST, True))
    assert scene.reserve(NEW).status.reserved_for[0].name == "web"
    assert len(scene.api.requests) == 1


def test_a_busy_server_is_asked_again() -> None:
    scene = Scene(TAKEN)
    scene.api.faults.append(BUSY)
    assert scene.reserve(None).status.reserved_for
    assert len(scene.api.requests) == 2


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda writer, claim: writer.reserve(claim, WEB, NEW), id="finalizer"),
        pytest.param(lambda writer, _: writer.create(SPECIAL), id="special claim"),
    ],
)
def test_a_pod_lets_others_go_ahead_while_a_write_pauses(act: Any) -> None:
    scene = Scene(FREE)
    scene.api.faults.append(BUSY)
    scene.run(act)
    assert scene.waiting == [WEB.metadata.uid]


# --- after a failure --------------------------------------------------------------------------


def test_a_release_removes_one_reservation_and_keeps_the_allocation() -> None:
    scene = Scene(TAKEN.reserved_for(OTHER, WEB))

    async def act(writer: ClaimWriter, claim: Any) -> None:
        # The version that it was read at does not matter.
        scene.change({"metadata": {"labels": {"x": "y"}}})
        writer.release_soon(claim, WEB.metadata.uid)
        await asyncio.sleep(0)
        await writer.settled(claim.metadata.uid)

    scene.run(act)
    status = scene.raw()["status"]
    assert [each["name"] for each in status["reservedFor"]] == ["other"]
    assert status["allocation"]["devices"]["results"]
    assert scene.stored[-1].status.reserved_for[0].name == "other"


def test_a_release_whose_answer_was_lost_is_written_once() -> None:
    scene = Scene(TAKEN.reserved_for(OTHER, WEB))
    scene.api.faults.append((LOST, True))

    async def act(writer: ClaimWriter, claim: Any) -> None:
        writer.release_soon(claim, WEB.metadata.uid)
        await asyncio.sleep(0)
        await writer.settled(claim.metadata.uid)

    scene.run(act)
    assert scene.api.requests == [("PATCH", "resourceclaims/status", "c")]
    assert [each.name for each in scene.stored[-1].status.reserved_for] == ["other"]


def test_a_deallocation_empties_the_status() -> None:
    scene = Scene(TAKEN.reserved_for(WEB))
    scene.run(lambda writer, claim: writer.deallocate(claim, WEB.metadata.uid))
    assert scene.raw().get("status", {}) == {}


def test_a_changed_claim_is_not_deallocated_soon() -> None:
    scene = Scene(TAKEN)

    async def act(writer: ClaimWriter, claim: Any) -> None:
        scene.change({"status": {"devices": [{"driver": "d", "pool": "p", "device": "gpu-0"}]}})
        writer.deallocate_soon(claim)
        await asyncio.sleep(0)
        await writer.settled(claim.metadata.uid)

    scene.run(act)
    assert "allocation" in scene.raw()["status"]


def test_a_claim_that_another_pod_has_joined_is_not_deallocated() -> None:
    scene = Scene(TAKEN.reserved_for(WEB))

    async def act(writer: ClaimWriter, claim: Any) -> None:
        users = [{"resource": "pods", "name": n, "uid": n} for n in (WEB.metadata.uid, "other")]
        scene.change({"status": {"reservedFor": users}})
        await writer.deallocate(claim, WEB.metadata.uid)

    scene.run(act)
    assert "allocation" in scene.raw()["status"]


def test_a_failed_release_raises_nowhere() -> None:
    scene = Scene(TAKEN)
    scene.api.faults.append(REFUSED)

    async def act(writer: ClaimWriter, claim: Any) -> None:
        writer.release_soon(claim, WEB.metadata.uid)
        await asyncio.sleep(0)
        await writer.settled(claim.metadata.uid)

    scene.run(act)
    assert scene.stored == []


# --- special claims ---------------------------------------------------------------------------

SPECIAL = with_requests(
    new_special_claim(WEB, "made-up"), DeviceRequests(FREE.build().spec.devices.requests, ())
)


def test_a_special_claim_is_created_under_a_name_like_the_servers() -> None:
    scene = Scene(None)
    created = scene.run(lambda writer, _: writer.create(SPECIAL))
    assert created.metadata.name.startswith("web-extended-resources-")
    assert len(created.metadata.name) == len("web-extended-resources-") + 5
    assert created.metadata.owner_references == SPECIAL.metadata.owner_references
    assert created.spec == SPECIAL.spec
    assert created.metadata.finalizers == (FINALIZER,)
    assert scene.created == ["success"]


def test_a_lost_answer_leaves_one_special_claim() -> None:
    scene = Scene(None)
    scene.api.faults.append((LOST, True))
    created = scene.run(lambda writer, _: writer.create(SPECIAL))
    assert scene.api.requests == [("POST", "resourceclaims", created.metadata.name)]
    assert scene.created == ["success"]


def test_a_special_claim_that_cannot_be_created_is_the_reason() -> None:
    scene = Scene(None)
    scene.api.faults.append(REFUSED)
    with pytest.raises(ClaimWriteError, match=r"^create claim for extended .*not allowed$"):
        scene.run(lambda writer, _: writer.create(SPECIAL))
    assert scene.created == ["failure"]


def test_the_pod_shows_its_special_claim() -> None:
    scene = Scene(None)
    shown = PodExtendedResourceClaimStatus(
        (ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0"),),
        "web-x",
    )
    scene.run(lambda writer, _: writer.show_special_claim(WEB, shown))
    mapping = {
        "containerName": "main",
        "resourceName": "example.com/gpu",
        "requestName": "container-0-request-0",
    }
    patch = {"resourceClaimName": "web-x", "requestMappings": (mapping,)}
    assert scene.api.pod_statuses == [(WEB.metadata.uid, {"extendedResourceClaimStatus": patch})]


def test_a_special_claim_loses_its_finalizer_and_is_deleted() -> None:
    scene = Scene(TAKEN)

    async def act(writer: ClaimWriter, claim: Any) -> None:
        scene.change({"metadata": {"labels": {"x": "y"}}})
        writer.delete_soon(claim)
        await asyncio.sleep(0)
        await writer.settled(claim.metadata.uid)

    scene.run(act)
    verbs = [(verb, kind) for verb, kind, _ in scene.api.requests]
    assert verbs == [("PATCH", "resourceclaims")] * 2 + [("DELETE", "resourceclaims")]

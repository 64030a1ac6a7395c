"""Writes of volumes and claims: over the version that was read, each kind of answer settled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.api_writes.volume_writer import MAX_RETRIES, StorageWriter
from scheduler.client.errors import ApiError
from scheduler.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.storage_builders import claim, volume

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.storage_objects import PersistentVolume

BUSY = ApiError(429, "TooManyRequests", "later")
LOST = ApiError(None, "Disconnected", "no answer", ambiguous=True)


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


def claimed(api: FakeObjectApi) -> PersistentVolume:
    """Return the stored volume as it is to be written."""
    version = api.raw(PERSISTENT_VOLUMES, "", "pv")["metadata"]["resourceVersion"]
    return volume("pv").bound_to("data", uid="uid-data").version(int(version)).build()


def an_api(faults: Iterable[Any] = ()) -> FakeObjectApi:
    api = FakeObjectApi()
    metadata = {"uid": "uid-volume-pv"}
    api.put(PERSISTENT_VOLUMES, "", "pv", {"metadata": metadata, "spec": {"hostPath": {"a": 1}}})
    api.faults.extend(faults)
    return api


def write(api: FakeObjectApi, wanted: PersistentVolume) -> PersistentVolume:
    writer = StorageWriter(fake_ports(api, executor=FakeExecutor(no_wait)))
    return asyncio.run(writer.claim_volume(wanted))


def test_a_volume_is_written_with_all_it_had() -> None:
    api = an_api()
    written = write(api, claimed(api))
    stored = api.raw(PERSISTENT_VOLUMES, "", "pv")
    assert stored["spec"]["hostPath"] == {"a": 1}
    assert stored["spec"]["claimRef"]["uid"] == "uid-data"
    assert written.metadata.resource_version == stored["metadata"]["resourceVersion"]


def test_a_claim_is_written_with_its_annotations() -> None:
    api = FakeObjectApi()
    annotated = {"metadata": {"uid": "u", "annotations": {"old": "1"}}, "spec": {"x": 1}}
    api.put(PERSISTENT_VOLUME_CLAIMS, "default", "data", annotated)
    wanted = claim("data").annotation("old", "1").annotation("new", "2").version(101).build()
    writer = StorageWriter(fake_ports(api, executor=FakeExecutor(no_wait)))
    asyncio.run(writer.annotate_claim(wanted))
    stored = api.raw(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    assert (stored["metadata"]["annotations"], stored["spec"]) == (
        {"old": "1", "new": "2"},
        {"x": 1},
    )


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([BUSY], id="refused-once"),
        pytest.param([BUSY] * MAX_RETRIES, id="refused-often"),
        pytest.param([LOST], id="answer-lost-not-carried-out"),
        pytest.param([(LOST, True)], id="answer-lost-and-carried-out"),
        pytest.param([LOST, (LOST, True)], id="two-answers-lost"),
    ],
)
def test_a_write_gets_through(faults: list[Any]) -> None:
    api = an_api(faults)
    written = write(api, claimed(api))
    assert written.spec.claim_ref is not None
    assert written.spec.claim_ref.uid == "uid-data"


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        pytest.param([ApiError(422, "Invalid", "no")], 422, id="refused-for-good"),
        pytest.param([BUSY] * (MAX_RETRIES + 1), 429, id="refused-too-often"),
        pytest.param([ApiError(404, "NotFound", "gone")], 404, id="gone"),
        pytest.param([ApiError(403, "Forbidden", "no")], 403, id="forbidden"),
    ],
)
def test_a_write_that_cannot_be_made_says_so(faults: list[Any], status: int) -> None:
    api = an_api(faults)
    with pytest.raises(ApiError) as raised:
        write(api, claimed(api))
    assert raised.value.status == status


def test_a_version_that_somebody_else_changed_is_not_written_over() -> None:
    api = an_api()
    wanted = claimed(api)
    theirs = {"claimRef": {"namespace": "x", "name": "y", "uid": "z"}}
    api.change(PERSISTENT_VOLUMES, "", "pv", {"spec": theirs})
    with pytest.raises(ApiError) as raised:
        write(api, wanted)
    assert raised.value.status == 409
    assert api.raw(PERSISTENT_VOLUMES, "", "pv")["spec"]["claimRef"] == theirs["claimRef"]

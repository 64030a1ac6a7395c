"""The storage finds what the watches told it of."""

from __future__ import annotations

from msgspec.structs import replace

from cache.objects import ObjectMeta
from cache.storage import claim_class, volume_class
from cache.storage_objects import CSIStorageCapacity
from tests.storage_builders import (
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    storage_of,
    tell,
    version_of,
    volume,
)

BETA = "volume.beta.kubernetes.io/storage-class"


def test_volumes_are_found_by_class_and_claim() -> None:
    free = volume("free").of_class("fast").build()
    kept = volume("kept").of_class("fast").bound_to("data").build()
    storage = storage_of(free, kept, volume("other").of_class("slow").build())
    assert storage.volumes_of_class("fast") == (free,)
    assert storage.volumes_of_class("fast", ("default", "data")) == (kept,)


def test_a_claim_as_the_api_has_it_hides_what_is_assumed() -> None:
    data = claim("data").build()
    storage = storage_of(data)
    storage.claims.assume(claim("data").annotation("x", "y").build())
    assert storage.claim("default", "data") == data


def test_an_old_annotation_names_the_class_before_the_field() -> None:
    assert claim_class(claim("data").of_class("new").annotation(BETA, "old").build()) == "old"


def test_a_claim_without_a_class_has_none() -> None:
    assert claim_class(claim("data").build()) == ""


def test_an_old_annotation_names_a_volumes_class_before_the_field() -> None:
    made = volume("v").of_class("new").build()
    metadata = replace(made.metadata, annotations={BETA: "old"})
    assert volume_class(replace(made, metadata=metadata)) == "old"


def test_every_kind_is_found_and_gone_when_it_is_deleted() -> None:
    fast, driver, drivers = storage_class("fast"), csi_driver("d"), csi_node("n").build()
    tie = attachment("v", "n", "d")
    storage = storage_of(fast, driver, drivers, tie)
    assert storage.classes.get("fast") == fast
    assert storage.csi_drivers.get("d") == driver
    assert storage.csi_nodes.get("n") == drivers
    assert storage.attachments("n") == (tie,)
    for each in (fast, driver, drivers, tie):
        tell(storage, each, None)
    assert storage.classes.get("fast") is None
    assert storage.csi_drivers.get("d") is None
    assert storage.csi_nodes.get("n") is None
    assert storage.attachments("n") == ()


def test_a_mapping_of_csi_nodes_does_not_change_later() -> None:
    storage = storage_of(csi_node("n1").build())
    before = storage.csi_nodes.all()
    tell(storage, None, csi_node("n2").build())
    assert (set(before), set(storage.csi_nodes.all())) == ({"n1"}, {"n1", "n2"})


def test_capacities_are_found_by_class_and_follow_changes() -> None:
    room = CSIStorageCapacity(ObjectMeta(name="c", namespace="ns"), storage_class_name="fast")
    more = replace(room, capacity="5Gi")
    storage = storage_of(room)
    assert list(storage.capacities.by_index("fast")) == [room]
    tell(storage, room, more)
    assert list(storage.capacities.by_index("fast")) == [more]
    tell(storage, more, None)
    assert list(storage.capacities.by_index("fast")) == []


def test_every_change_shows_in_the_version() -> None:
    storage = storage_of()
    versions = [version_of(storage)]
    for each in (
        claim("c").build(),
        volume("v").build(),
        storage_class("fast"),
        csi_node("n").build(),
        csi_driver("d"),
        CSIStorageCapacity(ObjectMeta(name="c")),
        attachment("v", "n", "d"),
    ):
        tell(storage, None, each)
        versions.append(version_of(storage))
    storage.claims.assume(claim("c").annotation("x", "y").build())
    versions.append(version_of(storage))
    assert versions == sorted(set(versions))

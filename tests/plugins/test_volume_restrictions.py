from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.columns import NodesView
from cache.objects import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    Volume,
)
from plugins.framework.cluster_events import Hint
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, unresolvable
from plugins.volume_restrictions import CLAIM_IN_USE, DISK_IN_USE, VolumeRestrictions
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle
from tests.storage_builders import claim, storage_of

if TYPE_CHECKING:
    from cache.storage import Storage
    from plugins.framework.status import Status


def plugin(storage: Storage | None = None) -> VolumeRestrictions:
    return VolumeRestrictions(None, RecordingHandle(storage=storage))


def statuses(
    asked: PodBuilder, *placed: PodBuilder, storage: Storage | None = None
) -> tuple[Status, ...]:
    """What is said of node ``n1``, which holds the placed pods, and of the empty ``n2``."""
    made, state = plugin(storage), CycleState()
    nodes = NodesView.of([node("n1").info(*placed), node("n2").info()])
    pre = made.pre_filter(state, asked.info(), nodes).status
    if not pre.is_success:
        return (pre,)
    verdicts = made.filter(state, asked.info(), nodes)
    return tuple(verdicts.status_of(row) for row in range(2))


def gce(name: str, *, read_only: bool = False) -> Volume:
    return Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource(name, read_only))


def ebs(name: str, *, read_only: bool = False) -> Volume:
    return Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(name, read_only))


def iscsi(iqn: str, *, read_only: bool = False) -> Volume:
    return Volume("v", iscsi=ISCSIVolumeSource(iqn, read_only))


def rbd(*monitors: str, image: str = "i", pool: str = "p", read_only: bool = False) -> Volume:
    return Volume("v", rbd=RBDVolumeSource(monitors, image, pool, read_only))


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        pytest.param(gce("a"), gce("a"), True, id="gce-same"),
        pytest.param(gce("a"), gce("b"), False, id="gce-other"),
        pytest.param(gce("a", read_only=True), gce("a"), True, id="gce-they-write"),
        pytest.param(gce("a"), gce("a", read_only=True), True, id="gce-i-write"),
        pytest.param(gce("a", read_only=True), gce("a", read_only=True), False, id="gce-all-read"),
        pytest.param(ebs("a"), ebs("a"), True, id="ebs-same"),
        pytest.param(ebs("a"), ebs("b"), False, id="ebs-other"),
        pytest.param(
            ebs("a", read_only=True), ebs("a", read_only=True), True, id="ebs-even-if-all-read"
        ),
        pytest.param(iscsi("a"), iscsi("a", read_only=True), True, id="iscsi-i-write"),
        pytest.param(
            iscsi("a", read_only=True), iscsi("a", read_only=True), False, id="iscsi-all-read"
        ),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="rbd-one-monitor-in-common"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="rbd-other-monitors"),
        pytest.param(rbd("m"), rbd("m", image="j"), False, id="rbd-other-image"),
        pytest.param(rbd("m"), rbd("m", pool="q"), False, id="rbd-other-pool"),
        pytest.param(rbd("m", read_only=True), rbd("m", read_only=True), False, id="rbd-all-read"),
        pytest.param(gce("a"), ebs("a"), False, id="other-kind"),
    ],
)
def test_a_disk_of_a_node_excludes_others(mine: Volume, theirs: Volume, conflict: bool) -> None:
    placed = pod("placed").on("n1").volume(theirs)
    expected = DISK_IN_USE if conflict else SUCCESS
    assert statuses(pod().volume(mine), placed) == (expected, SUCCESS)


def test_one_who_writes_among_many_readers_excludes() -> None:
    readers = [pod(f"r{i}").on("n1").volume(gce("a", read_only=True)) for i in range(2)]
    writer = pod("w").on("n1").volume(gce("a"))
    asked = pod().volume(gce("a", read_only=True))
    assert statuses(asked, readers[0], writer, readers[1]) == (DISK_IN_USE, SUCCESS)


def test_a_pod_without_volumes_is_not_looked_at() -> None:
    assert statuses(pod()) == (SKIP,)


def test_a_missing_claim_rejects_the_pod() -> None:
    assert statuses(pod().claim("data")) == (
        unresolvable('persistentvolumeclaim "data" not found'),
    )


@pytest.mark.parametrize(
    ("modes", "placed", "expected"),
    [
        pytest.param(
            ("ReadWriteOncePod",), pod("p").on("n1").claim("data"), CLAIM_IN_USE, id="in use"
        ),
        pytest.param(("ReadWriteOncePod",), pod("p").on("n1"), SKIP, id="not in use"),
        pytest.param(
            ("ReadWriteOnce",), pod("p").on("n1").claim("data"), SKIP, id="another access mode"
        ),
        pytest.param(
            ("ReadWriteOncePod",),
            pod("p", namespace="other").on("n1").claim("data"),
            SKIP,
            id="the claim of another namespace",
        ),
    ],
)
def test_a_claim_for_one_pod_is_refused_to_others_everywhere(
    modes: tuple[str, ...], placed: PodBuilder, expected: Status
) -> None:
    storage = storage_of(claim("data").access(*modes).build())
    found = statuses(pod().claim("data"), placed, storage=storage)
    assert set(found) == {expected}


def test_a_disk_goes_before_a_claim() -> None:
    storage = storage_of(claim("data").access("ReadWriteOncePod").build())
    placed = pod("p").on("n1").claim("data").volume(ebs("a"))
    asked = pod().claim("data").volume(ebs("a"))
    assert statuses(asked, placed, storage=storage) == (DISK_IN_USE, CLAIM_IN_USE)


@pytest.mark.parametrize(
    ("victim", "expected"),
    [
        pytest.param(pod("p").on("n1").claim("data"), SUCCESS, id="who has the claim"),
        pytest.param(pod("q").on("n1"), CLAIM_IN_USE, id="somebody else"),
        pytest.param(
            pod("q", namespace="other").on("n1").claim("data"),
            CLAIM_IN_USE,
            id="who has the claim of that name in another namespace",
        ),
    ],
)
def test_preemption_helps_if_the_claim_becomes_free(victim: PodBuilder, expected: Status) -> None:
    storage = storage_of(claim("data").access("ReadWriteOncePod").build())
    holder = pod("p").on("n1").claim("data")
    others = [victim] if victim.build() != holder.build() else []
    place = node("n1").info(holder, *others)
    made, state, asked = plugin(storage), CycleState(), pod().claim("data").info()
    assert made.pre_filter(state, asked, NodesView.of([place])).status is SUCCESS
    removed = place.remove_pod(victim.info().uid)
    made.remove_pod(state, asked, removed, place)
    assert made.filter_one(state, asked, place) == expected


@pytest.mark.parametrize(
    ("gone", "hint"),
    [
        pytest.param(pod("p").volume(ebs("a")), Hint.QUEUE, id="had the disk"),
        pytest.param(pod("p").volume(ebs("b")), Hint.SKIP, id="had another disk"),
        pytest.param(pod("p").claim("data"), Hint.QUEUE, id="had the claim"),
        pytest.param(pod("p").claim("logs"), Hint.SKIP, id="had another claim"),
        pytest.param(
            pod("p", namespace="other").volume(ebs("a")), Hint.SKIP, id="in another namespace"
        ),
    ],
)
def test_a_pod_that_goes_wakes_whom_it_was_in_the_way_of(gone: PodBuilder, hint: Hint) -> None:
    (after_delete, _, _) = plugin().events_to_register()
    assert after_delete.hint is not None
    waiting = pod().claim("data").volume(ebs("a")).build()
    assert after_delete.hint(waiting, gone.build(), None) is hint


@pytest.mark.parametrize(
    ("new", "hint"),
    [
        pytest.param(claim("data"), Hint.QUEUE, id="its own"),
        pytest.param(claim("logs"), Hint.SKIP, id="another"),
        pytest.param(claim("data", namespace="other"), Hint.SKIP, id="of another namespace"),
    ],
)
def test_a_new_claim_wakes_who_waits_for_it(new: object, hint: Hint) -> None:
    (_, _, after_claim) = plugin().events_to_register()
    assert after_claim.hint is not None
    assert after_claim.hint(pod().claim("data").build(), None, new.build()) is hint  # type: ignore[attr-defined]

"""Which pods are rejected for their claims, and which nodes for a pod's volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cache.objects import AWSElasticBlockStoreVolumeSource, LabelSelector, ObjectMeta, Volume
from cache.storage_objects import (
    CSIStorageCapacity,
    ObjectReference,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from plugins.framework.status import Code
from tests.builders import node, pod, requirement, term
from tests.plugins.volume_binding.asking import (
    BIND_CONFLICT,
    NO_ROOM,
    NODE_CONFLICT,
    VOLUME_GONE,
    Assumed,
    assume,
    pre_filter,
    rejections,
)
from tests.storage_builders import (
    claim,
    csi_driver,
    csi_node,
    storage_class,
    storage_of,
    volume,
)

if TYPE_CHECKING:
    from cache.objects import NodeSelectorTerm, Pod
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from tests.storage_builders import VolumeBuilder

ZONE = "zone"
SELECTED = "volume.kubernetes.io/selected-node"

WEB = pod("web").claim("data").build()
SCRATCH = pod("web").ephemeral_claim("scratch").build()
LATE = storage_class("late")
BY_HAND = storage_class("late", "kubernetes.io/no-provisioner")
DATA = claim("data").of_class("late")

BY_NAME = (requirement("metadata.name", "In", "node-c"),)

NODE_A = node("node-a").label(ZONE, "a").info()
NODE_B = node("node-b").label(ZONE, "b").info()


def in_zone(*zones: str) -> NodeSelectorTerm:
    return term(requirement(ZONE, "In", *zones))


def free(name: str) -> VolumeBuilder:
    return volume(name).of_class("late")


def kept_for(claim_name: str, held: PersistentVolume) -> PersistentVolume:
    """Let somebody keep a volume for a claim by its name alone."""
    reference = ObjectReference("PersistentVolumeClaim", "default", claim_name)
    return replace(held, spec=replace(held.spec, claim_ref=reference))


# --- before the nodes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "asked", "reason"),
    [
        pytest.param(storage_of(), WEB, 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            storage_of(),
            SCRATCH,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            '"web-scratch"',
            id="ephemeral-not-made-yet",
        ),
        pytest.param(
            storage_of(claim("web-scratch").build()),
            SCRATCH,
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)",
            id="ephemeral-of-somebody-else",
        ),
        pytest.param(
            storage_of(claim("data").bound_to("pv").phase("Lost").build()),
            WEB,
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="lost",
        ),
        pytest.param(
            storage_of(claim("data").terminating().build()),
            WEB,
            'persistentvolumeclaim "data" is being deleted',
            id="being-deleted",
        ),
        pytest.param(
            storage_of(claim("data").build()),
            WEB,
            "pod has unbound immediate PersistentVolumeClaims",
            id="immediate",
        ),
        pytest.param(
            storage_of(LATE, DATA.bound_to("pv", completely=False).build()),
            WEB,
            "pod has unbound immediate PersistentVolumeClaims",
            id="kept-for-a-volume",
        ),
    ],
)
def test_a_pod_whose_claims_are_not_ready_is_rejected_on_all_nodes(
    storage: Storage, asked: Pod, reason: str
) -> None:
    status = pre_filter(storage, asked)
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod("web").build(), id="no-volume"),
        pytest.param(pod("web").volume(Volume("empty")).build(), id="a-volume-without-a-claim"),
    ],
)
def test_a_pod_without_claims_is_skipped(asked: Pod) -> None:
    assert pre_filter(storage_of(), asked).code is Code.SKIP


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    storage = storage_of(storage_class("odd", mode=None), claim("data").of_class("odd").build())
    with pytest.raises(ValueError, match='VolumeBindingMode not set for StorageClass "odd"'):
        pre_filter(storage, WEB)


def test_the_pods_own_ephemeral_claim_will_do() -> None:
    mine = claim("web-scratch").owned_by(SCRATCH).bound_to("pv").build()
    assert pre_filter(storage_of(mine), SCRATCH).is_success


# --- bound claims -----------------------------------------------------------------------------


def test_a_bound_volume_holds_the_pod_to_the_nodes_that_reach_it() -> None:
    storage = storage_of(
        claim("data").bound_to("pv").build(),
        volume("pv").bound_to("data").node_affinity(in_zone("a")).build(),
    )
    assert rejections(storage, WEB, NODE_A, NODE_B) == {"node-b": (NODE_CONFLICT,)}


def test_a_volume_that_is_gone_rules_out_every_node() -> None:
    storage = storage_of(claim("data").bound_to("pv").build())
    assert rejections(storage, WEB, NODE_A) == {"node-a": (VOLUME_GONE,)}


def test_a_volume_out_of_reach_is_told_before_one_that_is_gone() -> None:
    storage = storage_of(
        claim("data").bound_to("pv").build(),
        claim("more").bound_to("gone").build(),
        volume("pv").bound_to("data").node_affinity(in_zone("a")).build(),
    )
    asked = pod("web").claim("data").claim("more").build()
    assert rejections(storage, asked, NODE_A, NODE_B) == {
        "node-a": (VOLUME_GONE,),
        "node-b": (NODE_CONFLICT,),
    }


@pytest.mark.parametrize(
    ("demand", "rejected"),
    [
        pytest.param(term(fields=BY_NAME), set(), id="a-name-alone"),
        pytest.param(
            term(requirement(ZONE, "In", "a"), fields=BY_NAME), {"node-b"}, id="a-name-and-a-label"
        ),
    ],
)
def test_a_volumes_demand_on_the_nodes_name_is_passed_over(
    demand: NodeSelectorTerm, rejected: set[str]
) -> None:
    storage = storage_of(
        claim("data").bound_to("pv").build(),
        volume("pv").bound_to("data").node_affinity(demand).build(),
    )
    assert set(rejections(storage, WEB, NODE_A, NODE_B)) == rejected


@pytest.mark.parametrize(
    ("label", "is_reached"),
    [
        pytest.param("topology.ebs.csi.aws.com/zone", True, id="the-drivers-label"),
        pytest.param("topology.kubernetes.io/zone", False, id="the-old-label"),
    ],
)
def test_a_driver_reaches_an_in_tree_volume_by_its_own_label(label: str, is_reached: bool) -> None:
    storage = storage_of(
        claim("data").bound_to("pv").build(),
        volume("pv")
        .bound_to("data")
        .source(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))
        .node_affinity(term(requirement("topology.kubernetes.io/zone", "In", "a")))
        .build(),
        csi_node("migrated")
        .annotation("storage.alpha.kubernetes.io/migrated-plugins", "kubernetes.io/aws-ebs")
        .build(),
    )
    without_driver = node("old").label("topology.kubernetes.io/zone", "a").info()
    with_driver = node("migrated").label(label, "a").info()
    found = rejections(storage, WEB, without_driver, with_driver)
    assert found == ({} if is_reached else {"migrated": (NODE_CONFLICT,)})


# --- volumes that are there -------------------------------------------------------------------


def test_the_smallest_volume_that_fits_is_taken() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.size("2Gi").build(),
        free("small").size("1Gi").build(),
        free("large").size("9Gi").build(),
        free("right").size("3Gi").build(),
    )
    assert assume(storage, WEB, NODE_A) == Assumed({"data": "right"}, {})


def test_the_smallest_claim_chooses_first_and_no_volume_is_given_twice() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.size("2Gi").build(),
        claim("logs").of_class("late").size("1Gi").build(),
        free("two").size("2Gi").build(),
        free("three").size("3Gi").build(),
    )
    asked = pod("web").claim("data").claim("logs").build()
    assert assume(storage, asked, NODE_A) == Assumed({"logs": "two", "data": "three"}, {})


def test_a_node_is_rejected_where_two_claims_compete_for_one_volume() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.build(),
        claim("logs").of_class("late").build(),
        free("here").node_affinity(in_zone("a")).build(),
        free("there-1").node_affinity(in_zone("b")).build(),
        free("there-2").node_affinity(in_zone("b")).build(),
    )
    asked = pod("web").claim("data").claim("logs").build()
    assert rejections(storage, asked, NODE_A, NODE_B) == {"node-a": (BIND_CONFLICT,)}


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        pytest.param(DATA.build(), free("v").of_class("other"), id="another-class"),
        pytest.param(DATA.size("2Gi").build(), free("v"), id="too-small"),
        pytest.param(DATA.access("ReadWriteMany").build(), free("v"), id="access-mode"),
        pytest.param(
            replace(DATA.build(), spec=replace(DATA.build().spec, volume_mode="Block")),
            free("v"),
            id="volume-mode",
        ),
        pytest.param(
            replace(
                DATA.build(), spec=replace(DATA.build().spec, volume_attributes_class_name="gold")
            ),
            free("v"),
            id="attributes-class",
        ),
        pytest.param(
            replace(
                DATA.build(),
                spec=replace(
                    DATA.build().spec, selector=LabelSelector(match_labels={"disk": "ssd"})
                ),
            ),
            free("v").label("disk", "hdd"),
            id="selector",
        ),
        pytest.param(DATA.build(), free("v").bound_to("other"), id="bound-to-another-claim"),
        pytest.param(
            DATA.build(), free("v").bound_to("data", uid="an-older-one"), id="kept-for-a-namesake"
        ),
        pytest.param(
            DATA.build(), free("v").node_affinity(in_zone("b")), id="out-of-the-nodes-reach"
        ),
        pytest.param(
            DATA.build(), free("v").node_affinity(term()), id="demands-that-match-no-node"
        ),
    ],
)
def test_a_volume_that_does_not_suit_is_not_found(
    wanted: PersistentVolumeClaim, held: VolumeBuilder
) -> None:
    storage = storage_of(BY_HAND, wanted, held.build())
    assert rejections(storage, WEB, NODE_A) == {"node-a": (BIND_CONFLICT,)}


def test_a_volume_that_is_kept_for_the_claim_goes_before_a_smaller_one() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.build(),
        free("smaller").build(),
        kept_for("data", free("mine").size("9Gi").build()),
    )
    assert assume(storage, WEB, NODE_A).bound == {"data": "mine"}


def test_where_the_volume_kept_for_the_claim_is_out_of_reach_no_other_will_do() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.build(),
        free("any").build(),
        free("mine").bound_to("data").node_affinity(in_zone("b")).build(),
    )
    assert rejections(storage, WEB, NODE_A, NODE_B) == {"node-a": (BIND_CONFLICT,)}


def test_a_volume_that_is_assumed_for_another_claim_is_not_found() -> None:
    storage = storage_of(
        BY_HAND, DATA.build(), claim("other").of_class("late").build(), free("v").build()
    )
    assume(storage, pod("first").claim("other").build(), NODE_A)
    assert rejections(storage, WEB, NODE_A) == {"node-a": (BIND_CONFLICT,)}


# --- volumes to be made -----------------------------------------------------------------------


def test_a_claim_without_a_volume_gets_one_made_for_the_node() -> None:
    assert assume(storage_of(LATE, DATA.build()), WEB, NODE_A) == Assumed({}, {"data": "node-a"})


def test_a_claim_that_is_being_provisioned_holds_the_pod_to_that_node() -> None:
    storage = storage_of(LATE, DATA.annotation(SELECTED, "node-b").build(), free("v").build())
    assert rejections(storage, WEB, NODE_A, NODE_B) == {"node-a": (BIND_CONFLICT,)}


def test_claims_that_are_being_provisioned_for_two_nodes_rule_out_both() -> None:
    storage = storage_of(
        LATE,
        DATA.annotation(SELECTED, "node-a").build(),
        claim("more").of_class("late").annotation(SELECTED, "node-b").build(),
    )
    asked = pod("web").claim("data").claim("more").build()
    assert set(rejections(storage, asked, NODE_A, NODE_B)) == {"node-a", "node-b"}


def topology(*zones: str) -> TopologySelectorTerm:
    return TopologySelectorTerm((TopologySelectorLabelRequirement(ZONE, zones),))


@pytest.mark.parametrize(
    ("terms", "rejected"),
    [
        pytest.param((topology("a"),), {"node-b"}, id="one-zone"),
        pytest.param((topology("a"), topology("b")), set(), id="either-of-two-terms"),
        pytest.param((TopologySelectorTerm(),), {"node-a", "node-b"}, id="empty-matches-none"),
    ],
)
def test_volumes_are_made_where_the_class_allows(
    terms: tuple[TopologySelectorTerm, ...], rejected: set[str]
) -> None:
    storage = storage_of(storage_class("late", topologies=terms), DATA.build())
    found = rejections(storage, WEB, NODE_A, NODE_B)
    assert found == dict.fromkeys(rejected, (BIND_CONFLICT,))


def capacity(zone: str | None, room: str, largest: str | None = None) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        ObjectMeta(name=f"c-{zone}-{room}", namespace="kube-system"),
        None if zone is None else LabelSelector(match_labels={ZONE: zone}),
        "late",
        room,
        largest,
    )


@pytest.mark.parametrize(
    ("capacities", "rejected"),
    [
        pytest.param((), {"node-a", "node-b"}, id="nothing-known"),
        pytest.param((capacity("a", "5Gi"),), {"node-b"}, id="room-in-one-zone"),
        pytest.param((capacity("a", "1Mi"),), {"node-a", "node-b"}, id="too-little"),
        pytest.param((capacity("a", "5Gi", "1Mi"),), {"node-a", "node-b"}, id="too-small-volumes"),
        pytest.param((capacity("a", "1Mi", "5Gi"),), {"node-b"}, id="the-largest-volume-counts"),
        pytest.param((capacity(None, "5Gi"),), {"node-a", "node-b"}, id="room-nowhere"),
    ],
)
def test_volumes_are_made_where_the_driver_has_room(
    capacities: tuple[CSIStorageCapacity, ...], rejected: set[str]
) -> None:
    driver = csi_driver("csi.example.com", storage_capacity=True)
    storage = storage_of(LATE, driver, DATA.build(), *capacities)
    found = rejections(storage, WEB, NODE_A, NODE_B)
    assert found == dict.fromkeys(rejected, (NO_ROOM,))


def test_a_driver_that_does_not_tell_what_room_it_has_is_not_asked() -> None:
    storage = storage_of(LATE, csi_driver("csi.example.com"), DATA.build())
    assert rejections(storage, WEB, NODE_A) == {}


def test_reasons_of_bound_and_of_unbound_claims_stand_together() -> None:
    storage = storage_of(
        BY_HAND,
        DATA.build(),
        claim("old").bound_to("pv").build(),
        volume("pv").bound_to("old").node_affinity(in_zone("b")).build(),
    )
    asked = pod("web").claim("data").claim("old").build()
    assert rejections(storage, asked, NODE_A) == {"node-a": (NODE_CONFLICT, BIND_CONFLICT)}

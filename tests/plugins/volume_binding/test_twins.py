"""The vector filter, the scalar one and a plain search agree on random volumes and claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.label_selectors import compile_node_selector
from cache.objects import (
    AWSElasticBlockStoreVolumeSource,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    ObjectMeta,
    Pod,
)
from cache.quantity import exact_value
from cache.storage_objects import (
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeStatus,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from plugins.volume_binding import VolumeBinding
from tests.builders import node, pod, requirement, term
from tests.plugins import conformance
from tests.plugins.conformance import Cluster, Recipe, RecordingHandle
from tests.plugins.volume_binding.asking import BIND_CONFLICT, rejections
from tests.storage_builders import (
    StorageObject,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    storage_of,
    volume,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.objects import NodeSelectorTerm

NODES = [f"node-{index}" for index in range(6)]
ZONES = ["a", "b", "c"]
HOST = "host"
ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
SIZES = ["1Gi", "2Gi", "3Gi", "5Gi"]
CLASSES = ["late", "by-hand", "by-hand", "zonal", "counted"]
CLAIMS = ["c0", "c1", "c2", "c3"]
DRIVER = "csi.example.com"
COUNTING = "counting.example.com"

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Drawn:
    """A cluster, what is stored, and a pod with claims."""

    cluster: Cluster
    objects: tuple[StorageObject, ...]
    pod: Pod


def terms() -> st.SearchStrategy[NodeSelectorTerm]:
    """Demands of volumes: mostly one value of one label, now and then anything."""
    zones = st.lists(st.sampled_from(ZONES), min_size=1, max_size=2, unique=True)
    one_host = st.sampled_from(NODES).map(lambda name: term(requirement(HOST, "In", name)))
    one_zone = zones.map(lambda listed: term(requirement(ZONE, "In", *listed)))
    not_there = st.sampled_from(ZONES).map(lambda zone: term(requirement(ZONE, "NotIn", zone)))
    both = st.tuples(st.sampled_from(NODES), st.sampled_from(ZONES)).map(
        lambda pair: term(requirement(HOST, "In", pair[0]), requirement(ZONE, "In", pair[1]))
    )
    fields = st.sampled_from(["In", "NotIn"]).map(
        lambda operator: term(fields=(requirement("metadata.name", operator, "node-0"),))
    )
    others = st.sampled_from(
        [term(), term(requirement(ZONE, "Exists")), term(requirement(HOST, "Gt", "x"))]
    )
    return st.one_of(one_host, one_zone, one_zone, not_there, both, fields, others)


@st.composite
def volumes(draw: st.DrawFn, name: str) -> PersistentVolume:
    """Volumes, most of them free."""
    built = volume(name).of_class(draw(st.sampled_from(CLASSES))).size(draw(st.sampled_from(SIZES)))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        wanted = draw(st.lists(terms(), min_size=1, max_size=2))
        built = built.node_affinity(*wanted)
    if draw(st.booleans()) and draw(st.booleans()):
        built = built.access("ReadWriteOnce", "ReadWriteMany")
    built = built.label("disk", draw(st.sampled_from(["ssd", "hdd"])))
    made = built.build()
    rare = draw(st.integers(0, 11))
    spec, metadata, status = made.spec, made.metadata, made.status
    if rare < 4:
        uid = draw(st.sampled_from(["", "uid-claim-default-{}", "another"]))
        name_of_claim = draw(st.sampled_from(CLAIMS))
        reference = ObjectReference(
            "PersistentVolumeClaim", "default", name_of_claim, uid.format(name_of_claim)
        )
        spec = replace(spec, claim_ref=reference)
    elif rare == 4:
        status = PersistentVolumeStatus(phase="Released")
    elif rare == 5:
        spec = replace(spec, volume_mode="Block")
    elif rare == 6:
        metadata = replace(metadata, deletion_timestamp="2025-01-01T00:00:00Z")
    elif rare == 7:
        source = AWSElasticBlockStoreVolumeSource("vol-1")
        spec = replace(spec, aws_elastic_block_store=source)
    return replace(made, spec=spec, metadata=metadata, status=status)


@st.composite
def claims(draw: st.DrawFn, name: str, held: list[str]) -> PersistentVolumeClaim:
    """Claims, most of them without a volume yet."""
    built = claim(name).of_class(draw(st.sampled_from(CLASSES))).size(draw(st.sampled_from(SIZES)))
    kind = draw(st.integers(0, 7))
    if kind == 0:
        built = built.annotation("volume.kubernetes.io/selected-node", draw(st.sampled_from(NODES)))
    elif kind in (1, 2):
        built = built.bound_to(draw(st.sampled_from([*held, "gone"])))
    elif kind == 3:
        built = built.access("ReadWriteMany")
    made = built.build()
    if kind == 4:
        wanted = LabelSelectorRequirement("disk", "In", ("ssd",))
        selector = LabelSelector(match_expressions=(wanted,))
        made = replace(made, spec=replace(made.spec, selector=selector))
    return made


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Clusters with volumes, and a pod that wants some."""
    listed = draw(st.lists(st.sampled_from(NODES), unique=True, min_size=1))
    nodes: list[Node] = []
    for name in listed:
        zone = draw(st.sampled_from([*ZONES, None]))
        built = node(name).label(HOST, name)
        if zone is not None:
            built = built.label(ZONE, zone).label(EBS_ZONE, draw(st.sampled_from([zone, "a"])))
        nodes.append(built.build())
    held = [f"pv-{index}" for index in range(draw(st.integers(0, 8)))]
    names = draw(st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=4))
    asked = pod("web")
    for name in names:
        asked = asked.claim(name)
    topologies = tuple(
        TopologySelectorTerm(
            (TopologySelectorLabelRequirement(ZONE, (zone,)),) if zone is not None else ()
        )
        for zone in draw(st.lists(st.sampled_from([*ZONES, None]), min_size=1, max_size=2))
    )
    capacities = [
        CSIStorageCapacity(
            ObjectMeta(name=f"capacity-{index}", namespace="kube-system"),
            draw(
                st.sampled_from(
                    [
                        None,
                        LabelSelector(),
                        *(LabelSelector(match_labels={ZONE: zone}) for zone in ZONES),
                        LabelSelector(match_labels={ZONE: "a", HOST: "node-0"}),
                    ]
                )
            ),
            "counted",
            draw(st.sampled_from(SIZES)),
        )
        for index in range(draw(st.integers(0, 3)))
    ]
    migrated = draw(st.lists(st.sampled_from(NODES), unique=True, max_size=3))
    objects: list[StorageObject] = [
        storage_class("late", DRIVER),
        storage_class("by-hand", "kubernetes.io/no-provisioner"),
        storage_class("zonal", DRIVER, topologies=topologies),
        storage_class("counted", COUNTING),
        csi_driver(COUNTING, storage_capacity=True),
        *capacities,
        *(draw(volumes(name)) for name in held),
        *(draw(claims(name, held)) for name in dict.fromkeys(names)),
        *(
            csi_node(name)
            .annotation("storage.alpha.kubernetes.io/migrated-plugins", "kubernetes.io/aws-ebs")
            .build()
            for name in migrated
        ),
    ]
    return Drawn(Cluster(tuple(nodes), ()), tuple(objects), asked.build())


@given(case=drawn(), data=st.data())
@SETTINGS
def test_both_forms_agree_whatever_the_order_and_choice_of_nodes(
    case: Drawn, data: st.DataObject
) -> None:
    recipe = Recipe(
        VolumeBinding, handle=lambda: RecordingHandle(storage=storage_of(*case.objects))
    )
    conformance.check_filter_twins(recipe, case.cluster, case.pod)
    conformance.check_same_again(recipe, case.cluster, case.pod)
    rows = data.draw(st.permutations(range(len(case.cluster.nodes))))
    kept = rows[: data.draw(st.integers(0, len(rows)))]
    conformance.check_some_rows(recipe, case.cluster, case.pod, kept)


@given(case=drawn())
@SETTINGS
def test_one_static_claim_is_matched_as_a_plain_search_would(case: Drawn) -> None:
    wanted = claim("only").of_class("by-hand").size("2Gi").build()
    held = [each for each in case.objects if isinstance(each, PersistentVolume)]
    storage = storage_of(*case.objects, wanted)
    infos = list(case.cluster.snapshot().columns.node_infos)
    found = rejections(storage, pod("web").claim("only").build(), *infos)
    for info in infos:
        fits = any(_fits(each, info.labels) for each in held)
        assert found.get(info.name, ()) == (() if fits else (BIND_CONFLICT,))


def _fits(held: PersistentVolume, labels: Mapping[str, str]) -> bool:
    spec = held.spec
    affinity = spec.node_affinity
    return (
        spec.storage_class_name == "by-hand"
        and spec.claim_ref is None
        and spec.volume_mode is None
        and held.status.phase == "Available"
        and held.metadata.deletion_timestamp is None
        and exact_value(spec.capacity["storage"]) >= exact_value("2Gi")
        and (
            affinity is None
            or affinity.required is None
            or any(
                each.matches_labels(labels)
                for each in compile_node_selector(affinity.required).terms
            )
        )
    )

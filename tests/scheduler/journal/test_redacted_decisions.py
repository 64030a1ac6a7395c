"""Decisions that take strings apart come out of a redacted journal as they did before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from msgspec.structs import replace as changed

from cache.objects import (
    Container,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ImageVolumeSource,
    LabelSelector,
    Namespace,
    ObjectMeta,
    ResourceRequirements,
    Volume,
)
from cache.storage_objects import TopologySelectorLabelRequirement, TopologySelectorTerm
from cache.workload_objects import ReplicaSet, Service, ServiceSpec, SetSpec, WorkloadMeta
from plugins.framework.go_duration import duration_of_seconds
from scheduler.cli import main
from scheduler.journal.forms import NODE, STATUS
from tests.builders import names_term, node, pod, requirement, term
from tests.device_builders import (
    alternative,
    device,
    device_class,
    labels_selector,
    resource_claim,
    resource_slice,
    version,
)
from tests.scheduler.journal.decided import DecidedJournal, default_profile
from tests.scheduler.journal.journaled import replayed
from tests.scheduler.journal.test_redaction import assert_redacted
from tests.storage_builders import attachment, claim, csi_driver, csi_node, storage_class, volume
from tests.strategies import nodes, pods

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.config import EffectiveProfile

ZONE = "topology.kubernetes.io/zone"


def racks(journal: DecidedJournal, count: int = 4, **room: Any) -> None:
    room = {"cpu": "8", "memory": "16Gi", "pods": "10"} | room
    journal.nodes(
        node(f"node-{index}")
        .label("kubernetes.io/hostname", f"node-{index}")
        .label("rack", f"rack-{index % 2}")
        .label("vintage", str(9 + index))
        .zone(f"zone-{index % 2}")
        .capacity(room)
        .build()
        for index in range(count)
    )


def numbers(journal: DecidedJournal) -> list[list[Any]]:
    """9 < 10 as numbers, not as texts."""
    racks(journal)
    newer = pod("newer").node_affinity(term(requirement("vintage", "Gt", "010")))
    older = pod("older").node_affinity(term(requirement("vintage", "Lt", "10")))
    named = pod("named").node_affinity(term(requirement("vintage", "In", "12")))
    return [journal.decide(each.build()) for each in (newer, older, named)]


def fields(journal: DecidedJournal) -> list[list[Any]]:
    """The name of a node may be longer than the value of a label."""
    long = "node-" + "x" * 70
    journal.nodes(node(name).capacity(cpu="4", pods="9").build() for name in (long, "node-b"))
    return [
        journal.decide(pod("one").node_affinity(names_term(long)).build()),
        journal.decide(pod("two").node_affinity(names_term("node-b")).build()),
        journal.decide(pod("three").node_affinity(names_term("node-c")).build()),
    ]


def spread(journal: DecidedJournal) -> list[list[Any]]:
    racks(journal)
    return [
        journal.decide(
            pod(f"p{index}")
            .label("app", "web")
            .spread("rack", app="web")
            .pod_anti_affinity("kubernetes.io/hostname", app="web")
            .build()
        )
        for index in range(5)
    ]


def services(journal: DecidedJournal) -> list[list[Any]]:
    """Default spreading follows Services and ReplicaSets."""
    racks(journal)
    journal.know(
        Namespace(ObjectMeta(name="default", labels={"team": "a"})),
        Service(WorkloadMeta("web", "default"), ServiceSpec({"app": "web"})),
        ReplicaSet(WorkloadMeta("web-1", "default"), SetSpec(LabelSelector({"app": "web"}))),
    )
    return [journal.decide(pod(f"p{index}").label("app", "web").build()) for index in range(4)]


def taints(journal: DecidedJournal) -> list[list[Any]]:
    journal.nodes(
        node(name).capacity(cpu="4", pods="9").taint(key, value, effect=effect).build()
        for name, key, value, effect in (
            ("a", "tenant", "blue", "NoSchedule"),
            ("b", "tenant", "red", "NoSchedule"),
            ("c", "node.kubernetes.io/unschedulable", "", "NoSchedule"),
            ("d", "soft", "x", "PreferNoSchedule"),
        )
    )
    return [
        journal.decide(pod("one").toleration("tenant", value="red").build()),
        journal.decide(pod("two").build()),
    ]


def images(journal: DecidedJournal) -> list[list[Any]]:
    names = {"a": "shop:latest", "b": "shop", "c": "r:5000/s@sha256:0"}
    journal.nodes(
        node(name).capacity(cpu="4", pods="9").image(image, size_bytes=700 << 20).build()
        for name, image in names.items()
    )
    mounted = Volume(name="v", image=ImageVolumeSource("r:5000/s@sha256:0"))
    return [
        journal.decide(pod("one").image("shop").build()),
        journal.decide(pod("two").volume(mounted).build()),
    ]


def resources(journal: DecidedJournal) -> list[list[Any]]:
    others = {
        "a": {"amd.example/gpu": "2", "hugepages-2Mi": "1Gi"},
        "b": {"ignored.example/x": "0"},
        "c": {"kubernetes.io/batch": "1"},
    }
    journal.nodes(
        node(name).capacity({"cpu": "4", "pods": "9", **more}).build()
        for name, more in others.items()
    )
    return [
        journal.decide(pod("gpu").request({"amd.example/gpu": "2"}).build()),
        journal.decide(pod("huge").request({"hugepages-2Mi": "1Gi", "memory": "0"}).build()),
        journal.decide(pod("ignored").request({"ignored.example/y": "5"}).build()),
        journal.decide(pod("batch").request({"kubernetes.io/batch": "1"}).build()),
        journal.decide(pod("none").request({"zed.example/gpu": "1"}).build()),
    ]


def ports(journal: DecidedJournal) -> list[list[Any]]:
    racks(journal, 2)
    busy = pod("busy").host_port(80, ip="10.1.2.3").on("node-0").build()
    everywhere = pod("all").host_port(81).on("node-1").build()
    journal.running([busy, everywhere])
    return [
        journal.decide(pod("same").host_port(80, ip="10.1.2.3").build()),
        journal.decide(pod("other").host_port(80, ip="10.1.2.4").build()),
        journal.decide(pod("wide").host_port(80).build()),
        journal.decide(pod("one").host_port(81, ip="127.0.0.1").build()),
    ]


def claims(journal: DecidedJournal) -> list[list[Any]]:
    racks(journal)
    own = pod("web").ephemeral_claim("data").build()
    segments = (TopologySelectorLabelRequirement(ZONE, ("zone-1",)),)
    journal.know(
        storage_class("fast", topologies=(TopologySelectorTerm(segments),)),
        storage_class("local", "kubernetes.io/no-provisioner"),
        csi_driver("csi.example.com"),
        csi_node("node-0").driver("csi.example.com", limit=1).build(),
        csi_node("node-2").driver("csi.example.com", limit=1).build(),
        claim("web-data").of_class("fast").owned_by(own).build(),
        claim("disk").of_class("local").build(),
        claim("zoned").bound_to("v-zoned").build(),
        volume("v-zoned").zone("zone-0__zone-9").csi("csi.example.com").bound_to("zoned").build(),
        volume("v-local")
        .of_class("local")
        .node_affinity(term(requirement("kubernetes.io/hostname", "In", "node-3")))
        .build(),
        attachment("v-zoned", "node-0", "csi.example.com"),
    )
    shared = pod("reader").claim("web-data").build()
    return [
        journal.decide(each)
        for each in (
            own,
            shared,
            pod("local").claim("disk").build(),
            pod("zoned").claim("zoned").build(),
            pod("missing").claim("none").build(),
            pod("late").volume(Volume(name="v", ephemeral=EphemeralVolumeSource())).build(),
        )
    ]


def disks(journal: DecidedJournal) -> list[list[Any]]:
    racks(journal, 2)
    migrated = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"
    plugins = ("storage.alpha.kubernetes.io/migrated-plugins", migrated)
    disk = GCEPersistentDiskVolumeSource("disk-1")
    journal.know(
        csi_node("node-0").driver("pd.csi.storage.gke.io", limit=1).annotation(*plugins).build(),
        csi_node("node-1").driver("pd.csi.storage.gke.io", limit=1).annotation(*plugins).build(),
        volume("v1").zone("zone-0").source(gce_persistent_disk=disk).bound_to("c1").build(),
        claim("c1").bound_to("v1").build(),
    )
    inline = Volume(name="d", gce_persistent_disk=disk)
    others = [
        Volume(name=f"d{index}", gce_persistent_disk=GCEPersistentDiskVolumeSource(f"disk-{index}"))
        for index in (2, 3, 4)
    ]
    return [
        journal.decide(pod("zoned").claim("c1").build()),  # no node has the label of the driver
        journal.decide(pod("one").volume(inline).build()),
        journal.decide(pod("two").volume(inline).build()),
        *(journal.decide(pod(f"of-{each.name}").volume(each).build()) for each in others),
    ]


def devices(journal: DecidedJournal) -> list[list[Any]]:
    racks(journal)
    driver, other = "gpu.example.com", "nic.example.com"
    fast = device("fast").attribute("model", "a100 80GB")
    fast = fast.attribute("driverVersion", version("2.1.0"))
    slow = device("slow").attribute("model", "t4").attribute(f"{other}/numa", 1)
    broken = device("capable").capacity(memory="80Gi").taint("broken", "x")
    chosen = labels_selector("rack", "rack-0")
    big = f'device.capacity["{driver}"].memory >= quantity("9Gi")'
    own = f'device.attributes["{driver}"]'
    journal.know(
        resource_slice("s1", pool="p1", driver=driver)
        .on_node("node-1")
        .devices(fast, slow)
        .build(),
        resource_slice("s2", pool="p2", driver=driver)
        .on_nodes(chosen)
        .devices(slow, broken)
        .build(),
        device_class("none").selecting("false").build(),
        device_class("gpu").selecting(f'device.driver == "{driver}"').build(),
        device_class("fast")
        .selecting(f'{own}.model in ["a100 80GB", "h100"]')
        .extended_resource("example.com/fast")
        .build(),
        device_class("new")
        .selecting(f'{own}.driverVersion.isGreaterThan(semver("2.0.0"))')
        .build(),
        resource_claim("c-new").request("r", "new").build(),
        resource_claim("c-big").request("big", "gpu", big).build(),
        resource_claim("c-two")
        .request("a", "gpu")
        .request("b", "gpu")
        .distinct(f"{driver}/model")
        .build(),
        resource_claim("c-first")
        .first_available("r", alternative("x", "none"), alternative("y", "gpu"))
        .build(),
        resource_claim("c-alike")
        .first_available("r", alternative("x", "none"), alternative("y", "gpu", count=2))
        .match(f"{driver}/model", "r/y")
        .build(),
    )
    named = ("new", "big", "alike", "two", "first")
    wanted = [pod(name).resource_claim("c", f"c-{name}").build() for name in named]
    whole = ResourceRequirements(requests={"example.com/fast": "1", "cpu": "1"})
    extended = pod("extended").container(Container(name="main", resources=whole)).build()
    return [journal.decide(each) for each in (*wanted, extended)]


ROWS = [
    pytest.param(fill, id=fill.__name__)
    for fill in (
        *(numbers, fields, spread, services, taints, images, resources, ports),
        *(claims, disks, devices),
    )
]


def ignoring_resources() -> Any:
    """Return the default profile with arguments that name resources, nodes and labels."""
    profile = default_profile()
    weights = [{"name": "amd.example/gpu", "weight": 3}, {"name": "cpu", "weight": 1}]
    fit = {
        "ignoredResourceGroups": ["ignored.example"],
        "scoringStrategy": {"type": "MostAllocated", "resources": weights},
    }
    return replace(profile, args={**profile.args, "NodeResourcesFit": fit})


def added_affinity(profile: EffectiveProfile) -> EffectiveProfile:
    """Return a profile whose arguments name labels, namespaces and times."""
    asked = {"key": "rack", "operator": "In", "values": ["rack-1"]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [asked]}]}
    spread = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    args = {
        "NodeAffinity": {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}},
        "PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [spread]},
        "DynamicResources": {"filterTimeout": duration_of_seconds(5)},
    }
    return replace(profile, args={**profile.args, **args})


def test_arguments_of_plugins_mean_the_same(tmp_path: Path) -> None:
    journal = DecidedJournal(added_affinity(default_profile()))
    forms = services(journal)
    assert {form[NODE] for form in forms} == {"node-1", "node-3"}
    journal.write(tmp_path / "journal")
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")
    assert replayed(tmp_path / "redacted").equal == len(forms)


@pytest.mark.parametrize("fill", ROWS)
def test_decisions_are_the_same(
    fill: Callable[[DecidedJournal], list[list[Any]]], tmp_path: Path
) -> None:
    journal = DecidedJournal(ignoring_resources() if fill is resources else None)
    forms = fill(journal)
    journal.write(tmp_path / "journal")
    # A row with decisions of one outcome only would hold whatever the aliases are.
    outcomes = {(form[NODE], str(form[STATUS][1])) for form in forms}
    assert len(outcomes) > 1
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")
    assert replayed(tmp_path / "redacted").equal == len(forms)


@settings(max_examples=25)
@given(st.data())
def test_decisions_about_any_nodes_and_pods_are_the_same(data: st.DataObject) -> None:
    journal = DecidedJournal()
    named = {each.metadata.name: each for each in data.draw(st.lists(nodes(), max_size=5))}
    journal.nodes(named.values())
    running = [
        data.draw(pods(name=f"r{index}", node_name=data.draw(st.sampled_from(sorted(named)))))
        for index in range(data.draw(st.integers(0, 3 if named else 0)))
    ]
    journal.running(running)
    pending = [data.draw(pods(name=f"p{index}")) for index in range(3)]
    for each in pending:
        journal.decide(changed(each, spec=changed(each.spec, scheduler_name="berth")))
    with tempfile.TemporaryDirectory() as folder:
        journal.write(Path(folder) / "journal")
        assert_redacted(Path(folder) / "journal", Path(folder) / "redacted")
        assert replayed(Path(folder) / "redacted").equal == 3


def test_an_expression_that_looks_into_texts_is_hidden_and_said_to_be(tmp_path: Path) -> None:
    journal = DecidedJournal()
    racks(journal)
    lettered = 'device.attributes["gpu.example.com"].model.startsWith("a")'
    only = device("d").attribute("model", "a100")
    journal.know(
        resource_slice("s").on_node("node-1").devices(only).build(),
        device_class("a").selecting(lettered).build(),
        resource_claim("c").request("r", "a").build(),
    )
    assert journal.decide(pod("p").resource_claim("c", "c").build())[NODE] == "node-1"
    journal.write(tmp_path / "journal")
    assert main(["journal", "redact", str(tmp_path / "journal"), "-o", str(tmp_path / "new")]) == 0
    counts = replayed(tmp_path / "new")
    assert counts.not_compared == {"redaction hides what it depends on": 1}
    assert not counts.differences

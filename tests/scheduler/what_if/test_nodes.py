from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import ObjectMeta
from cache.storage_objects import CSINode
from scheduler.what_if import QuestionError
from tests.builders import pod
from tests.device_builders import device, device_class, resource_claim, resource_slice
from tests.scheduler.what_if.clusters import (
    ask,
    budget,
    cluster_of,
    machine,
    manifest,
    moves,
    running,
)

ONE = machine("n1").label("pool", "a")


def test_added_nodes_take_pods():
    cluster = cluster_of(ONE, running("web", "n1", "4"))
    found = ask(cluster, add=[{"like": "n1", "count": 2}], objects=[manifest()], replicas=9)
    assert (found.placed, found.refused) == (8, 1)
    assert found.nodes == {"n1-new-1": 4, "n1-new-2": 4}


def test_an_added_node_has_its_own_host_name_and_all_other_labels():
    cluster = cluster_of(ONE)
    ask(cluster, add=[{"like": "n1"}])
    labels = cluster.nodes["n1-new-1"].metadata.labels
    assert labels == {"kubernetes.io/hostname": "n1-new-1", "pool": "a"}


@pytest.mark.parametrize(
    ("like", "placed"),
    [
        pytest.param(ONE.unschedulable(), 1, id="cordoned"),
        pytest.param(ONE.taint("node.kubernetes.io/not-ready"), 1, id="not ready"),
        pytest.param(ONE.taint("gpu"), 0, id="tainted on purpose"),
    ],
)
def test_an_added_node_begins_without_what_its_like_suffers_from(like, placed):
    found = ask(cluster_of(like), add=[{"like": "n1"}], objects=[manifest()])
    assert found.placed == placed


@pytest.mark.parametrize(
    ("kind", "placed"),
    [
        pytest.param("DaemonSet", 3, id="of a DaemonSet"),
        pytest.param("Node", 3, id="static"),
        pytest.param("ReplicaSet", 4, id="of a ReplicaSet"),
    ],
)
def test_an_added_node_runs_what_every_such_node_runs(kind, placed):
    full = cluster_of(ONE.taint("full"), running("agent", "n1", kind=kind))
    full.add_node(replace(machine("n2").build()))
    full.add_pod(running("all", "n2", "4"))
    on_new = manifest(
        tolerations=[{"operator": "Exists"}], nodeSelector={"kubernetes.io/hostname": "n1-new-1"}
    )
    found = ask(full, add=[{"like": "n1"}], objects=[on_new], replicas=5)
    assert found.placed == placed


def test_an_added_node_has_the_volume_limits_and_devices_of_its_like():
    cluster = cluster_of(ONE)
    known = cluster.known
    known.storage.csi_nodes.changed(None, CSINode(ObjectMeta(name="n1")))
    known.devices.slices.changed(
        None, resource_slice("s").on_node("n1").devices(device("gpu-0")).build()
    )
    ask(cluster, add=[{"like": "n1", "count": 2}])
    assert known.storage.csi_nodes.get("n1-new-2") is not None
    (made,) = known.devices.slices.view().by_node["n1-new-2"]
    assert made.spec.pool.name != known.devices.slices.view().by_node["n1"][0].spec.pool.name


def test_devices_of_added_nodes_can_be_allocated():
    cluster = cluster_of(ONE)
    devices = cluster.known.devices
    devices.classes.changed(None, device_class("gpu").build())
    devices.slices.changed(None, resource_slice("s").on_node("n1").devices(device("gpu-0")).build())
    objects = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu"},
            "spec": {
                "spec": {
                    "devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}
                }
            },
        },
        manifest(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]),
    ]
    found = ask(cluster, add=[{"like": "n1"}], objects=objects, replicas=3)
    assert (found.placed, found.refused) == (2, 1)
    assert "cannot allocate all claims" in found.reason


def test_the_devices_of_evicted_pods_are_asked_for_again():
    cluster = cluster_of(ONE, machine("n2"))
    devices = cluster.known.devices
    devices.classes.changed(None, device_class("gpu").build())
    for name in ("n1", "n2"):
        devices.slices.changed(
            None, resource_slice(f"s-{name}").on_node(name).devices(device(f"gpu-{name}")).build()
        )
    user = running("web", "n1")
    user = replace(
        user,
        spec=pod().resource_claim("gpu", template="one-gpu").build().spec,
        status=pod().generated_claim("gpu", "web-gpu-x").build().status,
    )
    user = replace(user, spec=replace(user.spec, node_name="n1"))
    claim = resource_claim("web-gpu-x").request("g", "gpu").build()
    devices.claims.changed(None, claim)
    cluster.add_pod(user)
    found = ask(cluster, drain=["n1"])
    assert moves(found) == {"default/web": ("n1", "n2")}


def test_pods_of_a_removed_node_are_replaced_whatever_their_budget_says():
    cluster = cluster_of(ONE, machine("n2"), running("web", "n1", app="web"), budget(0, app="web"))
    found = ask(cluster, remove=["n1"])
    assert moves(found) == {"default/web": ("n1", "n2")}
    assert "n1" not in cluster.nodes


@pytest.mark.parametrize(
    ("lost", "notes"),
    [
        pytest.param(pod("bare").on("n1"), 1, id="bare"),
        pytest.param(running("agent", "n1", kind="DaemonSet"), 0, id="of a DaemonSet"),
        pytest.param(running("static", "n1", kind="Node"), 0, id="static"),
    ],
)
def test_some_pods_end_with_their_node(lost, notes):
    found = ask(cluster_of(ONE, machine("n2"), lost), remove=["n1"])
    assert (found.placed, found.refused, len(found.notes)) == (0, 0, notes)


def test_a_removed_node_counts_against_the_budget_of_a_drain():
    cluster = cluster_of(
        ONE,
        machine("n2"),
        machine("n3", "1"),
        running("web-1", "n1", "2", app="web"),
        running("web-2", "n2", app="web"),
        budget(1, app="web"),
    )
    found = ask(cluster, remove=["n1"], drain=["n2"])
    assert len(found.drains[0].blocked) == 1


def test_nodes_are_exchanged():
    cluster = cluster_of(ONE, running("web", "n1", "3"))
    found = ask(cluster, add=[{"like": "n1"}], drain=["n1"], remove=["n1"])
    assert moves(found) == {"default/web": ("n1", "n1-new-1")}
    assert set(cluster.nodes) == {"n1-new-1"}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        pytest.param({"drain": ["n1", "n9"]}, "drain[1]", id="drain"),
        pytest.param({"remove": ["n9"]}, "remove[0]", id="remove"),
        pytest.param({"add": [{"like": "n9"}]}, "add[0].like", id="like"),
    ],
)
def test_a_node_that_does_not_exist_is_a_mistake(question, path):
    with pytest.raises(QuestionError, match="there is no node 'n9' among 1") as caught:
        ask(cluster_of(ONE), **question)
    assert caught.value.path == path

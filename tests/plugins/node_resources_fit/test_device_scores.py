"""Extended resources that a DeviceClass provides: scores, verdicts and hints."""

from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Hint, Resource
from plugins.framework.cycle_state import CycleState
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from plugins.node_resources_fit.args import ScoringStrategy
from plugins.resource_scorer import ResourceSpec
from tests.builders import node, pod
from tests.device_builders import (
    DeviceClassBuilder,
    allocated,
    device,
    device_class,
    resource_claim,
    resource_slice,
)
from tests.plugins.conformance import RecordingHandle
from tests.plugins.hints_of import ask

GPU = "example.com/gpu"
ASKS = pod("web").request({GPU: "1"})


def scores(*, selecting: tuple[str, ...] = (), scored: str = GPU) -> dict[str, int]:
    """Return the scores of a node with devices, one with a device plugin, and an empty one."""
    handle = RecordingHandle()
    devices = handle.devices
    gpus = device_class("gpus").extended_resource(GPU).selecting(*selecting)
    devices.classes.changed(None, gpus.build())
    published = (
        resource_slice(pool="n1")
        .on_node("n1")
        .devices(*(device(f"gpu-{i}").attribute("model", "a" if i < 2 else "b") for i in range(4)))
    )
    devices.slices.changed(None, published.build())
    taken = resource_claim("c").allocated(allocated("gpu-0", pool="n1"))
    devices.claims.changed(None, taken.build())
    strategy = ScoringStrategy("LeastAllocated", resources=(ResourceSpec(scored, 1),))
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), handle)
    infos = [node("n1").info(), node("n2").capacity({GPU: "4"}).info(), node("n3").info()]
    view, state = NodesView.of(infos), CycleState()
    plugin.pre_filter(state, ASKS.info(), view)
    plugin.pre_score(state, ASKS.info(), view)
    found = plugin.score(state, ASKS.info(), view).tolist()
    assert found == [plugin.score_one(state, ASKS.info(), each) for each in infos]
    return dict(zip(("n1", "n2", "n3"), found, strict=True))


def test_devices_count_where_the_node_does_not_report_the_resource() -> None:
    # One of four is in use and one is asked for; of the device plugin's four none is in use.
    assert scores() == {"n1": 50, "n2": 75, "n3": 0}


def test_only_devices_of_the_class_count() -> None:
    model = "device.attributes['gpu.example.com'].model"
    assert scores(selecting=(f"{model} == 'b'",))["n1"] == 50
    assert scores(selecting=(f"{model} == 'a'",))["n1"] == 0


def test_a_selector_that_fails_counts_no_devices() -> None:
    assert scores(selecting=("device.attributes['x.org'].y == 1",))["n1"] == 0


def test_resources_that_are_not_in_the_arguments_do_not_count() -> None:
    assert set(scores(scored="example.com/other").values()) == {0}


@pytest.mark.parametrize("scored", [GPU, "example.com/other"])
def test_a_pod_whose_score_counts_devices_is_not_signed(scored: str) -> None:
    handle = RecordingHandle()
    gpus = device_class("gpus").extended_resource(GPU)
    handle.devices.classes.changed(None, gpus.build())
    strategy = ScoringStrategy("LeastAllocated", resources=(ResourceSpec(scored, 1),))
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), handle)
    assert (plugin.signature(ASKS.info()) is None) is (scored == GPU)


def test_a_device_that_is_taken_later_counts_from_then_on() -> None:
    handle = RecordingHandle()
    handle.devices.classes.changed(None, device_class("g").extended_resource(GPU).build())
    published = resource_slice(pool="n1").on_node("n1").devices("a", "b", "c", "d")
    handle.devices.slices.changed(None, published.build())
    strategy = ScoringStrategy("LeastAllocated", resources=(ResourceSpec(GPU, 1),))
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), handle)
    before = plugin.score_one(CycleState(), ASKS.info(), node("n1").info())
    taken = resource_claim("c").allocated(allocated("a", pool="n1"))
    handle.devices.claims.changed(None, taken.build())
    after = plugin.score_one(CycleState(), ASKS.info(), node("n1").info())
    assert (before, after) == (75, 50)


# --- filter and hints -------------------------------------------------------------------------


def fit(*classes: DeviceClassBuilder) -> NodeResourcesFit:
    handle = RecordingHandle()
    for each in classes:
        handle.devices.classes.changed(None, each.build())
    return NodeResourcesFit(None, handle)


MAPPED = device_class("gpus").extended_resource(GPU)


@pytest.mark.parametrize(
    ("classes", "capacity", "reasons"),
    [
        pytest.param((MAPPED,), {}, (), id="not reported"),
        pytest.param((MAPPED,), {GPU: "0"}, (), id="reported as 0"),
        pytest.param((MAPPED,), {GPU: "1"}, (f"Insufficient {GPU}",), id="reported and too few"),
        pytest.param((MAPPED,), {GPU: "2"}, (), id="reported and enough"),
        pytest.param((), {}, (f"Insufficient {GPU}",), id="no class"),
    ],
)
def test_a_class_provides_what_the_node_does_not_report(classes, capacity, reasons) -> None:
    plugin, asks = fit(*classes), pod("web").request({GPU: "2"})
    infos = [node("n1").capacity(capacity).info(), node("n2").capacity({GPU: "9"}).info()]
    view, state = NodesView.of(infos), CycleState()
    plugin.pre_filter(state, asks.info(), view)
    assert plugin.filter(state, asks.info(), view).status_of(0).reasons == reasons
    assert plugin.filter_one(state, asks.info(), infos[0]).reasons == reasons


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, MAPPED, Hint.QUEUE, id="added"),
        pytest.param(device_class("gpus"), MAPPED, Hint.QUEUE, id="gets the name"),
        pytest.param(MAPPED, MAPPED.selecting("true"), Hint.SKIP, id="keeps the name"),
        pytest.param(MAPPED, device_class("gpus"), Hint.SKIP, id="loses the name"),
        pytest.param(None, device_class("other"), Hint.SKIP, id="another one"),
    ],
)
def test_a_class_wakes_the_pods_that_ask_for_its_resource(old, new, hint) -> None:
    before = None if old is None else old.build()
    assert ask(fit(new), Resource.DEVICE_CLASS, ASKS.build(), before, new.build()) is hint


def test_a_new_class_wakes_the_pods_that_ask_for_it_by_name() -> None:
    implicit = pod("web").request({"deviceclass.resource.kubernetes.io/gpus": "1"}).build()
    new = device_class("gpus").build()
    assert ask(fit(), Resource.DEVICE_CLASS, implicit, None, new) is Hint.QUEUE


def test_a_node_that_stops_to_report_a_resource_may_have_devices() -> None:
    old = node("n1").capacity({GPU: "1"}).build()
    asks = pod("web").request({GPU: "2"}).build()
    new = node("n1").build()
    assert ask(fit(MAPPED), Resource.NODE, asks, old, new) is Hint.QUEUE
    assert ask(fit(), Resource.NODE, asks, old, new) is Hint.SKIP

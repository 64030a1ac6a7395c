"""What the plugin says of pods and nodes before anything is reserved."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.device_objects import DeviceCondition, DeviceRequest
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from tests.builders import node, pod
from tests.device_builders import (
    DeviceBuilder,
    allocated,
    alternative,
    device,
    device_class,
    name_selector,
    resource_claim,
)
from tests.plugins.dynamic_resources.device_world import STAMP, DeviceWorld

WEB = pod("web").resource_claim("r", "c")
CLAIM = resource_claim("c").request("r", "gpu")
FINALIZER = "resource.kubernetes.io/delete-protection"
SPECIAL = "resource.kubernetes.io/extended-resource-claim"


# --- before the nodes -------------------------------------------------------------------------


def test_a_pod_waits_at_the_gate_until_its_claim_exists() -> None:
    world = DeviceWorld()
    before = world.plugin.pre_enqueue(WEB.build())
    world.claim(CLAIM)
    after = world.plugin.pre_enqueue(WEB.build())
    assert before.reasons == ('could not find ResourceClaim "default/c"',)
    assert before.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert after.is_success


def test_a_pod_without_claims_is_skipped() -> None:
    assert DeviceWorld().cycle(pod("web")).pre_filter.code is Code.SKIP


def test_a_pod_whose_claims_are_not_needed_is_skipped() -> None:
    waiting = pod("web").resource_claim("r", template="t").generated_claim("r", None)
    assert DeviceWorld().cycle(waiting).pre_filter.code is Code.SKIP


@pytest.mark.parametrize(
    ("claim", "code", "why"),
    [
        pytest.param(
            CLAIM.request("s", "nic"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request s: device class nic does not exist",
            id="unknown class",
        ),
        pytest.param(
            resource_claim("c").first_available(
                "r", alternative("a", "gpu"), alternative("b", "nic")
            ),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r/b: device class nic does not exist",
            id="unknown class of the last alternative",
        ),
        pytest.param(
            resource_claim("c").request("r", ""),
            Code.ERROR,
            "request r: unsupported request type",
            id="no class",
        ),
        pytest.param(
            resource_claim("c")._request(DeviceRequest("r")),  # no word for it
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/c, request r: unknown request type",
            id="neither form",
        ),
    ],
)
def test_requests_are_checked_before_the_nodes(claim, code, why) -> None:
    world = DeviceWorld()
    world.claim(claim)
    status = world.cycle(WEB).pre_filter
    assert (status.code, status.message) == (code, why)


def test_a_claim_in_flight_is_waited_for() -> None:
    world = DeviceWorld().local("n1", "gpu-0", "gpu-1")
    world.claim(CLAIM)
    assert world.cycle(WEB).reserve().is_success
    other = pod("other").resource_claim("r", "c")
    why = "resource claim default/c is in the process of being allocated"
    assert world.cycle(other).refusal() == why


# --- nodes ------------------------------------------------------------------------------------


def test_the_node_with_the_device_is_the_only_one() -> None:
    world = DeviceWorld("n1", "n2", "n3").local("n2", "gpu-0")
    world.claim(CLAIM)
    cycle = world.cycle(WEB)
    assert cycle.feasible() == ["n2"]
    assert cycle.said["n1"].reasons == ("cannot allocate all claims",)
    assert cycle.said["n1"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_nodes_of_an_allocated_claim_are_the_only_ones() -> None:
    world = DeviceWorld("n1", "n2")
    world.claim(CLAIM.allocated(allocated("gpu-0"), nodes=name_selector("n2")))
    cycle = world.cycle(WEB)
    assert cycle.feasible() == ["n2"]
    assert cycle.said["n1"].reasons == ("resourceclaim not available on the node",)


def test_taints_that_came_after_the_allocation_do_not_matter() -> None:
    world = DeviceWorld("n1").local("n1", device("gpu-0").taint("broken", effect="NoExecute"))
    world.claim(CLAIM.allocated(allocated("gpu-0", pool="n1"), nodes="n1"))
    assert world.cycle(WEB).feasible() == ["n1"]


CONDITIONAL = CLAIM.allocated(
    allocated("gpu-0", conditions=("Ready",), failures=("Broken",)), at=STAMP
)


@pytest.mark.parametrize(
    ("claim", "after_s", "passes"),
    [
        pytest.param(CONDITIONAL, 10.0, True, id="not ready yet"),
        pytest.param(CONDITIONAL, 601.0, False, id="too late"),
        pytest.param(
            CONDITIONAL.condition("gpu-0", DeviceCondition("Ready", "True")),
            601.0,
            True,
            id="ready in time",
        ),
        pytest.param(
            CONDITIONAL.condition("gpu-0", DeviceCondition("Broken", "True")),
            10.0,
            False,
            id="failed",
        ),
    ],
)
def test_binding_conditions_keep_a_claim_from_all_nodes(claim, after_s, passes) -> None:
    world = DeviceWorld("n1", "n2")
    world.now_s += after_s
    world.claim(claim)
    assert bool(world.cycle(WEB).feasible()) is passes


def test_a_new_allocation_is_looked_for_even_where_another_claim_is_not_available() -> None:
    world = DeviceWorld("n1")
    world.claim(CLAIM)
    world.claim(resource_claim("d").allocated(allocated("nic"), nodes="other"))
    cycle = world.cycle(WEB.resource_claim("s", "d"))
    assert cycle.refusal() == "cannot allocate all claims"
    assert cycle.post_filter() == "still not schedulable"


def test_an_error_on_one_node_ends_the_cycle() -> None:
    world = DeviceWorld("n1", "n2").local("n1", "gpu-0").local("n2", "gpu-1")
    world.classes(device_class("bad").selecting("device.attributes['x.org'].y == 1"))
    world.claim(resource_claim("c").request("r", "bad"))
    with pytest.raises(Exception, match="CEL runtime error: no such key: y"):
        world.cycle(WEB)


def test_the_scalar_form_says_the_same() -> None:
    world = DeviceWorld("n1", "n2").local("n2", "gpu-0")
    world.claim(CLAIM)
    cycle = world.cycle(WEB)
    infos = world.nodes.node_infos()
    state = CycleState()
    world.plugin.pre_filter(state, cycle.info, world.nodes)
    singly = {each.name: world.plugin.filter_one(state, cycle.info, each) for each in infos}
    assert singly == cycle.said


COUNTS = st.lists(st.integers(0, 3), min_size=3, max_size=3)


@settings(max_examples=40, deadline=None)
@given(COUNTS, COUNTS, st.integers(1, 3), st.booleans())
def test_counting_says_what_the_search_says(devices, used, wanted, is_shared) -> None:
    names = ("n1", "n2", "n3")
    world = DeviceWorld(*names)
    for name, count, taken in zip(names, devices, used, strict=True):
        published = [device(f"d{i}") for i in range(count)]
        world.local(name, *(each.shared() if is_shared else each for each in published))
        for index in range(min(taken, count)):
            held = resource_claim(f"{name}-{index}")
            world.claim(held.allocated(allocated(f"d{index}", pool=name), nodes=name))
    world.claim(resource_claim("c").request("r", "gpu", count=wanted))
    cycle = world.cycle(WEB)
    state = CycleState()
    world.plugin.pre_filter(state, cycle.info, world.nodes)
    infos = world.nodes.node_infos()
    singly = {each.name: world.plugin.filter_one(state, cycle.info, each) for each in infos}
    assert singly == cycle.said


KINDS = st.lists(st.sampled_from(["big", "mid", "small", "taken big", "shared mid"]), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(KINDS, min_size=3, max_size=3), st.lists(st.integers(1, 2), min_size=3, max_size=3))
def test_counted_alternatives_are_those_of_the_search(nodes, counts) -> None:
    names = ("n1", "n2", "n3")
    world = three_classes(DeviceWorld(*names))
    for name, kinds in zip(names, nodes, strict=True):
        published = [sized(f"d{i}", kind.split()[-1]) for i, kind in enumerate(kinds)]
        world.local(
            name,
            *(
                each.shared() if kind.startswith("shared") else each
                for each, kind in zip(published, kinds, strict=True)
            ),
        )
        for index, kind in enumerate(kinds):
            if kind.startswith("taken"):
                held = resource_claim(f"{name}-{index}")
                world.claim(held.allocated(allocated(f"d{index}", pool=name), nodes=name))
    asked = [
        alternative(kind, kind, count=count)
        for kind, count in zip(("big", "mid", "small"), counts, strict=True)
    ]
    world.claim(resource_claim("c").first_available("r", *asked))
    cycle = world.cycle(WEB)
    scores = {name: raw for name, (raw, _) in cycle.scores().items()}
    state = CycleState()
    world.plugin.pre_filter(state, cycle.info, world.nodes)
    infos = world.nodes.node_infos()
    singly = {each.name: world.plugin.filter_one(state, cycle.info, each) for each in infos}
    assert singly == cycle.said
    assert scores == {
        each.name: world.plugin.score_one(state, cycle.info, each)
        for each in infos
        if singly[each.name].is_success
    }


WHERE = st.sampled_from(["", "n1", "n2", "gone"])


@settings(max_examples=40, deadline=None)
@given(st.lists(WHERE, min_size=1, max_size=3), st.booleans())
def test_allocated_claims_are_judged_on_all_nodes_at_once(where, is_late) -> None:
    world = DeviceWorld("n1", "n2", "n3")
    asks = pod("web")
    for index, name in enumerate(where):
        taken = allocated("d", pool=f"p{index}", conditions=("ready",))
        claim = resource_claim(f"c{index}").request("r", "gpu")
        world.claim(claim.allocated(taken, nodes=name or None, at=STAMP))
        asks = asks.resource_claim(f"r{index}", f"c{index}")
    if is_late:
        world.now_s += 601
    cycle = world.cycle(asks)
    state = CycleState()
    world.plugin.pre_filter(state, cycle.info, world.nodes)
    infos = world.nodes.node_infos()
    singly = {each.name: world.plugin.filter_one(state, cycle.info, each) for each in infos}
    assert singly == cycle.said


# --- after the nodes --------------------------------------------------------------------------


def test_without_a_prefilter_nothing_is_known() -> None:
    world = DeviceWorld()
    _, status = world.plugin.post_filter(CycleState(), WEB.info(), world.nodes, {})
    assert (status.code, status.message) == (Code.ERROR, "not found")


def test_a_pod_without_claims_has_nothing_to_give_back() -> None:
    assert DeviceWorld().cycle(pod("web")).post_filter() == "no new claims to deallocate"


def test_a_pod_that_prefilter_rejects_has_nothing_to_give_back() -> None:
    assert DeviceWorld().cycle(WEB).post_filter() == "no new claims to deallocate"


@pytest.mark.parametrize(
    ("users", "says", "is_kept"),
    [
        pytest.param((), "deallocation of ResourceClaim completed", False, id="nobody"),
        pytest.param((WEB,), "deallocation of ResourceClaim completed", False, id="this pod"),
        pytest.param((WEB, pod("b")), "still not schedulable", True, id="another as well"),
        pytest.param((pod("b"),), "still not schedulable", True, id="another"),
    ],
)
def test_a_claim_that_keeps_the_pod_from_its_nodes_is_given_back(users, says, is_kept) -> None:
    world = DeviceWorld("n1")
    claim = CLAIM.allocated(allocated("gpu-0"), nodes="gone")
    world.claim(claim.reserved_for(*(each.build() for each in users)))
    assert world.cycle(WEB).post_filter() == says
    assert (world.shown("c").status.allocation is not None) is is_kept


def test_after_its_claim_was_given_back_the_pod_finds_another_node() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0")
    world.claim(CLAIM.finalizer("x").allocated(allocated("gpu-9"), nodes="gone"))
    assert world.place(WEB) == "resourceclaim not available on the node"
    world.cycle(WEB).post_filter()
    assert world.place(WEB) == "n1"


# --- scores -----------------------------------------------------------------------------------

EITHER = resource_claim("c").first_available(
    "r", alternative("best", "big"), alternative("next", "mid"), alternative("last", "small")
)


def three_classes(world: DeviceWorld) -> DeviceWorld:
    for name in ("big", "mid", "small"):
        amount = f"device.capacity['gpu.example.com'].{name}"
        world.classes(device_class(name).selecting(f"{amount}.isGreaterThan(quantity('0'))"))
    return world


def sized(name: str, kind: str) -> DeviceBuilder:
    sizes = {each: "1" if each == kind else "0" for each in ("big", "mid", "small")}
    return device(name).capacity(sizes)


def test_earlier_alternatives_score_more() -> None:
    world = three_classes(DeviceWorld("n1", "n2"))
    world.local("n1", sized("a", "big")).local("n2", sized("b", "small"))
    world.claim(EITHER)
    assert world.cycle(WEB).scores() == {"n1": (8, 100), "n2": (6, 75)}


def test_the_second_alternative_scores_one_less() -> None:
    world = three_classes(DeviceWorld("n1")).local("n1", sized("a", "mid"))
    world.claim(EITHER)
    assert world.cycle(WEB).scores() == {"n1": (7, 100)}


def test_without_alternatives_all_nodes_score_0() -> None:
    world = DeviceWorld("n1", "n2").local("n1", "a").local("n2", "b")
    world.claim(CLAIM)
    assert world.cycle(WEB).scores() == {"n1": (0, 0), "n2": (0, 0)}


def test_allocated_claims_count_by_what_was_chosen_beside_new_ones() -> None:
    world = three_classes(DeviceWorld("n1")).local("n1", "a")
    world.claim(EITHER.allocated(allocated("x", request="r/next"), nodes="n1"))
    world.claim(resource_claim("d").request("r", "gpu"))
    assert world.cycle(WEB.resource_claim("s", "d")).scores() == {"n1": (7, 100)}


# --- extended resources -----------------------------------------------------------------------

GPU = "example.com/gpu"
ASKS = pod("web").request({GPU: "1"})
MAPPED = device_class("gpus").extended_resource(GPU)


def test_a_class_provides_an_extended_resource_where_no_device_plugin_does() -> None:
    world = DeviceWorld("n1", node("n2").capacity({GPU: "4"}), "n3").local("n1", "gpu-0")
    world.classes(MAPPED)
    cycle = world.cycle(ASKS)
    assert cycle.feasible() == ["n1", "n2"]
    assert cycle.said["n3"].reasons == ("cannot allocate all claims",)


def test_the_name_of_a_class_is_a_resource() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0")
    implicit = pod("web").request({"deviceclass.resource.kubernetes.io/gpu": "1"})
    assert world.cycle(implicit).feasible() == ["n1"]


def test_a_resource_that_nobody_provides_fits_nowhere() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0").classes(MAPPED)
    cycle = world.cycle(ASKS.request({"example.com/nic": "1"}))
    assert cycle.refusal() == "cannot fit resource"


def test_resources_without_a_class_are_not_looked_at() -> None:
    assert DeviceWorld("n1").cycle(ASKS).pre_filter.code is Code.SKIP


def test_a_special_claim_that_an_earlier_attempt_left_is_deleted() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0").classes(MAPPED)
    left = resource_claim("web-x").request("r", "gpus").owned_by(ASKS.build())
    world.claim(left.finalizer(FINALIZER).annotation(SPECIAL, "true"))
    cycle = world.cycle(ASKS)
    assert cycle.refusal() == "cannot schedule extended resource claim"
    assert cycle.post_filter() == "deletion of ResourceClaim completed"
    assert world.known.claims.all() == {}
    assert world.cycle(ASKS).feasible() == ["n1"]

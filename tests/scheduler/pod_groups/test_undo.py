"""What a trial reserves, and that nothing of it stays after a refusal: row 23 of the reference."""

from __future__ import annotations

import pytest

from plugins.default_binder import DefaultBinder
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.interfaces import FilterPlugin, ReservePlugin
from plugins.framework.status import SUCCESS, Code, unschedulable
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.pod_groups import Verdict
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.nominated_nodes import NominatedNodes
from tests.builders import names_term, node, pod
from tests.device_builders import device, device_class, resource_claim, resource_slice
from tests.plugins.conformance import IdleClaimWriter, RecordingHandle
from tests.scheduler.parts import NoBinding
from tests.scheduler.pod_groups.groups import Cluster, default_framework, nodes_of, rules
from tests.scheduler.pod_groups.test_planner import members, small
from tests.storage_builders import claim, storage_class, storage_of, volume

LATE = storage_class("late", "kubernetes.io/no-provisioner")


class Ledger(ReservePlugin):
    """Notes who is reserved where, and refuses a node."""

    name = "Ledger"

    def __init__(self, refused: str = "") -> None:
        super().__init__(None, RecordingHandle())
        self.refused = refused
        self.held: dict[str, str] = {}

    def reserve(self, state, info, node_name):
        self.held[info.name] = node_name
        return unschedulable("not here") if node_name == self.refused else SUCCESS

    def unreserve(self, state, info, node_name):
        assert self.held.pop(info.name, node_name) == node_name


class Failing(FilterPlugin):
    """Fails for members of some names."""

    name = "Failing"

    def __init__(self, *names: str) -> None:
        super().__init__(None, RecordingHandle())
        self.names = names

    def filter_one(self, state, info, node_info):
        if info.name in self.names:
            raise RuntimeError("it fell over")
        return SUCCESS


def profile(*plugins):
    handle = RecordingHandle()
    every = [
        PrioritySort(None, handle),
        NodeResourcesFit(NodeResourcesFitArgs(), handle),
        *plugins,
        DefaultBinder(None, handle),
    ]
    points = {point: [p for p in every if point in points_of(type(p))] for point in POINTS}
    return FrameworkRunner("berth", points, {"NodeResourcesFit": 1})


def nodes(*sizes):
    return [small(f"n{index}", cpu=size).info() for index, size in enumerate(sizes)]


# --- Reserve ----------------------------------------------------------------------------------


def test_members_that_are_placed_are_reserved():
    ledger = Ledger()
    plan = Cluster(nodes("1", "1"), framework=profile(ledger)).plan(members(2, cpu="1"))
    assert ledger.held == nodes_of(plan)


@pytest.mark.parametrize(
    "gang",
    [
        pytest.param(members(4, cpu="1"), id="counted"),
        pytest.param([*members(2, cpu="1"), *members(2, name="k", cpu="1500m")], id="tried"),
    ],
)
def test_nobody_is_reserved_after_a_refusal(gang):
    ledger = Ledger()
    plan = Cluster(nodes("1", "2"), framework=profile(ledger)).plan(gang)
    assert (plan.verdict, ledger.held) == (Verdict.DOES_NOT_FIT, {})


def test_a_node_that_reserve_refuses_is_passed_over_where_another_will_do():
    ledger = Ledger(refused="n0")
    plan = Cluster(nodes("1", "2"), framework=profile(ledger)).plan(members(2, cpu="1"))
    assert nodes_of(plan) == ledger.held == {"m0": "n1", "m1": "n1"}


# --- failures ---------------------------------------------------------------------------------


def test_a_plugin_that_fails_for_a_member_that_is_needed():
    ledger = Ledger()
    cluster = Cluster(nodes("2"), framework=profile(ledger, Failing("m1")))
    before = cluster.facts()
    plan = cluster.plan(members(2, cpu="1"))
    assert (plan.verdict, plan.status.code) == (Verdict.FAILED, Code.ERROR)
    assert "it fell over" in plan.status.message
    assert (cluster.facts(), ledger.held) == (before, {})


def test_a_plugin_that_fails_for_a_member_that_is_not_needed():
    cluster = Cluster(nodes("3"), framework=profile(Failing("m1")))
    plan = cluster.plan(members(3, cpu="1"), rules(2))
    assert sorted(nodes_of(plan)) == ["m0", "m2"]


@pytest.mark.parametrize("checks", [0, 3, 6, 9])
def test_a_budget_that_runs_out_leaves_nothing(checks):
    ledger = Ledger()
    cluster = Cluster(nodes("4", "4"), framework=profile(ledger))
    before = cluster.facts()
    clock = iter([0.0] * (checks + 2) + [1e9] * 100)
    budget = AttemptBudget(1.0, lambda: next(clock))
    plan = cluster.plan([*members(8, cpu="1")], budget=budget)
    assert (plan.verdict, plan.status.code) == (Verdict.NOT_FOUND, Code.ERROR)
    assert plan.status.message.startswith("attempt stopped: budget exceeded")
    assert (cluster.facts(), ledger.held, len(plan.refused)) == (before, {}, 1)


def test_a_budget_that_runs_out_in_the_search_leaves_the_reasons_of_the_first_try():
    gang = [pod(f"m{cpu}").request(cpu=cpu) for cpu in "543"]
    cluster = Cluster(nodes("6", "6"))
    before = cluster.facts()
    plans = []
    for checks in range(0, 300, 20):
        clock = iter([0.0] * (checks + 2) + [1e9] * 10_000)
        plans.append(cluster.plan(gang, budget=AttemptBudget(1.0, lambda c=clock: next(c))))
        assert cluster.facts() == before
    codes = [plan.status.code for plan in plans if plan.verdict is Verdict.NOT_FOUND]
    assert codes == sorted(codes)
    assert set(codes) == {Code.ERROR, Code.UNSCHEDULABLE}


def test_a_budget_that_runs_out_after_the_minimum_leaves_the_minimum():
    placed = []
    for checks in range(0, 60, 3):
        ledger = Ledger()
        cluster = Cluster(nodes("8", "8"), framework=profile(ledger))
        clock = iter([0.0] * (checks + 2) + [1e9] * 10_000)
        budget = AttemptBudget(1.0, lambda c=clock: next(c))
        plan = cluster.plan(members(16, cpu="1"), rules(4), budget)
        placed.append(len(plan.placed))
        assert ledger.held == nodes_of(plan)
    assert not any(0 < count < 4 for count in placed)
    assert any(4 <= count < 16 for count in placed)


# --- volumes ----------------------------------------------------------------------------------


def with_volumes(*reaching, names, nodes=2):
    """Return a cluster where each volume is reached from some nodes, and claims have no volume."""
    services = NoBinding()
    services.storage = storage_of(
        LATE,
        *(claim(name).of_class("late").build() for name in names),
        *(
            volume(f"v{index}").of_class("late").node_affinity(*map(names_term, hosts)).build()
            for index, hosts in enumerate(reaching)
        ),
    )
    infos = [node(f"n{index}").label("host", f"n{index}").info() for index in range(nodes)]
    return Cluster(infos, framework=default_framework(services))


def with_claims(*names):
    return [pod(name).claim(name) for name in names]


def test_row_23_members_take_different_volumes():
    cluster = with_volumes(["n0"], ["n1"], names=["a", "b"])
    plan = cluster.plan(with_claims("a", "b"))
    assert sorted(nodes_of(plan).values()) == ["n0", "n1"]


def test_row_23_volumes_of_a_refused_gang_are_free_again():
    cluster = with_volumes(["n0"], ["n1"], names=["a", "b", "c"])
    assert cluster.plan(with_claims("a", "b", "c")).verdict is Verdict.DOES_NOT_FIT
    assert cluster.plan(with_claims("b", "c")).verdict is Verdict.FITS


def test_row_23_the_order_in_which_volumes_are_taken_matters():
    cluster = with_volumes(["n0", "n1"], ["n0"], names=["a", "b"])
    gang = [pod("a").claim("a").node_selector("host", "n0")]
    gang.append(pod("b").claim("b").node_selector("host", "n1"))
    for order in (gang, gang[::-1]):
        again = with_volumes(["n0", "n1"], ["n0"], names=["a", "b"])
        assert again.plan(order).verdict is Verdict.FITS
    assert cluster.plan(gang).verdict is Verdict.FITS


def test_a_claim_that_is_not_there_is_a_reason_like_any_other():
    cluster = with_volumes(["n0"], names=["a"])
    plan = cluster.plan(with_claims("a", "missing"))
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 1)
    assert 'persistentvolumeclaim "missing" not found' in plan.status.message


def test_row_23_host_ports_of_a_refused_gang_are_free_again():
    cluster = Cluster(nodes("1", "1"))
    gang = [each.host_port(80) for each in members(3)]
    assert cluster.plan(gang).verdict is Verdict.DOES_NOT_FIT
    assert cluster.plan(gang[1:]).verdict is Verdict.FITS


# --- devices ----------------------------------------------------------------------------------


def with_devices(*by_node, claims):
    """Return a cluster whose nodes have devices of these models, and claims for one of a model."""
    services = NoBinding()
    services.claim_writer = IdleClaimWriter()
    devices = services.devices
    devices.classes.changed(None, device_class("any").build())
    for model in ("a", "b"):
        chosen = f'device.attributes["gpu.example.com"].model == "{model}"'
        devices.classes.changed(None, device_class(model).selecting(chosen).build())
    infos = []
    for index, models in enumerate(by_node):
        name = f"n{index}"
        made = [device(f"d{i}").attribute("model", model) for i, model in enumerate(models)]
        part = resource_slice(name, pool=name).on_node(name).devices(*made)
        devices.slices.changed(None, part.build())
        infos.append(node(name).info())
    for number, (name, wanted) in enumerate(claims.items(), 1):
        asked = resource_claim(name).request("r", wanted).resource_version(str(number))
        devices.claims.changed(None, asked.build())
    return Cluster(infos, framework=default_framework(services))


def with_devices_claimed(*names):
    return [pod(name).resource_claim("gpu", name) for name in names]


def test_row_23_devices_of_a_refused_gang_are_free_again():
    cluster = with_devices("a", "a", claims={"x": "any", "y": "any", "z": "any"})
    assert cluster.plan(with_devices_claimed("x", "y", "z")).verdict is Verdict.DOES_NOT_FIT
    plan = cluster.plan(with_devices_claimed("y", "z"))
    assert sorted(nodes_of(plan).values()) == ["n0", "n1"]


@pytest.mark.parametrize("order", [1, -1], ids=["choosy last", "choosy first"])
def test_row_23_the_order_in_which_devices_are_taken_matters(order):
    cluster = with_devices("ab", claims={"x": "any", "y": "a"})
    plan = cluster.plan(with_devices_claimed("x", "y")[::order])
    assert plan.verdict is Verdict.FITS


# --- rooms ------------------------------------------------------------------------------------


def nominated(cluster, **node_by_member):
    nominator = Nominator(lambda uid: True)
    cluster.profile.nominated = NominatedNodes(nominator.latest)
    return nominator


def test_members_get_the_rooms_that_they_are_nominated_for():
    cluster = Cluster(nodes("2", "2", "2"), framework=default_framework())
    gang = members(2, cpu="1")
    nominator = nominated(cluster)
    nominator.add(gang[0].info(), "n2")
    nominator.add(gang[1].info(), "n2")
    assert nodes_of(cluster.plan(gang)) == {"m0": "n2", "m1": "n2"}


def test_the_room_of_a_stranger_with_the_same_priority_is_left():
    cluster = Cluster(nodes("1", "1"), framework=default_framework())
    nominated(cluster).add(pod("stranger").request(cpu="1").info(), "n0")
    plan = cluster.plan(members(2, cpu="1"))
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 1)


def test_the_room_of_a_stranger_with_a_lower_priority_is_not():
    cluster = Cluster(nodes("1", "1"), framework=default_framework())
    nominated(cluster).add(pod("stranger").request(cpu="1").priority(-1).info(), "n0")
    assert cluster.plan(members(2, cpu="1")).verdict is Verdict.FITS


def test_the_rack_where_rooms_were_made_is_tried_first():
    infos = [
        small(f"n{index}", cpu="1").label("rack", f"r{index // 2}").info() for index in range(6)
    ]
    gang = members(2, cpu="1")
    for seed in range(5):
        cluster = Cluster(infos, seed, default_framework())
        nominator = nominated(cluster)
        nominator.add(gang[0].info(), "n2")
        nominator.add(gang[1].info(), "n3")
        plan = cluster.plan(gang, rules(2, topology="rack"))
        assert nodes_of(plan) == {"m0": "n2", "m1": "n3"}


class Ending(NominatedNodes):
    """A nomination that another thread takes away while a group is planned."""

    def __init__(self, nominator, after):
        super().__init__(nominator.latest)
        self.nominator, self.left = nominator, after

    def crowded(self, info, nodes):
        found = super().crowded(info, nodes)
        self.left -= 1
        if self.left == 0:
            self.nominator.delete("ahead")
        return found


@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize(
    "gang",
    [
        pytest.param(members(2, cpu="1"), id="alike"),
        pytest.param([pod("m0").request(cpu="1"), pod("m1").request(cpu="500m")], id="unlike"),
        pytest.param([pod("m0").host_port(80), pod("m1").host_port(80)], id="ports"),
        pytest.param([each.pod_anti_affinity("zone", app="m") for each in members(2)], id="terms"),
    ],
)
def test_a_nomination_that_ends_meanwhile_leaves_no_member_behind(gang, after):
    nominator = Nominator(lambda uid: True)
    nominator.add(pod("ahead").uid("ahead").priority(1000).request(cpu="4").info(), "n0")
    framework = default_framework()
    framework.nominated = Ending(nominator, after)
    full = [small(f"n{i}", cpu=cpu).label("zone", f"z{i}").info() for i, cpu in enumerate("41111")]
    for number, each in enumerate(full[1:]):
        each.add_pod(pod(f"p{number}").uid(f"p{number}").on(each.name).request(cpu="1").info())
    cluster = Cluster(full, framework=framework)
    before = cluster.facts()
    plan = cluster.plan(gang)
    if plan.verdict is Verdict.FITS:
        assert len(plan.placed) == 2
    else:
        assert cluster.facts() == before

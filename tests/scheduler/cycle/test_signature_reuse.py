from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from cache.byte_bounded import deep_bytes
from cache.objects import (
    AWSElasticBlockStoreVolumeSource,
    Container,
    PodSchedulingGate,
    Toleration,
    Volume,
)
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, ReservePlugin, ScorePlugin
from plugins.framework.status import SUCCESS, unschedulable
from plugins.priority_sort import PrioritySort
from plugins.registry import PLUGINS
from scheduler.config import default_config, running_profiles
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle import signature_reuse
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.cycle.signature_reuse import SignatureReuse
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.profile_builder import build_framework
from tests.builders import node, pod
from tests.scheduler.parts import NoBinding
from tests.strategies import pods


class Counting(ScorePlugin):
    """Gives every node the same, and counts how many nodes it was asked about."""

    name = "Counting"

    def __init__(self):
        super().__init__(None, NoBinding())
        self.asked = 0
        self.points = 7

    def score_one(self, state, info, node_info):
        self.asked += 1
        return self.points


class SigningCounting(Counting):
    def signature(self, info):
        return ()


class FirstOnly(FilterPlugin):
    name = "FirstOnly"

    def __init__(self):
        super().__init__(None, NoBinding())

    def filter_one(self, state, info, node_info):
        return SUCCESS if node_info.name == "node-0" else unschedulable("not the first")


class Reserving(FilterPlugin, ReservePlugin):
    name = "Reserving"

    def __init__(self):
        super().__init__(None, NoBinding())
        self.asked = 0

    def signature(self, info):
        return ()

    def filter_one(self, state, info, node_info):
        self.asked += 1
        return SUCCESS

    def reserve(self, state, info, node_name):
        return SUCCESS

    def unreserve(self, state, info, node_name):
        pass


class FailsOnce(FilterPlugin):
    """Signs, lets every pod in, and raises once when it is asked about the node that it is told."""

    name = "FailsOnce"
    reads_pods = False

    def __init__(self):
        super().__init__(None, NoBinding())
        self.error = None
        self.fails_at = ""

    def signature(self, info):
        return ()

    def filter_one(self, state, info, node_info):
        if self.error is not None and node_info.name == self.fails_at:
            error, self.error = self.error, None
            raise error
        return SUCCESS


def runner(*plugins, weights=None):
    chosen = (PrioritySort(None, NoBinding()), DefaultBinder(None, NoBinding()), *plugins)
    points = {point: [p for p in chosen if point in points_of(type(p))] for point in POINTS}
    weights = weights or {p.name: 2 for p in points["score"]}
    return FrameworkRunner("berth", points, weights)


@pytest.fixture
def cache():
    cache = SchedulerCache()
    for index in range(10):
        cache.add_node(node(f"node-{index}").build())
    return cache


class Cluster:
    def __init__(self, cache, framework):
        self.cache, self.framework = cache, framework
        self.snapshot = Snapshot()
        self.coming = []
        self.reuse = SignatureReuse(self.snapshot, HostSelector(1), lambda n: self.coming[:n])

    def place(self, info):
        self.cache.update_snapshot(self.snapshot)
        placement = self.reuse.place(self.framework, CycleState(), info)
        if placement is not None:
            name = self.snapshot.columns.node_infos[placement.row].name
            self.cache.assume_pod(info, name)
        return placement

    def kept(self):
        """How many verdicts are kept of plugins that read no pods, and of those that do."""
        return tuple(len(half) for half in self.reuse._kept)


def many_nodes(count):
    cache = SchedulerCache()
    for index in range(count):
        cache.add_node(node(f"node-{index}").build())
    return cache


def some_pod(index):
    return pod(f"pod-{index}").request(cpu="100m").info()


def test_a_plugin_that_signs_is_asked_about_changed_nodes_only(cache):
    plugin = SigningCounting()
    cluster = Cluster(cache, runner(plugin))
    for index in range(5):
        cluster.place(some_pod(index))
    assert plugin.asked == 10 + 4


def test_a_plugin_that_does_not_sign_is_asked_about_every_node_each_time(cache):
    plugin = Counting()
    cluster = Cluster(cache, runner(plugin))
    for index in range(5):
        cluster.place(some_pod(index))
    assert plugin.asked == 5 * 10


def test_a_plugin_that_keeps_books_is_asked_anew_although_it_signs(cache):
    plugin = Reserving()
    cluster = Cluster(cache, runner(plugin, SigningCounting()))
    for index in range(3):
        cluster.place(some_pod(index))
    assert plugin.asked == 3 * 10


def test_what_does_not_sign_narrows_what_the_others_left(cache):
    cluster = Cluster(cache, runner(FirstOnly(), SigningCounting()))
    placement = cluster.place(some_pod(0))
    assert cluster.snapshot.columns.node_infos[placement.row].name == "node-0"
    assert (placement.score, placement.feasible_nodes) == (None, 1)


@pytest.mark.parametrize("points", [-1, 101])
def test_a_score_out_of_bounds_is_left_to_the_long_way_which_names_the_plugin(cache, points):
    plugin = SigningCounting()
    framework = runner(plugin)
    snapshot = Snapshot()
    cycle = SchedulingCycle(snapshot, HostSelector(1))
    cache.update_snapshot(snapshot)
    assert cycle.decide(framework, CycleState(), some_pod(0)).is_placed
    cache.assume_pod(some_pod(0), "node-0")
    cache.update_snapshot(snapshot)
    plugin.points = points
    decision = cycle.decide(framework, CycleState(), some_pod(1))
    assert not decision.is_placed
    assert "Counting" in decision.message()


def test_a_long_way_finds_no_trace_of_the_short_one(cache):
    cluster = Cluster(cache, default_profile())
    too_big = pod("big").request(cpu="9").info()
    state = CycleState()
    cache.update_snapshot(cluster.snapshot)
    assert cluster.reuse.place(cluster.framework, state, too_big) is None
    assert not state.skip_filter


def test_a_new_node_is_found(cache):
    cluster = Cluster(cache, default_profile())
    for index in range(3):
        cluster.place(some_pod(index))
    cache.add_node(node("node-new").capacity(cpu="64", memory="512Gi").build())
    placement = cluster.place(some_pod(9))
    assert cluster.snapshot.columns.node_infos[placement.row].name == "node-new"


def test_what_is_kept_is_bounded_in_bytes(cache, monkeypatch):
    monkeypatch.setattr(signature_reuse, "MAX_KEPT_BYTES", 400_000)
    monkeypatch.setattr(signature_reuse, "MAX_RANKINGS", 3)
    cluster = Cluster(cache, default_profile())
    for index in range(200):
        cluster.place(pod(f"pod-{index}").request(cpu=f"{100 + index}m").info())
    of_nodes, of_pods = cluster.reuse._kept
    assert len(of_nodes) == 1
    assert 3 < len(of_pods) < 100
    assert of_pods.bytes <= 400_000
    assert len(cluster.reuse._rankings) == 3


@pytest.mark.parametrize(
    ("left", "right", "kept"),
    [
        pytest.param(pod(), pod().request(cpu="1"), (1, 2), id="requests"),
        pytest.param(pod(), pod().host_port(80), (1, 2), id="host ports"),
        pytest.param(pod(), pod().toleration("a"), (2, 1), id="tolerations"),
        pytest.param(pod(), pod().node_selector("a", "b"), (2, 1), id="node selector"),
        pytest.param(pod(), pod().image("other"), (2, 1), id="images"),
        pytest.param(pod(), pod().on("node-1"), (2, 1), id="node name"),
        pytest.param(pod(), pod().request(cpu="1").toleration("a"), (2, 2), id="both"),
    ],
)
def test_pods_share_the_half_of_the_verdicts_in_which_they_are_alike(cache, left, right, kept):
    cache.add_node(node("labelled").label("a", "b").build())
    cluster = Cluster(cache, default_profile())
    for built in (left, right):
        cache.update_snapshot(cluster.snapshot)
        cluster.reuse.place(cluster.framework, CycleState(), built.info())
    assert cluster.kept() == kept


def test_pods_of_one_kind_share(cache):
    cluster = Cluster(cache, default_profile())
    for index in range(20):
        cluster.place(pod(f"pod-{index}").label("name", str(index)).request(cpu="10m").info())
    assert cluster.kept() == (1, 1)


class OfNodes(SigningCounting):
    name = "OfNodes"
    reads_pods = False


class OfRequests(SigningCounting):
    name = "OfRequests"

    def signature(self, info):
        return info.requests["cpu"]


def test_what_reads_no_pods_is_not_asked_about_other_requests(cache):
    of_nodes, of_requests = OfNodes(), OfRequests()
    cluster = Cluster(cache, runner(of_nodes, of_requests))
    for index in range(5):
        cluster.place(pod(f"pod-{index}").request(cpu=f"{index + 1}m").info())
    assert (of_nodes.asked, of_requests.asked) == (10, 5 * 10)


def test_a_thousand_requests_in_turn_are_asked_about_changed_nodes_only():
    plugin = OfRequests()
    cluster = Cluster(many_nodes(300), runner(plugin))
    for index in range(1000):
        cluster.place(pod(f"pod-{index}").request(cpu=f"{index + 1}m").info())
    plugin.asked = 0
    for index in range(20):
        cluster.cache.forget_pod(pod(f"pod-{index}").info())
    cluster.cache.update_snapshot(cluster.snapshot)
    for index in range(980, 1000):
        cluster.reuse.place(
            cluster.framework, CycleState(), pod().request(cpu=f"{index + 1}m").info()
        )
    assert plugin.asked <= 20 * 40


class Jointly(OfRequests, FilterPlugin):
    """Takes notes of how many pods it is asked about at once, and gives what each requests."""

    name = "Jointly"

    def __init__(self):
        super().__init__()
        self.asked_at_once = []
        self.fails = False

    def filter_one(self, state, info, node_info):
        return SUCCESS if node_info.requested.get("cpu", 0) < 60 else unschedulable("full")

    def filter_jointly(self, pods, nodes):
        if self.fails:
            raise ValueError("not today")
        self.asked_at_once.append([info.requests["cpu"] for _, info in pods])
        return np.array([self.filter(*each, nodes).passed for each in pods])

    def score_one(self, state, info, node_info):
        return info.requests["cpu"] + node_info.requested.get("cpu", 0) % 7

    def score_jointly(self, pods, nodes):
        return np.array([self.score(*each, nodes) for each in pods])


def requesting(cpu, number):
    return pod(f"pod-{cpu}-{number}").request(cpu=f"{cpu}m").info()


def test_pods_that_come_in_turn_are_judged_at_once():
    """The more so the more nodes have changed; nobody's place changes by it."""
    together, alone = Jointly(), Jointly()
    alone.fails = True
    placed = []
    for plugin in (together, alone):
        cluster = Cluster(many_nodes(30), runner(plugin))
        cluster.coming = [requesting(cpu, number) for number in range(3) for cpu in range(1, 31)]
        placed.append([])
        while cluster.coming:
            placed[-1].append(cluster.place(cluster.coming.pop(0)))
    assert placed[0] == placed[1]
    assert None not in placed[0]
    # In the first round they are new; then four are judged when the first of them comes again.
    second = [[cpu, cpu + 1, cpu + 2, cpu + 3] for cpu in range(1, 29, 4)] + [[29, 30, 1, 2]]
    assert together.asked_at_once[:9] == [*second, [3, 4, 5, 6]]


def test_pods_that_do_not_come_next_are_not_judged():
    plugin = Jointly()
    cluster = Cluster(many_nodes(30), runner(plugin))
    for number in range(3):
        for cpu in range(1, 31):
            cluster.coming = [requesting(cpu + 1, number), requesting(1000, number)]
            cluster.place(requesting(cpu, number))
    assert {len(each) for each in plugin.asked_at_once} == {2}


def test_pods_that_are_alike_are_judged_by_themselves():
    plugin = Jointly()
    cluster = Cluster(many_nodes(30), runner(plugin))
    for number in range(100):
        cluster.coming = [requesting(1, number + 1), requesting(1, number + 2)]
        cluster.place(requesting(1, number))
    assert plugin.asked_at_once == []


@pytest.mark.parametrize("weight", [1, 10_000])
def test_scores_of_any_weight_are_added_up(cache, weight):
    weights = {"OfNodes": weight, "OfRequests": 3 * weight}
    cluster = Cluster(cache, runner(OfNodes(), OfRequests(), weights=weights))
    assert [cluster.place(some_pod(index)).score for index in range(2)] == [7 * 4 * weight] * 2


def test_many_changes_at_once_are_followed_in_the_vector_form(cache):
    for index in range(10, 100):
        cache.add_node(node(f"node-{index}").build())
    cluster = Cluster(cache, default_profile())
    cluster.place(some_pod(0))
    for index in range(20):
        cache.add_pod(pod(f"other-{index}").request(cpu="3").on(f"node-{index}").info())
    placement = cluster.place(some_pod(1))
    assert placement.row >= 20
    assert placement.feasible_nodes == 100


def default_profile():
    return build_framework(running_profiles(default_config("berth"))[0], 0, PLUGINS, NoBinding())


FEW, MANY = 3, 14
"""Changed nodes of 60: looked at one by one, and in the vector form."""


@pytest.mark.parametrize("changed", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many")])
@pytest.mark.parametrize(
    ("worse", "wish"),
    [
        pytest.param(lambda n: n.unschedulable(), lambda p: p, id="cordoned"),
        pytest.param(lambda n: n.taint("hard"), lambda p: p, id="tainted"),
        pytest.param(
            lambda n: n.label("disk", "hdd"), lambda p: p.node_selector("disk", "ssd"), id="label"
        ),
    ],
)
def test_a_node_that_changes_is_asked_about_anew_by_those_who_read_no_pods(changed, worse, wish):
    def fresh(index):
        return node(f"node-{index}").label("disk", "ssd").capacity(cpu="8", pods="20")

    cache = SchedulerCache()
    for index in range(60):
        cache.add_node(fresh(index).build())
    cluster = Cluster(cache, default_profile())
    found = [cluster.place(wish(pod("first")).info()).feasible_nodes]
    for change in (worse, lambda n: n):
        for index in range(changed):
            cache.add_node(change(fresh(index)).build())
        for name in ("next", "after"):
            found.append(cluster.place(wish(pod(f"{name}-{len(found)}")).info()).feasible_nodes)
    assert found == [60, 60 - changed, 60 - changed, 60, 60]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("no luck"), id="a failure"),
        pytest.param(AttemptBudgetExceededError(0.25), id="the end of the budget"),
    ],
)
@pytest.mark.parametrize("changed", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many")])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize(
    "worse",
    [
        pytest.param(lambda n: n.unschedulable(), id="cordoned"),
        pytest.param(lambda n: n.taint("hard"), id="tainted"),
    ],
)
def test_a_plugin_that_fails_once_leaves_no_verdict_half_followed(worse, at, changed, error):
    def fresh(index):
        return node(f"node-{index}").capacity(cpu="8", pods="20")

    cache = SchedulerCache()
    for index in range(60):
        cache.add_node(fresh(index).build())
    plugin = FailsOnce()
    default = [
        PLUGINS[name](None, NoBinding()) for name in ("NodeUnschedulable", "TaintToleration")
    ]
    cluster = Cluster(cache, runner(plugin, *default, SigningCounting()))
    assert cluster.place(some_pod(0)).feasible_nodes == 60
    for index in range(changed):
        cache.add_node(worse(fresh(index)).build())
    plugin.error, plugin.fails_at = error, f"node-{at}"
    if isinstance(error, Exception):
        assert cluster.place(some_pod(1)) is None
    else:
        with pytest.raises(AttemptBudgetExceededError):
            cluster.place(some_pod(1))
    assert plugin.error is None
    assert cluster.place(some_pod(2)).feasible_nodes == 60 - changed


@pytest.mark.parametrize("changed", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many")])
def test_a_node_that_was_full_is_scored_by_all_once_it_has_room(changed):
    cache = SchedulerCache()
    for index in range(60):
        built = node(f"node-{index}").capacity(cpu="8", pods="20")
        if index >= changed:
            built = built.taint("soft", effect="PreferNoSchedule")
        cache.add_node(built.build())
    filling = [pod(f"filler-{n}").request(cpu="8").on(f"node-{n}").info() for n in range(changed)]
    for info in filling:
        cache.add_pod(info)
    cluster = Cluster(cache, default_profile())
    assert cluster.place(pod("first").request(cpu="1").info()).feasible_nodes == 60 - changed
    for info in filling:
        cache.remove_pod(info)
    chosen = cluster.place(pod("second").request(cpu="1").info())
    assert chosen.feasible_nodes == 60
    assert cluster.snapshot.columns.node_infos[chosen.row].name in {
        f"node-{n}" for n in range(changed)
    }


def test_a_profile_that_was_swapped_for_another_leaves_no_verdicts_behind(cache):
    cluster = Cluster(cache, runner(SigningCounting()))
    volume = Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))
    wants_disk = pod("disk").request(cpu="1m").volume(volume).info()
    for _ in range(40):
        restrictions = PLUGINS["VolumeRestrictions"](None, NoBinding())
        cluster.framework = runner(restrictions, SigningCounting())
        cluster.reuse.retain_profiles([cluster.framework])
        cluster.place(some_pod(0))
        assert cluster.place(wants_disk) is not None
        for placed in (wants_disk, some_pod(0)):
            cluster.cache.forget_pod(placed)
        assert max(cluster.kept()) <= 2


def test_verdicts_are_not_kept_with_a_pod_that_weighs_much(cache):
    cluster = Cluster(cache, runner(SigningCounting()))
    heavy = pod("heavy").request(dict.fromkeys((f"x/r{index}" for index in range(5000)), "0"))
    assert cluster.place(heavy.info()) is None
    assert cluster.kept() == (0, 0)
    assert cluster.place(some_pod(0)) is not None
    assert cluster.kept() == (1, 1)


@given(pods())
def test_a_pod_takes_a_bounded_number_of_times_the_bytes_that_it_has_when_packed(any_pod):
    packed = len(signature_reuse.pack(any_pod))
    most = signature_reuse.MOST_BYTES_BY_PACKED * packed
    assert deep_bytes(any_pod, at_most=most) <= most


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"tolerations": (Toleration(operator="Exists"),)}, id="toleration"),
        pytest.param({"volumes": (Volume("v"),)}, id="volume"),
        pytest.param({"containers": (Container(name="c"),)}, id="container"),
        pytest.param({"scheduling_gates": (PodSchedulingGate("g"),)}, id="gate"),
        pytest.param({"node_selector": {"k": "v"}}, id="label"),
    ],
)
def test_so_does_a_pod_with_very_many_of_the_smallest_parts(parts):
    ((field, part),) = parts.items()
    if isinstance(part, tuple):
        many = tuple(replace(part[0]) for _ in range(3000))
    else:
        many = {f"{key}{index}": value for key, value in part.items() for index in range(3000)}
    plain = some_pod(0).pod
    made = replace(plain, spec=replace(plain.spec, **{field: many}))
    packed = len(signature_reuse.pack(made))
    most = signature_reuse.MOST_BYTES_BY_PACKED * packed
    assert deep_bytes(made, at_most=most) <= most


def test_nothing_is_kept_for_a_profile_that_is_not_in_force_any_more(cache):
    cluster = Cluster(cache, runner(SigningCounting()))
    assert cluster.place(some_pod(0)) is not None
    assert cluster.kept() == (1, 1)
    cluster.reuse.retain_profiles([runner(SigningCounting())])
    assert cluster.kept() == (0, 0)

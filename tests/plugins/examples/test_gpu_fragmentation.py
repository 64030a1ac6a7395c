"""GpuFragmentation: which nodes and GPUs pods get, and what it remembers of them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.authoring import Pod, adapt
from plugins.examples import gpu_costs
from plugins.examples.gpu_fragmentation import GpuFragmentation
from plugins.examples.gpu_fragments import WHOLE
from tests.builders import node, pod, requirement, term
from tests.plugins import conformance
from tests.plugins.conformance import Cluster, Recipe
from tests.plugins.examples.asking import Asked

GPU = "scheduling.berth.dev/gpu-milli"
MODEL = "nvidia.com/gpu.product"
DEVICES = "scheduling.berth.dev/gpu-devices"
HALVES = {"typicalPods": [{"gpuMilli": 500, "cpuMilli": 1000}]}


def gpus(name, count=2, *, cpu="16", model="A"):
    return node(name).capacity({GPU: str(count * WHOLE), "cpu": cpu}).label(MODEL, model)


def wants(name, milli, *, cpu="1"):
    return pod(name).request({GPU: str(milli), "cpu": cpu})


def with_devices(built, text):
    return built._meta(annotations={DEVICES: text})


def left(asked):
    """Return what is left of the GPUs of each node, those with most left first."""
    asked._cache.update_snapshot(asked._snapshot)
    view = asked._snapshot.all_nodes()
    found = asked.plugin.user.states(asked.plugin.nodes(view)).gpu_milli
    return {
        info.name: amounts[: info.allocatable[GPU] // WHOLE].tolist()
        for info, amounts in zip(view.node_infos(), found, strict=True)
    }


# --- which nodes will do ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milli", "refused"),
    [
        pytest.param(0, set(), id="none"),
        pytest.param(300, {"none"}, id="a share that fits everywhere"),
        pytest.param(500, {"none", "torn"}, id="in sum there would be enough"),
        pytest.param(1000, {"none", "torn", "half"}, id="a whole one"),
        pytest.param(2000, {"none", "torn", "half"}, id="two whole ones"),
        pytest.param(3000, {"none", "torn", "half", "free"}, id="more than a node has"),
        pytest.param(1500, {"none", "torn", "half", "free"}, id="neither share nor whole"),
    ],
)
def test_a_node_needs_single_gpus_with_enough_left(milli, refused):
    asked = Asked(GpuFragmentation, gpus("none", 0), gpus("torn"), gpus("half", 1), gpus("free"))
    asked.place(wants("a", 600).on("torn"), wants("b", 600).on("torn"), wants("c", 500).on("half"))
    assert asked.refused(wants("new", milli)).keys() == refused


def test_the_reason_is_told():
    reasons = Asked(GpuFragmentation, gpus("a", 1)).refused(wants("new", 2000))
    assert reasons == {"a": "node(s) had no GPU with enough left"}


# --- which of them is best ----------------------------------------------------------------------


def test_a_share_goes_where_a_gpu_is_torn_already():
    asked = Asked(GpuFragmentation, gpus("torn"), gpus("free"), typicalPods=[{"gpuMilli": 1000}])
    asked.place(wants("a", 300).on("torn"))
    scores = asked.scores(wants("new", 300))
    assert scores["torn"] > scores["free"]


def test_cpu_is_left_where_gpus_are_idle():
    asked = Asked(GpuFragmentation, gpus("few", cpu="2"), gpus("many"), **HALVES)
    scores = asked.scores(pod("new").request(cpu="2"))
    assert scores["many"] > scores["few"]


def test_a_model_is_left_to_those_who_need_it():
    typical = [{"gpuMilli": 1000, "models": ["A"]}, {"gpuMilli": 500, "models": ["B"]}]
    nodes = (gpus("a", model="A"), gpus("b", model="B"))
    asked = Asked(GpuFragmentation, *nodes, typicalPods=typical)
    scores = asked.scores(wants("new", 500))
    assert scores["b"] > scores["a"]


def test_where_nothing_changes_the_score_is_in_the_middle():
    asked = Asked(GpuFragmentation, gpus("a", 0), gpus("b"), **HALVES)
    assert asked.scores(pod("new").request(cpu="1")) == {"a": 50, "b": 50}


@pytest.mark.parametrize(
    ("spec", "models"),
    [
        pytest.param(lambda made: made, set(), id="any"),
        pytest.param(lambda made: made.node_selector(MODEL, "A"), {"A"}, id="node selector"),
        pytest.param(
            lambda made: made.node_affinity(term(requirement(MODEL, "In", "A", "B"))),
            {"A", "B"},
            id="affinity",
        ),
        pytest.param(
            lambda made: made.node_affinity(
                term(requirement(MODEL, "In", "A")), term(requirement(MODEL, "In", "B"))
            ),
            {"A", "B"},
            id="one term or the other",
        ),
        pytest.param(
            lambda made: made.node_affinity(
                term(requirement(MODEL, "In", "A")), term(requirement("zone", "In", "z"))
            ),
            set(),
            id="a term that names none",
        ),
    ],
)
def test_the_models_that_a_pod_names(spec, models):
    plugin = GpuFragmentation(GpuFragmentation.Args())
    (_, _, shape) = plugin.signature(Pod(spec(wants("new", 500)).info()))
    assert shape.models == models


# --- which GPU a pod has ------------------------------------------------------------------------


def test_a_share_is_cut_where_it_tears_up_least():
    asked = Asked(GpuFragmentation, gpus("a", 3), **HALVES)
    told = [
        with_devices(wants("p0", 700).on("a"), "0"),
        with_devices(wants("p1", 400).on("a"), "1"),
    ]
    asked.place(*told)
    # 300 is nothing to a half, 600 and 1000 would be missed.
    asked.place(wants("new", 300).on("a"))
    assert left(asked) == {"a": [1000, 600, 0]}


def test_the_tightest_gpu_if_that_is_wanted():
    asked = Asked(GpuFragmentation, gpus("a", 3), device="tightest", **HALVES)
    told = [
        with_devices(wants("p0", 300).on("a"), "0"),
        with_devices(wants("p1", 400).on("a"), "1"),
    ]
    asked.place(*told, wants("new", 500).on("a"))
    assert left(asked) == {"a": [1000, 700, 100]}


def test_who_knows_the_devices_is_believed():
    asked = Asked(GpuFragmentation, gpus("a", 2), **HALVES)
    asked.place(*(with_devices(wants(f"p{at}", 200).on("a"), str(at)) for at in range(2)))
    assert left(asked) == {"a": [800, 800]}


@pytest.mark.parametrize("text", ["7", "x", "", "0,x", "-1"])
def test_devices_that_there_are_none_of_are_guessed(text):
    asked = Asked(GpuFragmentation, gpus("a", 2), **HALVES)
    asked.place(with_devices(wants("p", 200).on("a"), text))
    assert left(asked) == {"a": [1000, 800]}


def test_a_pod_keeps_its_gpu_when_others_leave():
    asked = Asked(GpuFragmentation, gpus("a", 2), device="tightest", **HALVES)
    first, second = wants("p0", 700).on("a"), wants("p1", 600).on("a")
    asked.place(first, second)
    assert left(asked) == {"a": [400, 300]}
    asked.take_away(first)
    asked.place(wants("p2", 400).on("a"))
    assert left(asked) == {"a": [1000, 0]}


def test_a_guess_gives_way_to_who_knows_better():
    asked = Asked(GpuFragmentation, gpus("a", 2), **HALVES)
    asked.place(wants("guessed", 700).on("a"))
    assert left(asked) == {"a": [1000, 300]}
    asked.place(with_devices(wants("told", 800).on("a"), "0"))
    assert left(asked) == {"a": [300, 200]}


def test_after_a_start_the_largest_find_room_first():
    asked = Asked(GpuFragmentation, gpus("a", 3), **HALVES)
    asked.place(*(wants(f"p{milli}", milli).on("a") for milli in (300, 600, 400, 700, 1000)))
    assert left(asked) == {"a": [0, 0, 0]}


def test_an_overcommitted_node_has_nothing_left():
    asked = Asked(GpuFragmentation, gpus("a", 1), **HALVES)
    asked.place(wants("p0", 700).on("a"), wants("p1", 700).on("a"))
    assert left(asked) == {"a": [0]}


def test_more_gpus_than_go_into_one_number():
    asked = Asked(GpuFragmentation, gpus("a", 16, cpu="64"), gpus("b", 1), **HALVES)
    asked.place(*(with_devices(wants(f"p{at}", 100 + at).on("a"), str(at)) for at in range(16)))
    assert left(asked) == {"a": [900 - at for at in range(16)], "b": [1000]}


# --- the workload -------------------------------------------------------------------------------


def test_what_runs_is_learned():
    asked = Asked(GpuFragmentation, gpus("torn"), gpus("free"), gpus("many", 40, cpu="64"))
    asked.place(wants("a", 600).on("torn"))
    # Nobody is known to want as little as 400, until many do.
    assert asked.scores(wants("new", 400))["torn"] > asked.scores(wants("new", 400))["free"]
    before = asked.plugin.user.signature(Pod(wants("new", 400).info()))
    asked.place(*(wants(f"p{at}", 400).on("many") for at in range(60)))
    asked.scores(wants("new", 400))
    after = asked.plugin.user.signature(Pod(wants("new", 400).info()))
    assert before != after


def test_given_shapes_stay():
    asked = Asked(GpuFragmentation, gpus("many", 40, cpu="64"), **HALVES)
    asked.place(*(wants(f"p{at}", 400).on("many") for at in range(60)))
    asked.scores(wants("new", 400))
    assert asked.plugin.user.signature(Pod(wants("new", 400).info()))[0] == 0


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param({"popularity": 0.0}, "popularity", id="nobody"),
        pytest.param({"popularity": 1.5}, "popularity", id="more than all"),
        pytest.param(
            {"typicalPods": [{"gpuMilli": 500}, {"gpuMilli": 1500}]},
            "typicalPods[1].gpuMilli",
            id="one and a half",
        ),
        pytest.param(
            {"typicalPods": [{"gpuMilli": 500, "cpuMilli": -1}]},
            "typicalPods[0].cpuMilli",
            id="negative CPU",
        ),
        pytest.param(
            {"typicalPods": [{"gpuMilli": 500, "weight": 0}]},
            "typicalPods[0].weight",
            id="no weight",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_named(args, path):
    (problem,) = msgspec.convert(args, GpuFragmentation.Args).problems()
    assert problem.path == path


# --- all at once is one by one ------------------------------------------------------------------

shares = st.sampled_from([0, 200, 300, 460, 500, 1000, 2000, 1500])
clusters = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 7]),
        st.sampled_from(["2", "9"]),
        st.lists(shares, max_size=4),
    ),
    max_size=4,
)


def drawn_cluster(drawn):
    nodes = [gpus(f"node-{at}", count, cpu=cpu) for at, (count, cpu, _) in enumerate(drawn)]
    pods = [
        wants(f"p-{at}-{number}", milli).on(f"node-{at}")
        for at, (_, _, there) in enumerate(drawn)
        for number, milli in enumerate(there)
    ]
    return Cluster(tuple(each.build() for each in nodes), tuple(each.build() for each in pods))


RECIPE = Recipe(adapt(GpuFragmentation), HALVES)


@given(clusters, shares)
@settings(max_examples=20)
def test_a_cluster_gets_the_same_answers_in_every_form(drawn, milli):
    cluster, newcomer = drawn_cluster(drawn), wants("new", milli).build()
    conformance.check_filter_twins(RECIPE, cluster, newcomer)
    conformance.check_score_twins(RECIPE, cluster, newcomer)
    conformance.check_same_again(RECIPE, cluster, newcomer)
    conformance.check_inputs_unchanged(RECIPE, cluster, newcomer)
    conformance.check_no_nodes(RECIPE, newcomer)


@given(st.lists(st.sampled_from([0, 1, 120, 999, WHOLE]), max_size=12))
def test_packed_gpus_come_out_as_they_went_in(amounts):
    parts = -(-max(len(amounts), 1) // gpu_costs.PACKED)
    numbers = np.array([[float(gpu_costs.packed(amounts, part))] for part in range(parts)])
    states = gpu_costs.PackedStates(np.zeros(1, np.int64), np.zeros(1), numbers)
    padded = sorted(amounts, reverse=True) + [0] * (parts * gpu_costs.PACKED - len(amounts))
    assert states.unpacked().gpu_milli.tolist() == [padded]
    assert states.largest().tolist() == [max(amounts, default=0)]


def test_nodes_that_come_and_go_leave_nothing_behind():
    asked = Asked(GpuFragmentation, gpus("stays"), **HALVES)
    user = asked.plugin.user
    for generation in range(3):
        names = [f"n-{generation}-{at}" for at in range(1000)]
        asked.add(*(gpus(name) for name in names))
        asked.scores(wants("new", 500))
        for name in names:
            asked.remove_node(name)
    asked.scores(wants("new", 500))
    asked.scores(wants("new", 500))
    assert len(user._slots) <= 1024

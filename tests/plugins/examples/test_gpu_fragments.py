"""The measure of fragments, against the paper's definition written as loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.examples.gpu_fragments import (
    WHOLE,
    GpuShape,
    GpuStates,
    TypicalShapes,
    shape_of,
)

MODELS = ("A", "B")


def states(*nodes):
    """Return nodes that are written as (CPU, what is left of GPUs, model)."""
    width = max((len(left) for _, left, _ in nodes), default=1)
    gpus = [[*left, *[0] * (width - len(left))] for _, left, _ in nodes]
    return GpuStates(
        np.array([cpu for cpu, _, _ in nodes], dtype=np.int64),
        np.array(gpus, dtype=np.int64).reshape(len(nodes), width),
        np.array([MODELS.index(model) for _, _, model in nodes], dtype=np.int64),
    )


def typical(counts, popularity=1.0):
    made = TypicalShapes(counts, popularity)
    made.allow(MODELS)
    return made


def fragment_of(node, shares):
    """Return the fragment of one node: the definition, shape by shape."""
    cpu, left, model = node
    lost = 0.0
    for shape, share in shares.items():
        enough = [each for each in left if each >= shape.gpu_milli]
        starts = (
            shape.gpus > 0
            and cpu >= shape.cpu_milli
            and len(enough) >= shape.gpus
            and (not shape.models or model in shape.models)
        )
        lost += share * (sum(left) - sum(enough) if starts else sum(left))
    return lost


def cost_of(node, shape, shares):
    """Return the least growth of the fragment over all ways to give the pod its GPUs."""
    cpu, left, model = node
    before = fragment_of(node, shares)
    if shape.is_share:
        ways = [
            [*left[:at], each - shape.gpu_milli, *left[at + 1 :]]
            for at, each in enumerate(left)
            if each >= shape.gpu_milli
        ]
    else:
        others = sorted(left)
        whole = others.count(WHOLE)
        kept = others[: len(others) - shape.gpus]
        ways = [kept] if whole >= shape.gpus else []
    after = [fragment_of((cpu - shape.cpu_milli, way, model), shares) for way in ways]
    return min(after, default=np.inf) - before


shares_of_one = st.integers(1, 999).map(lambda milli: (milli, 1))
whole_ones = st.integers(1, 4).map(lambda gpus: (WHOLE, gpus))
nothing = st.just((0, 0))
shapes = st.builds(
    lambda cpu, gpu, models: GpuShape(cpu, *gpu, models),
    st.integers(0, 8000),
    st.one_of(shares_of_one, whole_ones, nothing),
    st.sets(st.sampled_from(MODELS)).map(frozenset),
)
nodes = st.tuples(
    st.integers(0, 8000),
    st.lists(st.sampled_from([0, 120, 500, 500, 730, WHOLE, WHOLE]), min_size=1, max_size=5),
    st.sampled_from(MODELS),
)


@given(
    st.lists(nodes, min_size=1, max_size=5), st.dictionaries(shapes, st.integers(1, 9), min_size=1)
)
def test_fragments_are_what_the_definition_says(drawn, counts):
    made = typical(counts)
    expected = [fragment_of(node, made.shares) for node in drawn]
    assert made.fragments(states(*drawn)) == pytest.approx(expected)


@given(
    st.lists(nodes, min_size=1, max_size=5),
    st.dictionaries(shapes, st.integers(1, 9), min_size=1),
    shapes,
)
def test_a_pod_costs_what_the_best_way_to_place_it_costs(drawn, counts, shape):
    made = typical(counts)
    expected = [cost_of(node, shape, made.shares) for node in drawn]
    costs, _ = made.costs(states(*drawn), shape)
    assert costs == pytest.approx(expected)


@given(st.lists(nodes, min_size=1, max_size=5), shapes.filter(lambda shape: shape.is_share))
def test_a_share_is_cut_from_a_gpu_that_has_enough(drawn, shape):
    costs, left = typical({GpuShape(0, WHOLE, 1): 1}).costs(states(*drawn), shape)
    for (_, gpus, _), cost, chosen in zip(drawn, costs, left, strict=True):
        assert (chosen in gpus and chosen >= shape.gpu_milli) if np.isfinite(cost) else chosen == 0


def test_more_nodes_than_are_worked_out_at_once():
    many = [(1000, [500, 1000], "A"), (0, [700], "B")] * 1000
    fragments = typical({GpuShape(500, 600, 1): 1}).fragments(states(*many))
    assert fragments.reshape(1000, 2) == pytest.approx(np.tile([500.0, 700.0], (1000, 1)))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param((4000, [1000, 1000], "A"), 0, id="all of it can be used"),
        pytest.param((4000, [300, 1000], "A"), 300, id="one GPU has too little left"),
        pytest.param((4000, [300, 400], "A"), 700, id="no GPU has enough"),
        pytest.param((1999, [1000], "A"), 1000, id="the CPU is used up"),
        pytest.param((4000, [1000], "B"), 1000, id="another model"),
    ],
)
def test_what_a_shape_cannot_use(node, expected):
    shape = GpuShape(2000, 500, 1, frozenset({"A"}))
    assert typical({shape: 1}).fragments(states(node)).tolist() == [expected]


def test_a_pod_that_takes_what_nobody_could_use_pays_less_than_nothing():
    costs, _ = typical({GpuShape(0, 600, 1): 1}).costs(
        states((9000, [300], "A"), (9000, [1000], "A")), GpuShape(0, 300, 1)
    )
    assert costs.tolist() == [-300, 0]


def test_cpu_alone_may_strand_gpus():
    costs, _ = typical({GpuShape(2000, WHOLE, 1): 1}).costs(
        states((2500, [1000], "A"), (9000, [1000], "A")), GpuShape(1000)
    )
    assert costs.tolist() == [1000, 0]


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        pytest.param(0, GpuShape(5), id="none"),
        pytest.param(460, GpuShape(5, 460, 1), id="a share"),
        pytest.param(1000, GpuShape(5, 1000, 1), id="one"),
        pytest.param(8000, GpuShape(5, 1000, 8), id="eight"),
        pytest.param(1500, None, id="one and a half"),
    ],
)
def test_what_a_demand_means(demand, expected):
    assert shape_of(5, demand) == expected


def test_the_most_frequent_shapes_are_typical():
    common, second, rare = GpuShape(1, 500, 1), GpuShape(1, WHOLE, 1), GpuShape(1, WHOLE, 8)
    made = typical({rare: 5, common: 80, second: 15}, 0.9)
    assert made.shares == pytest.approx({common: 80 / 95, second: 15 / 95})


def test_a_workload_of_no_pods_has_no_typical_ones():
    with pytest.raises(ValueError, match="at least one pod"):
        TypicalShapes({})

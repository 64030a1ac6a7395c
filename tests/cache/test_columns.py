from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import label_columns
from cache.columns import FEW_ROWS, MAX_DERIVED_BYTES, Columns, ColumnSpec, NodesView
from cache.node_info import NodeInfo
from cache.objects import Node, NodeMeta, NodeSpec, NodeStatus, Taint
from cache.resource_table import FIXED_RESOURCES
from tests.builders import array_bytes, node, pod


def info(name: str, *, cpu: str = "4", labels: dict[str, str] | None = None, **spec) -> NodeInfo:
    made_of = Node(
        metadata=NodeMeta(name=name, uid=f"uid-{name}", labels=labels or {}),
        spec=NodeSpec(**spec),
        status=NodeStatus(allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}),
    )
    made = NodeInfo(name)
    made.set_node(made_of)
    return made


def columns_of(*infos: NodeInfo) -> Columns:
    columns = Columns()
    for each in infos:
        columns.put(each)
    return columns


def test_rows_are_dense_after_a_node_left():
    columns = columns_of(info("a", cpu="1"), info("b", cpu="2"), info("c", cpu="3"))
    columns.remove("a")
    assert columns.allocatable[columns.resource_row["cpu"]].tolist() == [3000, 2000]
    assert columns.row_of == {"c": 0, "b": 1}


def test_an_extended_resource_gets_a_row_when_first_seen():
    columns = columns_of(info("a"))
    gpu = NodeInfo("b")
    gpu.set_node(Node(metadata=NodeMeta(name="b"), status=NodeStatus(allocatable={"x/gpu": "8"})))
    columns.put(gpu)
    assert NodesView(columns).allocatable("x/gpu").tolist() == [0, 8]


def test_a_resource_that_nobody_has_is_zero_everywhere():
    view = NodesView(columns_of(info("a"), info("b")))
    assert view.requested("x/unheard-of").tolist() == [0, 0]


def with_resources(name: str, *resources: str) -> NodeInfo:
    return node(name).capacity(dict.fromkeys(resources, "8")).info()


def with_requests(name: str, *resources: str) -> NodeInfo:
    """Return a node whose one pod requests five of each of some resources that it lacks."""
    made = info(name)
    made.add_pod(pod("odd").request(dict.fromkeys(resources, "5")).info())
    return made


def test_what_only_pods_name_takes_no_column():
    columns = columns_of(info("a"), info("b"))
    before = array_bytes(columns)
    columns.put(with_requests("a", *(f"x/r{index}" for index in range(1000))))
    assert list(columns.resource_row) == list(FIXED_RESOURCES)
    assert array_bytes(columns) == before
    view = NodesView(columns)
    assert view.requested("x/r7").tolist() == [5, 0]
    assert view.allocatable("x/r7").tolist() == [0, 0]


def test_a_resource_that_a_node_reports_later_finds_what_pods_requested_before():
    columns = columns_of(info("a"), with_requests("b", "x/gpu"), info("c"))
    columns.put(with_resources("c", "x/gpu"))
    assert columns.requested[columns.resource_row["x/gpu"]].tolist() == [0, 5, 0]
    assert columns.allocatable[columns.resource_row["x/gpu"]].tolist() == [0, 0, 8]


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda c: c.remove("a"), id="the node leaves"),
        pytest.param(lambda c: c.put(info("a")), id="the node has none any more"),
    ],
)
def test_a_resource_that_no_node_reports_any_more_gives_its_column_back(leave):
    columns = columns_of(with_resources("a", "x/gpu", "x/fpga"), with_resources("b", "x/fpga"))
    columns.put(info("c"))
    leave(columns)
    assert list(columns.resource_row) == [*FIXED_RESOURCES, "x/fpga"]
    fpga = NodesView(columns).allocatable("x/fpga").tolist()
    assert fpga[columns.row_of["b"]] == 8
    assert sum(fpga) == 8
    assert len(columns.allocatable) == len(FIXED_RESOURCES) + 1


def test_columns_of_resources_shrink_again():
    columns = columns_of(info("a"), info("b"))
    before = array_bytes(columns)
    columns.put(with_resources("a", *(f"x/r{index}" for index in range(300))))
    assert array_bytes(columns) > before
    columns.put(info("a"))
    assert array_bytes(columns) == before


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["report", "request", "remove"]),
            st.sampled_from("abc"),
            st.frozensets(st.sampled_from([f"x/r{index}" for index in range(12)])),
        ),
        max_size=30,
    )
)
def test_amounts_of_resources_that_come_and_go_are_those_of_the_nodes(history):
    columns = Columns()
    truth: dict[str, NodeInfo] = {}
    for action, name, resources in history:
        if action != "remove":
            make = with_resources if action == "report" else with_requests
            truth[name] = make(name, *resources)
            columns.put(truth[name])
        elif name in truth:
            columns.remove(name)
            del truth[name]
    view = NodesView(columns)
    for resource in ("cpu", "pods", *(f"x/r{index}" for index in range(12))):
        allocatable, requested = view.allocatable(resource), view.requested(resource)
        for row, each in enumerate(columns.node_infos):
            assert allocatable[row] == each.allocatable.get(resource, 0)
            if resource != "pods":
                assert requested[row] == each.requested.get(resource, 0)
    reported = {name for each in truth.values() for name in each.allocatable}
    assert columns.resource_row.keys() == reported | set(FIXED_RESOURCES)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.one_of(
                st.none(),
                st.dictionaries(
                    st.sampled_from(["cpu", "memory"]), st.sampled_from(["0", "2", "9Gi"])
                ),
            ),
        ),
        max_size=12,
    )
)
def test_cpu_and_memory_of_all_nodes_are_within_the_bounds(history):
    columns = Columns()
    for name, capacity in history:
        if capacity is not None:
            columns.put(node(name).capacity(capacity).info())
        elif name in columns.row_of:
            columns.remove(name)
        least, most = columns.basic_bounds
        amounts = columns.allocatable[: FIXED_RESOURCES.index("memory") + 1]
        assert np.all((amounts >= least) & (amounts <= most))


def test_a_node_without_cpu_is_known_by_the_bounds():
    without = NodeInfo("b")
    without.set_node(
        Node(metadata=NodeMeta(name="b"), status=NodeStatus(allocatable={"memory": "1Gi"}))
    )
    columns = columns_of(info("a"), without)
    assert columns.basic_bounds == (0, 8 << 30)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.put(info("new")), id="a node comes"),
        pytest.param(lambda c: c.remove("a"), id="a node leaves"),
        pytest.param(lambda c: c.put(_with_uid("a", "other")), id="a node is made again"),
    ],
)
def test_the_epoch_grows_when_a_row_means_another_node(change):
    columns = columns_of(info("a"), info("b"))
    before = columns.epoch
    change(columns)
    assert columns.epoch > before


def _with_uid(name: str, uid: str) -> NodeInfo:
    made = NodeInfo(name)
    made.set_node(Node(metadata=NodeMeta(name=name, uid=uid)))
    return made


def test_the_epoch_stays_when_a_node_only_changes():
    columns = columns_of(info("a"), info("b"))
    before = columns.epoch
    columns.put(info("a", cpu="16"))
    assert columns.epoch == before


def test_arrays_are_read_only():
    columns = columns_of(info("a"))
    with pytest.raises(ValueError, match="read-only"):
        columns.allocatable[0, 0] = 1


def test_an_imaginary_node_is_refused():
    with pytest.raises(ValueError, match="imaginary"):
        Columns().put(NodeInfo("ghost"))


def test_a_label_column_follows_a_relabelled_node():
    columns = columns_of(info("a", labels={"rack": "r1"}), info("b"))
    table, ids = columns.labels.get("rack")
    assert [table.values[i] for i in ids] == ["r1", None]
    columns.put(info("b", labels={"rack": "r2"}))
    table, ids = columns.labels.get("rack")
    assert [table.values[i] for i in ids] == ["r1", "r2"]


def test_a_label_table_does_not_grow_with_nodes_that_came_and_went():
    columns = columns_of(info("stays", labels={"host": "stays"}))
    for index in range(500):
        columns.put(info("guest", labels={"host": f"h{index}"}))
        table, ids = columns.labels.get("host")
    assert [table.values[i] for i in ids] == ["stays", "h499"]
    assert len(table.values) < 100


@pytest.mark.parametrize("number", [1, 64, 65, 1000])
def test_a_label_with_a_value_for_each_node_is_filled_once_at_any_size(monkeypatch, number):
    monkeypatch.setattr(label_columns, "MAX_BYTES", 1)
    columns = columns_of(*(info(f"n{at}", labels={"host": f"n{at}"}) for at in range(number)))
    for _ in range(3):
        columns.labels.get("host")
    assert columns.labels.num_filled == 1


def test_the_label_keys_of_all_nodes_are_known():
    columns = columns_of(info("a", labels={"rack": "r1"}), info("b", labels={"rack": "r2"}))
    columns.put(info("b", labels={"gpu": "yes"}))
    assert columns.label_keys == {"rack": 1, "gpu": 1}
    columns.remove("a")
    assert columns.label_keys == {"gpu": 1}


def test_taint_sets_of_nodes_that_left_are_dropped():
    columns = columns_of(info("a", taints=(Taint("k", "v", "NoSchedule"),)), info("b"))
    columns.remove("a")
    assert list(columns.taint_sets.values()) == [()]


def test_a_node_that_changes_costs_nothing_for_columns_that_nobody_asks_for():
    columns = columns_of(info("a"), info("b"))
    filled = []

    def fill(node_info):
        filled.append(node_info)
        return 0

    for index in range(3000):
        columns.derived(ColumnSpec(index, fill, of_pods=True))
    filled.clear()
    columns.put(info("a"))
    assert filled == []
    columns.derived(ColumnSpec(2999, fill, of_pods=True))
    assert len(filled) == 1


def test_no_more_than_a_thousand_derived_columns_are_kept():
    columns = columns_of(info("a"), info("b"))
    before = array_bytes(columns)
    for index in range(3000):
        columns.derived(ColumnSpec(index, lambda node: 0))
    one = array_bytes(columns) - before
    columns.derived(ColumnSpec("one more", lambda node: 0))
    assert array_bytes(columns) - before == one <= 1024 * 64 * 8


def test_unused_derived_columns_are_dropped_and_filled_again():
    columns = columns_of(info("a"), info("b"))
    first = ColumnSpec("first", lambda node: len(node.name))
    columns.derived(first)
    for index in range(MAX_DERIVED_BYTES // 1000):
        columns.derived(ColumnSpec(index, lambda node: 0))
    assert array_bytes(columns) < 2 * MAX_DERIVED_BYTES
    columns.put(info("longer"))
    assert columns.derived(first).tolist() == [1, 1, 6]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "remove"]),
            st.sampled_from([f"n{i}" for i in range(6)]),
            st.integers(1, 9),
        ),
        max_size=40,
    )
)
def test_columns_after_any_history_equal_columns_built_anew(history):
    columns = Columns()
    truth: dict[str, NodeInfo] = {}
    length = ColumnSpec("milli", lambda node: node.allocatable["cpu"])
    columns.derived(length)
    for action, name, cpu in history:
        if action == "put":
            truth[name] = info(
                name,
                cpu=str(cpu),
                labels={"size": str(cpu % 3)},
                unschedulable=cpu % 2 == 0,
                taints=(Taint("t", str(cpu % 4), "NoSchedule"),),
            )
            columns.put(truth[name])
        elif name in truth:
            del truth[name]
            columns.remove(name)
    rebuilt = columns_of(*truth.values())
    order = [columns.row_of[name] for name in rebuilt.row_of]
    assert sorted(order) == list(range(len(truth)))
    assert columns.label_keys == rebuilt.label_keys
    np.testing.assert_array_equal(columns.allocatable[:, order], rebuilt.allocatable)
    np.testing.assert_array_equal(columns.requested[:, order], rebuilt.requested)
    np.testing.assert_array_equal(columns.unschedulable[order], rebuilt.unschedulable)
    np.testing.assert_array_equal(columns.derived(length)[order], rebuilt.derived(length))
    assert [columns.taint_sets.value(int(columns.taint_set_ids[row])) for row in order] == [
        rebuilt.taint_sets.value(int(i)) for i in rebuilt.taint_set_ids
    ]
    table, ids = columns.labels.get("size")
    twin, twin_ids = rebuilt.labels.get("size")
    assert [table.values[ids[row]] for row in order] == [twin.values[i] for i in twin_ids]


def _with_claims(name: str, *claims: str) -> NodeInfo:
    users = [pod(f"{name}-{index}").claim(each) for index, each in enumerate(claims)]
    return node(name).info(*users)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param(lambda c: None, {"default/x": 2, "default/y": 1}, id="at first"),
        pytest.param(lambda c: c.put(_with_claims("a", "y")), {"default/y": 2}, id="pods go"),
        pytest.param(lambda c: c.remove("a"), {"default/y": 1}, id="a node leaves"),
        pytest.param(
            lambda c: c.put(_with_claims("c", "x")),
            {"default/x": 3, "default/y": 1},
            id="one comes",
        ),
    ],
)
def test_claims_are_counted_over_all_nodes(change, counts):
    columns = columns_of(_with_claims("a", "x", "x"), _with_claims("b", "y"))
    change(columns)
    assert columns.claim_ref_counts == counts


def test_a_claim_that_a_pod_mounts_twice_is_free_once_the_pod_is_gone():
    twice = pod("twice").claim("data").claim("data").info()
    info = node("a").info()
    info.add_pod(twice)
    info.remove_pod(twice.uid)
    assert info.pvc_ref_counts == {}


@pytest.mark.parametrize("count", [0, 1, 40, FEW_ROWS, FEW_ROWS + 1])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2,), (3, 2)], ids=str)
def test_a_view_takes_its_rows_of_an_array_of_any_shape(shape, count):
    columns = columns_of(*(info(f"n{index}") for index in range(FEW_ROWS + 9)))
    # With room for more rows, as the tables have it.
    array = np.arange(np.prod((*shape, len(columns) + 5)), dtype=np.int32)
    array = array.reshape(*shape, len(columns) + 5)[..., : len(columns)]
    rows = np.arange(len(columns))[::-1][:count].copy()
    taken = NodesView(columns, rows).take(array)
    assert (taken.shape, taken.dtype) == ((*shape, count), np.int32)
    assert np.array_equal(taken, array[..., rows])


def test_amounts_that_are_added_to_rows_are_those_of_a_pod_that_is_put_there():
    one = pod("p").request({"cpu": "500m", "memory": "1Gi", "x/gpu": "2", "x/none": "1"})
    both = [with_resources(name, "cpu", "x/gpu") for name in "ab"]
    counted, put = columns_of(*both), columns_of(*both)
    counted.add_amounts(np.array([1], dtype=np.intp), one.info())
    changed = with_resources("b", "cpu", "x/gpu")
    changed.add_pod(one.info())
    put.put(changed)
    view, other = NodesView(counted), NodesView(put)
    for name in ("cpu", "memory", "pods", "x/gpu"):
        assert view.requested(name).tolist() == other.requested(name).tolist()
    for which in (0, 1):
        assert view.nonzero_requested(which).tolist() == other.nonzero_requested(which).tolist()
    assert list(counted.follow(put.cursor - 1)[1]) == [1]

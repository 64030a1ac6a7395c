from __future__ import annotations

import weakref
from collections import OrderedDict, deque

import numpy as np
import pytest

from cache.byte_bounded import ByteBounded
from cache.value import MutableValue
from scheduler.debug.table_sizes import table_sizes
from tests.builders import node, pod
from tests.scheduler.parts import Parts


class Holder:
    """Of a module of ours, as far as the census can see."""

    __module__ = "cache.of_this_test"

    def __init__(self, **tables: object) -> None:
        self.__dict__.update(tables)


class SlottedHolder:
    __module__ = "cache.of_this_test"
    __slots__ = ("absent", "rows")

    def __init__(self, rows: object) -> None:
        self.rows = rows


class PlainHolder(MutableValue):
    __module__ = "cache.of_this_test"

    rows: object


def items(sizes: dict[str, dict[str, int]], name: str) -> int:
    return sizes[f"cache.of_this_test.{name}"]["items"]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param({1: "a", 2: "b", 3: "c"}, id="dict"),
        pytest.param([1, 2, 3], id="list"),
        pytest.param({1, 2, 3}, id="set"),
        pytest.param(np.zeros(3), id="array"),
    ],
)
def test_each_kind_of_table_is_counted(table: object) -> None:
    assert items(table_sizes(Holder(rows=table)), "Holder.rows") == 3


def test_slots_are_attributes() -> None:
    assert items(table_sizes(SlottedHolder([1, 2])), "SlottedHolder.rows") == 2


def test_plain_values_are_no_rows() -> None:
    sizes = table_sizes(Holder(parts={"a": PlainHolder([1, 2])}))
    assert items(sizes, "PlainHolder.rows") == 2


def test_tables_of_one_name_are_added_up() -> None:
    sizes = table_sizes(Holder(parts=[Holder(rows=[1]), Holder(rows=[1, 2])]))
    found = sizes["cache.of_this_test.Holder.rows"]
    assert (found["tables"], found["items"]) == (2, 3)
    assert found["bytes"] > 0


def remembered_rows() -> ByteBounded[str, Holder]:
    known: ByteBounded[str, Holder] = ByteBounded(100, lambda key, value: 1)
    known.put("a", Holder(rows=[1, 2, 3]))
    return known


@pytest.mark.parametrize(
    ("table", "bounded"),
    [
        pytest.param([1, 2, 3], 0, id="list"),
        pytest.param(deque([1, 2, 3]), 0, id="deque"),
        pytest.param(deque([1, 2, 3], maxlen=5), 3, id="deque with a limit"),
    ],
)
def test_what_a_limit_holds_is_told_apart(table: object, bounded: int) -> None:
    assert table_sizes(Holder(rows=table))["cache.of_this_test.Holder.rows"]["bounded"] == bounded


def test_what_is_kept_within_bytes_is_told_apart_unless_others_have_it_too() -> None:
    known = remembered_rows()
    name = "cache.of_this_test.Holder.rows"
    assert table_sizes(Holder(known=known))[name]["bounded"] == 3
    assert table_sizes(Holder(known=known, other=known.get("a")))[name]["bounded"] == 0


def test_what_is_reached_in_two_ways_counts_once() -> None:
    inner = Holder(rows=[1, 2])
    assert items(table_sizes(Holder(a=inner, b={"c": inner})), "Holder.rows") == 2


def test_a_function_s_own_variables_and_methods_lead_on() -> None:
    inner = Holder(rows=[1, 2, 3])

    def closure() -> Holder:
        return inner

    assert items(table_sizes(Holder(call=closure)), "Holder.rows") == 3
    assert "cache.scheduler_cache.SchedulerCache._pods" in table_sizes(
        Holder(call=Parts().cache.add_pod)
    )


def test_a_pod_that_comes_and_goes_leaves_the_cache_as_it_was() -> None:
    parts = Parts()
    parts.cache.add_node(node("n1").capacity(cpu="4").build())
    before = table_sizes(parts.cache)
    info = pod("runs").request(cpu="1").on("n1").info()
    parts.cache.add_pod(info)
    during = table_sizes(parts.cache)
    name = "cache.scheduler_cache.SchedulerCache._pods"
    assert during[name]["items"] == before[name]["items"] + 1
    parts.cache.remove_pod(info)
    assert table_sizes(parts.cache)[name]["items"] == before[name]["items"]


def test_what_a_proxy_stood_for_may_be_gone() -> None:
    gone = Holder(deep=[1])
    proxy = weakref.proxy(gone)
    del gone
    sizes = table_sizes(Holder(parent=proxy, rows=[proxy, Holder(deep=[1])]))
    assert sizes["cache.of_this_test.Holder.deep"]["items"] == 1


class RestlessKey:
    """Changes the table while it is being read, as another thread may: its hash is asked then."""

    def __init__(self, rows: OrderedDict[object, object]) -> None:
        self.rows = rows
        self.changes = 0

    def __hash__(self) -> int:
        if self.changes:
            self.changes -= 1
            self.rows[self.changes] = Holder(deep=[])
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize(
    ("changes", "found"), [pytest.param(3, 2, id="a while"), pytest.param(10**6, 0, id="always")]
)
def test_a_table_may_change_while_it_is_read(changes: int, found: int) -> None:
    rows: OrderedDict[object, object] = OrderedDict()
    key = RestlessKey(rows)
    rows[key] = Holder(deep=[1, 2])
    key.changes = changes
    sizes = table_sizes(Holder(rows=rows))
    assert sizes.get("cache.of_this_test.Holder.deep", {"items": 0})["items"] == found

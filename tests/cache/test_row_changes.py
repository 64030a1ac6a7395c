from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import change_journal
from cache.columns import Columns, ColumnSpec
from tests.builders import node, pod

if TYPE_CHECKING:
    from cache.node_info import NodeInfo


def columns_of(*names: str) -> Columns:
    columns = Columns()
    for name in names:
        columns.put(node(name).info())
    return columns


class Mirror:
    """Keeps the nodes of some columns by row, as anybody does who follows them."""

    def __init__(self, columns: Columns, *, of_pods: bool = True) -> None:
        self._columns = columns
        self._of_pods = of_pods
        self._cursor = 0
        self.seen: dict[int, NodeInfo] = {}
        self.reads = 0

    def follow(self) -> list[NodeInfo]:
        self._cursor, rows = self._columns.follow(self._cursor, of_pods=self._of_pods)
        for row in rows:
            self.reads += 1
            info = self._columns.info_at(row)
            if info is None:
                self.seen.pop(row, None)
            else:
                self.seen[row] = info
        return [self.seen[row] for row in sorted(self.seen)]


def test_all_rows_have_changed_at_first_and_later_those_that_did():
    columns = columns_of("a", "b", "c")
    cursor, rows = columns.follow(0)
    assert set(rows) == {0, 1, 2}
    assert columns.follow(cursor) == (cursor, ())
    columns.put(node("b").info())
    cursor, rows = columns.follow(cursor)
    assert set(rows) == {1}


def test_a_node_that_leaves_changes_its_row_and_that_of_the_last():
    columns = columns_of("a", "b", "c")
    cursor = columns.cursor
    columns.remove("a")
    _, rows = columns.follow(cursor)
    assert {row: columns.info_at(row) for row in rows} == {0: columns.node_infos[0], 2: None}


def test_pods_that_come_change_no_node_object():
    columns = columns_of("a", "b")
    cursor, node_cursor = columns.cursor, columns.node_cursor
    fuller = columns.node_infos[0].clone()
    fuller.add_pod(pod("p").info())
    columns.put(fuller)
    assert set(columns.follow(cursor)[1]) == {0}
    assert not columns.follow(node_cursor, of_pods=False)[1]


@pytest.mark.parametrize("max_changes", [0, 3, 8192])
@given(
    history=st.lists(
        st.tuples(st.sampled_from(["put", "remove", "look"]), st.sampled_from("abcd")), max_size=40
    )
)
def test_what_follows_knows_the_same_nodes(max_changes, history):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_journal, "MAX_CHANGES", max_changes)
        columns = Columns()
        mirrors = [Mirror(columns), Mirror(columns, of_pods=False)]
        for action, name in [*history, ("look", "")]:
            if action == "put":
                columns.put(node(name).info())
            elif action == "remove" and name in columns.row_of:
                columns.remove(name)
            elif action == "look":
                for mirror in mirrors:
                    assert mirror.follow() == columns.node_infos


def test_a_derived_column_is_filled_when_it_is_asked_for_and_not_before():
    columns = columns_of("a", "b")
    filled = []

    def fill(node_info):
        filled.append(node_info.name)
        return len(node_info.pods)

    spec = ColumnSpec("pods", fill, of_pods=True)
    columns.derived(spec)
    filled.clear()
    for _ in range(5):
        columns.put(node("a").info(pod("p")))
    assert filled == []
    assert columns.derived(spec).tolist() == [1, 0]
    assert filled == ["a"]

from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from cache.columns import Columns
from tests.builders import node


def columns_of(*names: str) -> Columns:
    columns = Columns()
    for name in names:
        columns.put(node(name).info())
    return columns


def test_all_nodes_have_changed_at_first_and_later_those_that_did():
    columns = columns_of("a", "b")
    changed = columns.follow()
    assert changed.take(()) == {"a", "b"}
    assert not changed
    columns.put(node("b").info())
    columns.remove("a")
    assert changed.take(()) == {"a", "b"}
    assert not columns.follow(from_now=True)


def test_who_is_gone_is_not_told_any_more():
    columns = columns_of("a")
    followers = [columns.follow() for _ in range(400)]
    kept = followers.pop()
    followers.clear()
    gc.collect()
    columns.put(node("a").info())
    assert columns.num_followers == 1
    assert kept.take(()) == {"a"}


def test_who_does_not_look_keeps_no_more_names_than_there_are_nodes():
    columns = columns_of("stays")
    changed = columns.follow(from_now=True)
    for index in range(1000):
        columns.put(node(f"guest-{index}").info())
        columns.remove(f"guest-{index}")
    columns.put(node("comes").info())
    assert changed.take({"known"}) == {"stays", "comes", "known"}


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "remove", "take"]), st.sampled_from("abcd")), max_size=40
    )
)
def test_what_follows_knows_the_same_nodes(history):
    columns = Columns()
    changed = columns.follow()
    mirror: dict[str, object] = {}
    for action, name in [*history, ("take", "")]:
        if action == "put":
            columns.put(node(name).info())
        elif action == "remove" and name in columns.row_of:
            columns.remove(name)
        elif action == "take":
            for each in changed.take(mirror):
                row = columns.row_of.get(each)
                if row is None:
                    mirror.pop(each, None)
                else:
                    mirror[each] = columns.node_infos[row]
            assert mirror == {info.name: info for info in columns.node_infos}

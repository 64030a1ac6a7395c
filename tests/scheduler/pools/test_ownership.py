from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.pod_group_objects import GROUP_LABEL
from scheduler.pools.ownership import Ownership, Round, may_run_in, round_of
from tests.builders import pod, requirement, term
from tests.scheduler.pools.pools import POOLS, A, B, C, annotated, waiting

if TYPE_CHECKING:
    from scheduler.pools.options import Pool

NAMES = [pool.name for pool in POOLS]


def ours():
    return pod("web").scheduler("berth")


@pytest.mark.parametrize(
    ("made", "owner"),
    [
        pytest.param(waiting(), "a", id="the first one that serves the name"),
        pytest.param(waiting(owner="c"), "c", id="the annotation"),
        pytest.param(waiting(owner="gone"), "a", id="an unknown pool"),
        pytest.param(ours().node_selector("pool", "b2").build(), "b", id="its node selector"),
        pytest.param(
            annotated(ours().node_selector("pool", "b").build(), "c"), "c", id="the word counts"
        ),
        pytest.param(ours().node_selector("pool", "none").build(), "a", id="no pool at all"),
        pytest.param(
            ours().node_selector("pool", "c").label(GROUP_LABEL, "gang").build(),
            "a",
            id="a group has one owner whatever its members select",
        ),
        pytest.param(
            annotated(pod("web").scheduler("berth-c").build(), "a"), "c", id="its name is one's own"
        ),
        pytest.param(pod("web").scheduler("other").build(), "", id="another scheduler"),
    ],
)
def test_every_pool_agrees_on_the_owner(made, owner):
    assert {Ownership(name, POOLS).owner_of(made) for name in NAMES} == {owner}
    assert [name for name in NAMES if Ownership(name, POOLS).owns(made)] == (
        [owner] if owner else []
    )


@pytest.mark.parametrize(
    ("terms", "pools"),
    [
        ([("pool", "In", ["a", "b"])], "ab"),
        ([("pool", "NotIn", ["a"])], "bc"),
        ([("pool", "NotIn", ["b"])], "abc"),
        ([("pool", "Exists", [])], "abc"),
        ([("pool", "DoesNotExist", [])], ""),
        ([("spot", "Exists", [])], "ab"),
        ([("zone", "In", ["x"])], "abc"),
        ([("pool", "In", ["a"]), ("pool", "In", ["b"])], ""),
    ],
)
def test_required_node_affinity_excludes_pools(terms, pools):
    made = (
        ours()
        .node_affinity(term(*(requirement(key, op, *values) for key, op, values in terms)))
        .build()
    )
    assert "".join(pool.name for pool in POOLS if may_run_in(made, pool)) == pools


def test_one_of_several_terms_is_enough():
    made = ours().node_affinity(*(term(requirement("pool", "In", name)) for name in "bc")).build()
    assert [pool.name for pool in POOLS if may_run_in(made, pool)] == ["b", "c"]


@pytest.mark.parametrize(
    ("after", "live", "order"),
    [
        ("a", "abc", ["b", "c"]),
        ("b", "abc", ["c", "a"]),
        ("c", "abc", ["a", "b"]),
        ("a", "ac", ["c"]),
        ("a", "", []),
    ],
)
def test_the_declared_order_is_a_ring(after, live, order):
    assert Ownership("a", POOLS).next_pools(waiting(), after, live) == order


def test_a_pod_does_not_go_where_it_cannot_run():
    made = ours().node_selector("pool", "b").build()
    assert Ownership("b", POOLS).next_pools(made, "b", NAMES) == []


def test_a_group_stays():
    made = ours().label(GROUP_LABEL, "gang").build()
    assert Ownership("a", POOLS).next_pools(made, "a", NAMES) == []


@pytest.mark.parametrize(
    ("text", "trip"),
    [
        ("", Round()),
        ("2:a,b", Round(2, frozenset("ab"))),
        ("3:", Round(3)),
        ("0:a", Round(1, frozenset("a"))),
        ("many:a", Round()),
        ("9" * 40 + ":a", Round()),
    ],
)
def test_rounds_are_read(text, trip):
    assert round_of(waiting(trip=text)) == trip
    assert round_of(waiting(trip=str(trip))) == trip


class TestGivenAway:
    """From the first byte of the patch on, whatever the watch shows."""

    def test_it_is_nobodys_while_the_patch_is_on_its_way(self):
        ownership = Ownership("a", POOLS)
        ownership.begin_giving(waiting().metadata.uid)
        assert not ownership.owns(waiting(version=7))

    def test_an_older_version_is_not_ours_again(self):
        ownership, made = Ownership("a", POOLS), waiting(version=1)
        ownership.begin_giving(made.metadata.uid)
        ownership.gave(made, "5", made)
        assert not ownership.owns(annotated(made, "", version=4))
        assert not ownership.owns(annotated(made, "b", version=5))
        assert ownership.owns(annotated(made, "a", version=6))

    def test_what_was_not_written_stays(self):
        ownership, made = Ownership("a", POOLS), waiting()
        ownership.begin_giving(made.metadata.uid)
        ownership.keep(made.metadata.uid)
        assert ownership.owns(made)

    def test_nothing_is_remembered_once_the_watch_has_shown_it(self):
        ownership, made = Ownership("a", POOLS), waiting(version=1)
        ownership.begin_giving(made.metadata.uid)
        ownership.gave(made, "5", made)
        ownership.saw(made, annotated(made, "b", version=5))
        assert ownership.counts == {"given": 0, "others": 1}
        ownership.saw(annotated(made, "b", version=5), None)
        assert ownership.counts == {"given": 0, "others": 0}

    def test_nothing_is_remembered_of_a_pod_that_is_gone_by_then(self):
        ownership, made = Ownership("a", POOLS), waiting(version=1)
        ownership.begin_giving(made.metadata.uid)
        ownership.saw(made, None)
        ownership.gave(made, "5", None)
        assert ownership.counts == {"given": 0, "others": 0}


@given(
    annotation=st.sampled_from(["", "a", "b", "c", "gone"]),
    selected=st.sampled_from([None, "a", "b", "c", "none"]),
    name=st.sampled_from(["berth", "berth-c", "other"]),
    order=st.permutations([A, B, C]),
    grouped=st.booleans(),
)
def test_a_pod_has_exactly_one_owner(
    annotation, selected, name, order: list[Pool], grouped
) -> None:
    builder = pod("web").scheduler(name)
    if selected is not None:
        builder = builder.node_selector("pool", selected)
    if grouped:
        builder = builder.label(GROUP_LABEL, "gang")
    made = annotated(builder.build(), annotation)
    owners = [pool.name for pool in order if Ownership(pool.name, order).owns(made)]
    assert len(owners) == (name != "other")

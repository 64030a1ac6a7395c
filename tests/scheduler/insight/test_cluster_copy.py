"""The worker's copy follows the stores, whatever happens to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.comparer import compare
from scheduler.insight.changes import StoreChanges
from scheduler.insight.cluster_copy import ClusterCopy
from scheduler.insight.messages import Frames, Objects
from tests.builders import node, pod
from tests.scheduler.insight.informed import Informed


class Followed:
    """Stores, and a copy that follows them."""

    def __init__(self) -> None:
        self.stores = Informed()
        self.changes = StoreChanges(lambda: self.stores.all)
        self.changes.follow()
        self.copy = ClusterCopy()
        self.versions = 0

    def sync(self, meanwhile=lambda: None) -> int:
        """Bring the copy up to date; return the number of objects that were sent."""
        sent = 0
        for part in self.changes.slices():
            for message in Frames().feed(part):
                assert isinstance(message, Objects)
                sent += part.count(b"resourceVersion")
                self.copy.change(message)
            meanwhile()
        return sent

    def version(self, obj: Any) -> Any:
        self.versions += 1
        meta = replace(obj.metadata, resource_version=str(self.versions))
        return replace(obj, metadata=meta)

    def put_pod(self, name: str, *, on: str = "", cpu: str = "1", uid: str = "") -> None:
        made = pod(name).request(cpu=cpu).uid(uid or f"uid-{name}")
        self.stores.put(self.stores.pods, self.version((made.on(on) if on else made).build()))

    def put_node(self, name: str) -> None:
        made = node(name).capacity(cpu="8", pods="9").build()
        self.stores.put(self.stores.nodes, self.version(made))

    def mismatches(self) -> list[Any]:
        nodes, pods = self.stores.nodes.list(), self.stores.pods.list()
        return compare(self.copy.cluster.cache.dump(), nodes, pods)


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(st.just("pod"), NAMES, NAMES, st.sampled_from(["1", "2"]), st.sampled_from("xy")),
    st.tuples(st.just("pending"), NAMES, st.sampled_from("xy")),
    st.tuples(st.just("node"), NAMES),
    st.tuples(st.just("gone"), NAMES),
    st.tuples(st.just("no node"), NAMES),
    st.tuples(st.just("sync")),
)


def play(world: Followed, step: tuple[str, ...]) -> None:
    stores = world.stores
    match step:
        case "pod", name, on, cpu, uid:
            world.put_pod(name, on=on, cpu=cpu, uid=f"{name}-{uid}")
        case "pending", name, uid:
            world.put_pod(name, uid=f"{name}-{uid}")
        case "node", name:
            world.put_node(name)
        case "gone", name:
            if (found := stores.pods.get("default", name)) is not None:
                stores.remove(stores.pods, found)
        case "no node", name:
            if (found := stores.nodes.get("", name)) is not None:
                stores.remove(stores.nodes, found)
        case _:
            world.sync()


@given(before=st.lists(STEPS, max_size=8), after=st.lists(STEPS, max_size=20))
def test_after_any_history_the_copy_equals_the_stores(before, after):
    world = Followed()
    for step in before:
        play(world, step)
    world.changes.begin()
    for step in after:
        play(world, step)
    world.sync()
    assert world.mismatches() == []
    names = {f"default/{each.metadata.name}" for each in world.stores.pods.list()}
    assert world.copy.cluster.pods.keys() == names
    assert world.copy.cluster.nodes.keys() == {n.metadata.name for n in world.stores.nodes.list()}


def test_what_changes_while_all_is_sent_arrives_too():
    world = Followed()
    world.put_node("a")
    for number in range(450):
        world.put_pod(f"p{number}", on="a", cpu="1m")
    world.changes.begin()
    number = iter(range(450))

    def change() -> None:
        if (at := next(number, None)) is not None:
            play(world, ("gone", f"p{at}"))
            world.put_pod(f"p{449 - at}", on="a", cpu="2m", uid=f"new-{at}")

    world.sync(change)
    assert world.mismatches() == []


def test_only_what_has_changed_is_sent_again():
    world = Followed()
    world.put_node("a")
    for number in range(50):
        world.put_pod(f"p{number}", on="a")
    world.changes.begin()
    world.sync()
    assert world.sync() == 0
    world.put_pod("p7", on="a", cpu="3")
    assert world.sync() == 1


def test_nothing_is_collected_while_nobody_asks():
    world = Followed()
    world.changes.begin()
    world.changes.end()
    world.put_node("a")
    assert world.changes._changed == {}


@pytest.mark.parametrize(
    ("assumed", "requested"),
    [
        pytest.param([{}], 0, id="none"),
        pytest.param([{"uid-p": "a"}], 1_000, id="an assumed pod uses its node"),
        pytest.param([{"uid-p": "a"}, {}], 0, id="no longer when it is forgotten"),
        pytest.param([{"gone": "a"}], 0, id="one that is not known yet"),
    ],
)
def test_assumed_pods(assumed, requested):
    world = Followed()
    world.put_node("a")
    world.put_pod("p")
    world.changes.begin()
    world.sync()
    for nodes in assumed:
        world.copy.assume(nodes)
    used = world.copy.cluster.cache.dump().nodes["a"].requested
    assert used.get("cpu", 0) == requested


def test_an_object_that_cannot_be_read_takes_no_other_away():
    world = Followed()
    world.put_node("a")
    bad = node("b").capacity(cpu="many").build()
    world.stores.put(world.stores.nodes, world.version(bad))
    world.changes.begin()
    world.sync()
    assert [info.name for info in world.copy.snapshot().all_nodes().node_infos()] == ["a"]

from __future__ import annotations

import pytest

from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.nominated_nodes import FEW_NODES, NominatedNodes
from tests.builders import node, pod

NODES = [f"n{index}" for index in range(FEW_NODES + 4)]


class Scene:
    """Empty nodes, enough of them for columns of their own, and a nominator."""

    def __init__(self) -> None:
        self.cache, self.snapshot = SchedulerCache(), Snapshot()
        for name in NODES:
            self.cache.add_node(node(name).capacity(cpu="4").build())
        self.nominator = Nominator(lambda uid: True)
        self.nominated = NominatedNodes(self.nominator.latest)

    def nominate(self, name: str, node_name: str, priority: int = 0, cpu: str = "1") -> None:
        made = pod(name).uid(name).priority(priority).request(cpu=cpu)
        self.nominator.add(made.info(), node_name)

    def crowded(self, name: str = "asks", priority: int = 0) -> dict[str, int]:
        """Milli-CPU requested on each crowded node, as a pod of this priority sees it."""
        self.cache.update_snapshot(self.snapshot)
        info = pod(name).uid(name).priority(priority).info()
        nodes = self.snapshot.all_nodes()
        found = {}
        for crowd in self.nominated.crowded(info, nodes):
            for index, at in enumerate(crowd.at):
                node_info = crowd.view.node_info(index)
                assert nodes.node_info(int(at)).name == node_info.name
                assert crowd.added_to(index)
                found[node_info.name] = int(crowd.view.requested("cpu")[index])
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_without_nominations_no_node_is_crowded(scene):
    assert scene.crowded() == {}


def test_nominated_pods_are_added_to_what_runs_on_the_node(scene):
    scene.cache.add_pod(pod("runs").uid("runs").request(cpu="2").on("n1").info())
    scene.nominate("a", "n1")
    assert scene.crowded() == {"n1": 3000}


@pytest.mark.parametrize(
    ("priority", "minds"),
    [
        pytest.param(9, True, id="lower than theirs"),
        pytest.param(10, True, id="equal"),
        pytest.param(11, False, id="higher"),
    ],
)
def test_only_pods_of_a_lower_or_equal_priority_mind(scene, priority, minds):
    scene.nominate("a", "n1", priority=10)
    assert scene.crowded(priority=priority) == ({"n1": 1000} if minds else {})


def test_each_priority_minds_its_own_pods(scene):
    scene.nominate("low", "n1", priority=1)
    scene.nominate("high", "n1", priority=10)
    assert [scene.crowded(priority=each)["n1"] for each in (0, 1, 2, 10)] == [
        2000,
        2000,
        1000,
        1000,
    ]


def test_a_pod_does_not_stand_in_its_own_way(scene):
    scene.nominate("self", "n1")
    scene.nominate("other", "n2")
    assert scene.crowded("self") == {"n2": 1000}


def test_others_on_its_own_node_still_count(scene):
    scene.nominate("self", "n1")
    scene.nominate("other", "n1")
    assert scene.crowded("self") == {"n1": 1000}


class TestChanges:
    """What was crowded before is brought up to date."""

    def test_a_nomination_that_comes_later(self, scene):
        scene.nominate("a", "n1")
        scene.crowded()
        scene.nominate("b", "n2")
        assert scene.crowded() == {"n1": 1000, "n2": 1000}

    def test_a_nomination_that_ends(self, scene):
        scene.nominate("a", "n1")
        scene.nominate("b", "n2")
        scene.crowded()
        scene.nominator.delete("a")
        assert scene.crowded() == {"n2": 1000}

    def test_the_last_nomination_and_a_new_one(self, scene):
        scene.nominate("a", "n1")
        scene.crowded()
        scene.nominator.delete("a")
        assert scene.crowded() == {}
        scene.cache.add_pod(pod("runs").uid("runs").request(cpu="2").on("n1").info())
        scene.nominate("a", "n1")
        assert scene.crowded() == {"n1": 3000}

    def test_a_nomination_that_moves(self, scene):
        scene.nominate("a", "n1")
        scene.crowded()
        scene.nominate("a", "n2")
        assert scene.crowded() == {"n2": 1000}

    def test_a_pod_that_comes_to_the_node(self, scene):
        scene.nominate("a", "n1")
        scene.crowded()
        scene.cache.add_pod(pod("runs").uid("runs").request(cpu="2").on("n1").info())
        assert scene.crowded() == {"n1": 3000}

    def test_a_nominated_pod_that_is_there_already_counts_once(self, scene):
        scene.nominate("a", "n1")
        scene.nominate("b", "n1")
        scene.crowded()
        scene.cache.add_pod(pod("a").uid("a").request(cpu="1").on("n1").info())
        assert scene.crowded() == {"n1": 2000}

    def test_a_node_that_goes(self, scene):
        scene.nominate("a", "n1")
        scene.nominate("b", NODES[-1])
        scene.crowded()
        scene.cache.remove_node("n1")
        assert scene.crowded() == {NODES[-1]: 1000}

    def test_a_node_that_comes_back(self, scene):
        scene.nominate("a", "n1")
        scene.nominate("b", "n2")
        scene.crowded()
        scene.cache.remove_node("n1")
        scene.crowded()
        scene.cache.add_node(node("n1").uid("again").capacity(cpu="4").build())
        assert scene.crowded() == {"n1": 1000, "n2": 1000}

    def test_every_priority_hears_of_a_change(self, scene):
        scene.nominate("low", "n1", priority=1)
        scene.nominate("high", "n2", priority=10)
        for priority in (0, 5):
            scene.crowded(priority=priority)
        scene.nominate("more", "n3", priority=10)
        scene.crowded(priority=0)
        assert scene.crowded(priority=5) == {"n2": 1000, "n3": 1000}


def test_what_is_nominated_again_after_an_end_finds_the_nodes_as_they_are(scene):
    scene.nominate("a", "n1")
    scene.crowded()
    scene.nominator.delete("a")
    scene.crowded()
    scene.cache.add_pod(pod("runs").uid("runs").request(cpu="2").on("n1").info())
    scene.crowded()
    scene.nominate("b", "n1")
    assert scene.crowded() == {"n1": 3000}

"""Each promise, and a plugin that breaks it."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest

from plugins.authoring import Args, PolicyClassError
from scheduler.user_plugins.plugin_trial.conformance import ALL, BrokenPromiseError, Checks, Subject
from scheduler.user_plugins.plugin_trial.trial_cluster import World

RACK = "example.com/rack"
COST = "example.com/cost-per-hour"


class Good:
    """Keeps every promise, with everything that a plugin may have."""

    class Args(Args):
        label: str = COST

    def __init__(self, args):
        self.args = args

    def filter(self, pod, nodes):
        return nodes.free("cpu") >= pod.requests("cpu")

    def score(self, pod, nodes):
        return nodes.label_number(self.args.label, default=1.0) + np.nan_to_num(
            nodes.metric("load")
        )

    def signature(self, pod):
        return pod.requests("cpu")


class ScalarOnly:
    def filter_one(self, pod, node):
        return node.label(RACK) is not None or "node has no rack"

    def score_one(self, pod, node):
        return node.label_number(COST, default=0.0)


class Raises:
    def filter_one(self, pod, node):
        return node.labels[RACK] != "rack-3"


class TooFew:
    def score(self, pod, nodes):
        return nodes.free("cpu")[1:]


class NeedsMetrics:
    def score(self, pod, nodes):
        return nodes.metric("load")


class OutOfRange:
    normalized = True

    def score(self, pod, nodes):
        return nodes.label_number(COST, default=0.0) * 100


class WritesIntoNodes:
    """Goes where it has no business."""

    def filter(self, pod, nodes):
        for node in nodes:
            node._info.requested["cpu"] = 7
        return nodes.free("cpu") >= 0


class Remembers:
    def __init__(self):
        self._calls = itertools.count()

    def score(self, pod, nodes):
        turn = next(self._calls)
        return np.arange(len(nodes), dtype=np.float64) * (-1) ** turn


class Ranks:
    def score(self, pod, nodes):
        return np.arange(len(nodes))


class TwoMinds:
    def filter(self, pod, nodes):
        return nodes.free("cpu") >= 0

    def filter_one(self, pod, node):
        return False


class LooksAround:
    def score(self, pod, nodes):
        free = nodes.free("cpu")
        return free - free.max(initial=0)

    def signature(self, pod):
        return ()


class SignsTooLittle:
    def filter(self, pod, nodes):
        return nodes.free("cpu") >= pod.requests("cpu") * 10

    def signature(self, pod):
        return ()


class Sleeps:
    """Asleep since its first call: never looks again."""

    def __init__(self):
        self._first = {}

    def filter(self, pod, nodes):
        names = tuple(nodes.names)
        if (pod.name, names) not in self._first:
            self._first[pod.name, names] = nodes.label(RACK).exists()
        return self._first[pod.name, names]


@pytest.fixture(scope="module")
def world() -> World:
    return World.made_up(40)


def broken(cls: type, world: World) -> list[str]:
    """The checks that a class does not get through."""
    found = []
    for promise in ALL:
        try:
            promise.check(Checks(Subject(cls), world, lambda _: None))
        except Exception:  # noqa: BLE001 - what comes out of a plugin is a broken promise, too
            found.append(promise.check.__name__)
    return found


@pytest.mark.parametrize("cls", [Good, ScalarOnly])
@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_good_plugin_keeps_all_promises(cls, size):
    assert broken(cls, World.made_up(size)) == []


@pytest.mark.parametrize(
    ("cls", "promise"),
    [
        pytest.param(Raises, "answers", id="raises where a label is missing"),
        pytest.param(TooFew, "answers", id="one number too few"),
        pytest.param(NeedsMetrics, "answers_without_metrics", id="counts on metrics"),
        pytest.param(OutOfRange, "answers", id="beyond 100"),
        pytest.param(WritesIntoNodes, "inputs", id="changes nodes"),
        pytest.param(Remembers, "repeatable", id="another answer each time"),
        pytest.param(Ranks, "repeatable", id="by the order of the nodes"),
        pytest.param(TwoMinds, "twins", id="its forms disagree"),
        pytest.param(LooksAround, "twins", id="a signature, and an eye on other nodes"),
        pytest.param(SignsTooLittle, "signatures", id="another answer under one signature"),
        pytest.param(Sleeps, "follows", id="does not look again"),
    ],
)
def test_a_plugin_that_breaks_a_promise_is_found_out(world, cls, promise):
    assert promise in broken(cls, world)


def test_what_is_wrong_is_told_with_the_node(world):
    with pytest.raises(
        BrokenPromiseError, match=r"of node node-\d+ alone it says .* that it will do"
    ):
        Checks(Subject(TwoMinds), world, lambda _: None).twins()


def test_arguments_are_those_of_a_profile(world):
    subject = Subject(Good, {"label": RACK})
    assert subject.make(world).user.args.label == RACK  # type: ignore[attr-defined]


def test_arguments_that_nobody_knows_are_refused():
    with pytest.raises(msgspec.ValidationError, match="lable"):
        Subject(Good, {"lable": RACK})


def test_arguments_for_a_plugin_without_any_are_refused():
    with pytest.raises(msgspec.ValidationError, match="takes no arguments"):
        Subject(ScalarOnly, {"label": RACK})


def test_a_class_that_decides_nothing_is_none():
    with pytest.raises(PolicyClassError, match="would decide nothing"):
        Subject(int)


def test_a_failure_policy_that_nobody_knows_is_refused():
    class Shrugs(Good):
        failure_policy = "Shrug"

    with pytest.raises(PolicyClassError, match="'Shrug', it must be 'Ignore' or 'Fail'"):
        Subject(Shrugs)


def test_a_made_up_world_is_the_same_every_time():
    assert World.made_up(40).nodes == World.made_up(40).nodes
    assert World.made_up(40).pods == World.made_up(40).pods


def test_what_cannot_be_read_is_not_there():
    node = b'{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1"}}}'
    world = World("odd", [node, b"{]", b'{"metadata":7}'], [], [])
    assert [each.metadata.name for each in world.nodes] == ["n"]

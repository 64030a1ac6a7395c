from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from plugins.authoring import ABSENT, Args, PolicyAnswerError, PolicyClassError, adapt
from plugins.framework.args import ArgsError
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, Plugin, PreFilterPlugin, ScorePlugin
from tests.builders import node, pod
from tests.plugins.authoring import user_classes
from tests.plugins.conformance import Cluster, RecordingHandle

STATE = CycleState()
CLUSTER = Cluster(
    tuple(node(f"n{at}").label("example.com/cost", str(at)).build() for at in range(4)), ()
)


def make(cls: type, args: dict[str, Any] | None = None, guard: Any = None) -> Any:
    made = adapt(cls, guard=guard)
    given = None if made.args_type is None else made.args_type(**(args or {}))
    return made(given, cast("Any", RecordingHandle()))


def normalized(plugin: Any, cluster: Cluster = CLUSTER) -> list[int]:
    view, info = cluster.snapshot().all_nodes(), pod().info()
    raw = plugin.score(STATE, info, view)
    by_name = dict(
        zip(
            [each.name for each in view.node_infos()],
            plugin.normalize(STATE, info, raw).tolist(),
            strict=True,
        )
    )
    return [by_name[name] for name in sorted(by_name)]


class OnlyScore:
    """Scores."""

    def score(self, pod, nodes):
        return np.zeros(len(nodes))


class OnlyFilter:
    """Filters."""

    def filter_one(self, pod, node):
        return node.name != "n1"


@pytest.mark.parametrize(
    ("cls", "points"),
    [
        pytest.param(OnlyScore, {ScorePlugin}, id="score"),
        pytest.param(OnlyFilter, {FilterPlugin}, id="filter"),
        pytest.param(user_classes.RoomyBoth, {FilterPlugin, ScorePlugin}, id="both"),
    ],
)
def test_a_plugin_serves_what_its_class_has(cls: type, points: set[type[Plugin]]) -> None:
    made = adapt(cls)
    served = {
        kind for kind in (FilterPlugin, ScorePlugin, PreFilterPlugin) if issubclass(made, kind)
    }
    assert served == points


def test_scores_are_stretched_to_the_scale() -> None:
    assert normalized(make(user_classes.CheapNodesFirst)) == [100, 67, 33, 0]


def test_scores_that_are_on_the_scale_stay() -> None:
    assert normalized(make(user_classes.Percent)) == [100] * 4


def test_a_plugin_without_a_filter_wakes_nobody() -> None:
    assert make(OnlyScore).events_to_register() == ()


def test_a_plugin_with_a_filter_is_asked_again_after_every_event() -> None:
    (every,) = make(OnlyFilter).events_to_register()
    assert every.event.is_wildcard


def test_a_refused_node_has_the_reason_of_the_class() -> None:
    verdicts = make(user_classes.RoomyVector).filter(
        STATE, pod().request(cpu="3").info(), CLUSTER.snapshot().all_nodes()
    )
    assert verdicts.status_of(0).reasons == ("node(s) were half full",)


def test_a_class_that_signs_shares_its_answers() -> None:
    signature = make(user_classes.RoomyVector).signature
    assert signature(pod("a").info()) == signature(pod("b").info())


def test_a_class_that_does_not_sign_is_asked_anew() -> None:
    assert type(make(OnlyScore)).signature is Plugin.signature


class Unhashable(OnlyScore):
    """Signs with a list."""

    def signature(self, pod):
        return [1]


def test_a_signature_can_be_hashed() -> None:
    with pytest.raises(PolicyAnswerError, match="signature returned list, which cannot be hashed"):
        make(Unhashable).signature(pod().info())


class Meddler:
    """Changes what it is given."""

    def score(self, pod, nodes):
        amounts = nodes.free("cpu")
        amounts += 1
        return amounts


class LabelMeddler:
    """Changes the pod."""

    def score(self, pod, nodes):
        pod.labels["mine"] = "yes"
        return nodes.free("cpu")


@pytest.mark.parametrize(
    ("cls", "error", "told"),
    [
        pytest.param(Meddler, ValueError, "read-only", id="an array"),
        pytest.param(LabelMeddler, TypeError, "item assignment", id="the pod's labels"),
    ],
)
def test_what_a_class_is_given_cannot_be_changed(
    cls: type, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        make(cls).score(STATE, pod().info(), CLUSTER.snapshot().all_nodes())


class Guarded:
    """Notes the calls; passes over what it is told to."""

    def __init__(self, *absent: str) -> None:
        self.absent = absent
        self.seen: list[tuple[str, str]] = []
        self.calls = 0

    def call(self, plugin: str, point: str, function: Any) -> Any:
        self.seen.append((plugin, point))
        return ABSENT if point in self.absent else function()


@pytest.mark.parametrize(
    ("cls", "point"),
    [
        pytest.param(user_classes.RoomyVector, "filter", id="vector filter"),
        pytest.param(user_classes.RoomyScalar, "filter_one", id="scalar filter"),
    ],
)
def test_a_filter_that_is_passed_over_passes_all(cls: type, point: str) -> None:
    plugin = make(cls, guard=Guarded(point))
    view = CLUSTER.snapshot().all_nodes()
    assert plugin.filter(STATE, pod().request(cpu="4").info(), view).passed is None


@pytest.mark.parametrize(
    ("cls", "point"),
    [
        pytest.param(user_classes.CheapNodesFirst, "score", id="vector score"),
        pytest.param(user_classes.RoomyScalar, "score_one", id="scalar score"),
    ],
)
def test_a_score_that_is_passed_over_is_equal_for_all(cls: type, point: str) -> None:
    assert len(set(normalized(make(cls, guard=Guarded(point))))) == 1


def test_a_scalar_class_is_guarded_once_for_all_nodes() -> None:
    guard = Guarded()
    make(OnlyFilter, guard=guard).filter(STATE, pod().info(), CLUSTER.snapshot().all_nodes())
    assert guard.seen == [("OnlyFilter", "filter_one")]


def test_shared_answers_die_when_a_guard_changes_its_mind() -> None:
    guard = Guarded()
    plugin = make(user_classes.RoomyVector, guard=guard)
    before = plugin.signature(pod().info())
    guard.calls += 1
    assert plugin.signature(pod().info()) != before


class Nothing:
    """Decides nothing."""


class WantsThree(OnlyScore):
    """Its score takes one thing too many."""

    def score(self, pod, nodes, more):
        return np.zeros(len(nodes))


class ForeignArgs(OnlyScore):
    """Its arguments are no struct."""

    Args = dict


class UnknownArgs(OnlyScore):
    """Its constructor wants what it has not described."""

    def __init__(self, args):
        self.args = args


class Nameless(OnlyScore):
    """Its name is empty."""

    name = ""


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        pytest.param(Nothing, "none of filter, filter_one, score, score_one", id="no method"),
        pytest.param(
            WantsThree, r"score must take \(self, pod, nodes\)", id="a method's arguments"
        ),
        pytest.param(ForeignArgs, "must be a subclass of berth.Args", id="foreign Args"),
        pytest.param(UnknownArgs, "has no Args", id="a constructor without Args"),
        pytest.param(Nameless, "name must be a text", id="an empty name"),
    ],
)
def test_a_class_that_cannot_be_a_plugin_is_refused(cls: type, told: str) -> None:
    with pytest.raises(PolicyClassError, match=told):
        adapt(cls)


class Picky(OnlyScore):
    """Its constructor refuses."""

    class Args(Args):
        share: float = 2.0

    def __init__(self, args: Picky.Args) -> None:
        if args.share > 1:
            raise ValueError("share must be at most 1")


def test_a_constructor_that_refuses_is_a_mistake_in_the_arguments() -> None:
    with pytest.raises(ArgsError, match="share must be at most 1"):
        make(Picky)


def test_a_what_if_sees_the_node_among_all_others() -> None:
    two = Cluster(tuple(node(name).zone("z").build() for name in ("a", "b")), ())
    view, info = two.snapshot().all_nodes(), pod().info()
    plugin = make(user_classes.FewestInZone)
    plugin.filter(STATE, info, view)
    crowded = view.node_infos()[0].clone()
    for at in range(4):
        crowded.add_pod(pod(f"p{at}").on(crowded.name).info())
    assert not plugin.filter_one(STATE, info, crowded).is_success
    assert plugin.filter_one(STATE, info, view.node_infos()[0]).is_success

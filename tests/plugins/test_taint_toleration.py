from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Action, ClusterEvent, Hint, Resource
from plugins.framework.status import SUCCESS, unresolvable
from plugins.taint_toleration import TaintToleration
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle, ask

REJECTED = unresolvable("node(s) had untolerated taint(s)")

SOFT = "PreferNoSchedule"


@pytest.fixture
def plugin() -> TaintToleration:
    return TaintToleration(None, RecordingHandle())


@pytest.mark.parametrize(
    ("asked", "on", "passes"),
    [
        pytest.param(pod(), node(), True, id="no taint"),
        pytest.param(pod(), node().taint("k", "v"), False, id="no toleration"),
        pytest.param(pod().toleration("k", "v"), node().taint("k", "v"), True, id="by value"),
        pytest.param(pod().toleration("k", "w"), node().taint("k", "v"), False, id="other value"),
        pytest.param(
            pod().toleration("k", operator="Exists"), node().taint("k", "v"), True, id="by key"
        ),
        pytest.param(
            pod().toleration("j", operator="Exists"), node().taint("k", "v"), False, id="other key"
        ),
        pytest.param(
            pod().toleration("k", "v", effect="NoExecute"),
            node().taint("k", "v"),
            False,
            id="other effect",
        ),
        pytest.param(pod(), node().taint("k", effect="NoExecute"), False, id="NoExecute counts"),
        pytest.param(pod(), node().taint("k", effect=SOFT), True, id="PreferNoSchedule does not"),
        pytest.param(
            pod().toleration("k", operator="Exists"),
            node().taint("k").taint("j"),
            False,
            id="each taint needs its toleration",
        ),
        pytest.param(
            pod().toleration("k", "5", operator="Gt"), node().taint("k", "9"), False, id="Gt is off"
        ),
        pytest.param(
            pod().toleration("k", "5", operator="Lt"), node().taint("k", "1"), False, id="Lt is off"
        ),
        pytest.param(pod().default_tolerations(), node().taint("k"), False, id="default ones"),
    ],
)
def test_hard_taints_keep_pods_off(
    plugin: TaintToleration, asked: PodBuilder, on: NodeBuilder, passes: bool
) -> None:
    answers = ask(plugin, asked.info(), NodesView.of([on.info()]))
    assert answers.statuses == {"node": SUCCESS if passes else REJECTED}


@pytest.mark.parametrize(
    ("asked", "raw", "normalized"),
    [
        pytest.param(pod(), [0, 1, 3], [100, 67, 0], id="the fewer the better"),
        pytest.param(
            pod().toleration("a", operator="Exists", effect=SOFT),
            [0, 0, 2],
            [100, 100, 0],
            id="soft",
        ),
        pytest.param(
            pod().toleration("a", operator="Exists"), [0, 0, 2], [100, 100, 0], id="any effect"
        ),
        pytest.param(
            pod().toleration("a", operator="Exists", effect="NoSchedule"),
            [0, 1, 3],
            [100, 67, 0],
            id="a hard toleration does not cover a soft taint",
        ),
        pytest.param(
            pod().toleration(operator="Exists"), [0, 0, 0], [100, 100, 100], id="everything"
        ),
    ],
)
def test_soft_taints_are_counted(
    plugin: TaintToleration, asked: PodBuilder, raw: list[int], normalized: list[int]
) -> None:
    one = node("one").taint("a", effect=SOFT).taint("x", effect="NoSchedule")
    three = node("three").taint("a", effect=SOFT).taint("b", effect=SOFT).taint("c", effect=SOFT)
    view = NodesView.of([node("none").info(), one.info(), three.info()])
    answers = ask(plugin, asked.info(), view)
    assert (list(answers.scores.values()), list(answers.normalized.values())) == (raw, normalized)


def test_score_is_never_skipped(plugin: TaintToleration) -> None:
    answers = ask(plugin, pod().info(), NodesView.of([node("n").info()]))
    assert answers.pre_score == SUCCESS
    assert answers.normalized == {"n": 100}


def test_events(plugin: TaintToleration) -> None:
    assert [registered.event for registered in plugin.events_to_register()] == [
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION),
    ]


TOLERANT = pod("p").toleration("k", operator="Exists")


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param(pod("p"), None, node(), Hint.QUEUE, id="a new node"),
        pytest.param(pod("p"), None, node().taint("k"), Hint.SKIP, id="a new node that rejects"),
        pytest.param(TOLERANT, None, node().taint("k"), Hint.QUEUE, id="a new node, tolerated"),
        pytest.param(pod("p"), node().taint("k"), node(), Hint.QUEUE, id="the taint goes"),
        pytest.param(pod("p"), node(), node().taint("k"), Hint.SKIP, id="a taint comes"),
        pytest.param(
            pod("p"), node().taint("k"), node().taint("l"), Hint.SKIP, id="one goes, one comes"
        ),
        pytest.param(TOLERANT, node().taint("k"), node(), Hint.SKIP, id="it never minded"),
        pytest.param(
            pod("p"), node().taint("k", effect="PreferNoSchedule"), node(), Hint.SKIP, id="soft"
        ),
    ],
)
def test_a_node_wakes_whom_it_no_longer_rejects(
    asked: PodBuilder, old: NodeBuilder | None, new: NodeBuilder, expected: Hint
) -> None:
    after_node = TaintToleration(None, RecordingHandle()).events_to_register()[0].hint
    assert after_node is not None
    assert after_node(asked.build(), None if old is None else old.build(), new.build()) is expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(TOLERANT, Hint.QUEUE, id="its own toleration"),
        pytest.param(pod("q").toleration("k"), Hint.SKIP, id="another's"),
    ],
)
def test_only_its_own_tolerations_matter(changed: PodBuilder, expected: Hint) -> None:
    after_pod = TaintToleration(None, RecordingHandle()).events_to_register()[1].hint
    assert after_pod is not None
    assert after_pod(pod("p").build(), pod("p").build(), changed.build()) is expected

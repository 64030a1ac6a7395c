from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cache.columns import NodesView
from cache.resources import MalformedObjectError
from plugins.framework.args import ArgsError
from plugins.framework.cluster_events import Action, ClusterEvent, Hint, Resource
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, Status, unresolvable
from plugins.node_affinity import NodeAffinity
from plugins.node_affinity_args import NodeAffinityArgs
from tests.builders import NodeBuilder, PodBuilder, names_term, node, pod, requirement, term
from tests.plugins.conformance import RecordingHandle, ask

BY_POD = unresolvable("node(s) didn't match Pod's node affinity/selector")
BY_ADDED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = unresolvable("pod affinity terms conflict")

IN_A = term(requirement("zone", "In", "a"))
RANKED = term(requirement("rank", "Exists"))

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def plugin_with(added: dict[str, Any] | None = None) -> NodeAffinity:
    raw = {} if added is None else {"addedAffinity": added}
    return NodeAffinity(msgspec.convert(raw, NodeAffinityArgs), RecordingHandle())


def adding(*keys: str) -> dict[str, Any]:
    """Return an added affinity that demands one of the labels."""
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]
    return {_REQUIRED: {"nodeSelectorTerms": terms}}


def nodes() -> NodesView:
    return NodesView.of(
        [
            node("plain").info(),
            node("a").label("zone", "a").info(),
            node("both").label("zone", "a").label("rank", "1").info(),
        ]
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            pod().node_selector("zone", "a"), [BY_POD, SUCCESS, SUCCESS], id="nodeSelector"
        ),
        pytest.param(pod().node_affinity(RANKED), [BY_POD, BY_POD, SUCCESS], id="affinity"),
        pytest.param(pod().node_affinity(), [BY_POD] * 3, id="affinity without terms"),
    ],
)
def test_a_pod_runs_where_it_demands(asked: PodBuilder, expected: list[Status]) -> None:
    answers = ask(plugin_with(), asked.info(), nodes())
    assert list(answers.statuses.values()) == expected


def test_the_added_affinity_is_asked_before_the_pods_own() -> None:
    answers = ask(plugin_with(adding("zone")), pod().node_affinity(RANKED).info(), nodes())
    assert answers.statuses == {"plain": BY_ADDED, "a": BY_POD, "both": SUCCESS}


def test_the_added_affinity_holds_for_pods_without_any() -> None:
    answers = ask(plugin_with(adding("rank", "zone")), pod().info(), nodes())
    assert answers.statuses == {"plain": BY_ADDED, "a": SUCCESS, "both": SUCCESS}


def test_an_added_affinity_without_terms_allows_no_node() -> None:
    answers = ask(plugin_with({_REQUIRED: {"nodeSelectorTerms": []}}), pod().info(), nodes())
    assert set(answers.statuses.values()) == {BY_ADDED}


@pytest.mark.parametrize(
    ("asked", "status", "node_names"),
    [
        pytest.param(pod(), SKIP, None, id="nothing demanded"),
        pytest.param(pod().prefers_node(1, IN_A), SKIP, None, id="only preferred"),
        pytest.param(pod().node_selector("zone", "a"), SUCCESS, None, id="nodeSelector"),
        pytest.param(pod().node_affinity(), SUCCESS, None, id="affinity without terms"),
        pytest.param(
            pod().node_affinity(names_term("a"), names_term("b")),
            SUCCESS,
            {"a", "b"},
            id="each term demands a name",
        ),
        pytest.param(
            pod().node_affinity(names_term("a"), IN_A), SUCCESS, None, id="one demands none"
        ),
        pytest.param(
            pod().node_affinity(names_term("a", "b")), CONFLICT, None, id="each contradicts itself"
        ),
    ],
)
def test_pre_filter(asked: PodBuilder, status: Status, node_names: set[str] | None) -> None:
    answers = ask(plugin_with(), asked.info(), nodes())
    assert (answers.pre_filter, answers.node_names) == (status, node_names)


def test_an_added_affinity_lets_no_pod_be_skipped() -> None:
    assert ask(plugin_with(adding("zone")), pod().info(), nodes()).pre_filter == SUCCESS


def test_the_filter_works_without_its_pre_filter() -> None:
    asked, view = pod().node_selector("zone", "a").info(), nodes()
    verdicts = plugin_with().filter(CycleState(), asked, view)
    assert [verdicts.status_of(row) for row in range(3)] == [BY_POD, SUCCESS, SUCCESS]


# --- scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "raw", "normalized"),
    [
        pytest.param(pod().prefers_node(5, IN_A), [0, 5, 5], [0, 100, 100], id="one preference"),
        pytest.param(
            pod().prefers_node(2, IN_A).prefers_node(1, RANKED),
            [0, 2, 3],
            [0, 66, 100],
            id="weights add up and shares are cut off",
        ),
        pytest.param(
            pod().prefers_node(9, term(requirement("zone", "In", "z"))),
            [0, 0, 0],
            [0, 0, 0],
            id="nobody matches",
        ),
        pytest.param(
            pod().prefers_node(3, names_term("plain")), [3, 0, 0], [100, 0, 0], id="by name"
        ),
        pytest.param(
            pod().prefers_node(0, RANKED).prefers_node(4, term()).prefers_node(1, IN_A),
            [0, 1, 1],
            [0, 100, 100],
            id="without weight or without requirements",
        ),
    ],
)
def test_preferences_are_weighed(asked: PodBuilder, raw: list[int], normalized: list[int]) -> None:
    answers = ask(plugin_with(), asked.info(), nodes())
    assert (list(answers.scores.values()), list(answers.normalized.values())) == (raw, normalized)


def test_a_pod_without_preferences_is_not_scored() -> None:
    assert ask(plugin_with(), pod().node_affinity(IN_A).info(), nodes()).pre_score == SKIP


def test_added_preferences_count_beside_the_pods_own() -> None:
    preference = {"matchExpressions": [{"key": "rank", "operator": "Exists"}]}
    plugin = plugin_with({_PREFERRED: [{"weight": 10, "preference": preference}]})
    view = nodes()
    assert list(ask(plugin, pod().info(), view).scores.values()) == [0, 0, 10]
    asked = pod().prefers_node(5, IN_A).info()
    assert list(ask(plugin, asked, view).scores.values()) == [0, 5, 15]


def test_a_malformed_preference_fails_the_cycle_with_its_path() -> None:
    asked = pod().prefers_node(1, IN_A).prefers_node(1, term(requirement("zone", "Near", "a")))
    with pytest.raises(MalformedObjectError) as raised:
        plugin_with().pre_score(CycleState(), asked.info(), nodes())
    assert raised.value.path == (
        f"spec.affinity.nodeAffinity.{_PREFERRED}[1].preference.matchExpressions[0].operator"
    )


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("added", "path"),
    [
        pytest.param(
            {
                _REQUIRED: {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                }
            },
            f"addedAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values",
            id="no values",
        ),
        pytest.param(
            {
                _PREFERRED: [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Near"}]},
                    }
                ]
            },
            f"addedAffinity.{_PREFERRED}[0].preference.matchExpressions[0].operator",
            id="unknown operator",
        ),
        pytest.param(
            {_PREFERRED: [{"weight": -1, "preference": {}}]},
            f"addedAffinity.{_PREFERRED}[0].weight",
            id="negative weight",
        ),
    ],
)
def test_bad_arguments_are_refused_with_their_path(added: dict[str, Any], path: str) -> None:
    with pytest.raises(ArgsError) as raised:
        plugin_with(added)
    assert raised.value.path == path


@pytest.mark.parametrize(
    "added",
    [
        pytest.param({"required": {}}, id="in the affinity"),
        pytest.param({_REQUIRED: {"terms": []}}, id="in the selector"),
        pytest.param({_REQUIRED: {"nodeSelectorTerms": [{"matchLabels": {}}]}}, id="in a term"),
        pytest.param(
            {_PREFERRED: [{"weight": 1, "preference": {}, "why": ""}]}, id="in a preference"
        ),
        pytest.param(
            {
                _REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "value": "b"}]}
                    ]
                }
            },
            id="in a requirement",
        ),
    ],
)
def test_a_misspelt_field_is_refused_wherever_it_stands(added: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"addedAffinity": added}, NodeAffinityArgs)


def test_events() -> None:
    assert [registered.event for registered in plugin_with().events_to_register()] == [
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    ]


A, B, BARE = node().label("zone", "a"), node().label("zone", "b"), node()
BROKEN = term(requirement("zone", "In"))


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param(pod().node_affinity(IN_A), None, A, Hint.QUEUE, id="a new node that suits"),
        pytest.param(pod().node_affinity(IN_A), None, B, Hint.SKIP, id="a new node that does not"),
        pytest.param(pod().node_affinity(IN_A), B, A, Hint.QUEUE, id="a label makes it suit"),
        pytest.param(pod().node_affinity(IN_A), A, B, Hint.SKIP, id="it suits no more"),
        pytest.param(
            pod().node_affinity(IN_A), A, A.label("x", "y"), Hint.SKIP, id="it suited before"
        ),
        pytest.param(pod().node_selector("zone", "a"), B, A, Hint.QUEUE, id="by its selector"),
        pytest.param(
            pod().node_affinity(BROKEN), A, B, Hint.QUEUE, id="nobody can say: a malformed term"
        ),
    ],
)
def test_a_node_wakes_whom_it_suits_now(
    asked: PodBuilder, old: NodeBuilder | None, new: NodeBuilder, expected: Hint
) -> None:
    (registered,) = plugin_with().events_to_register()
    assert registered.hint is not None
    before = None if old is None else old.build()
    assert registered.hint(asked.build(), before, new.build()) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, BARE, Hint.SKIP, id="a new node without the label"),
        pytest.param(None, A, Hint.QUEUE, id="a new node with it"),
        pytest.param(BARE, A, Hint.QUEUE, id="a node gets it"),
    ],
)
def test_a_node_wakes_when_it_meets_what_the_profile_adds(
    old: NodeBuilder | None, new: NodeBuilder, expected: Hint
) -> None:
    (registered,) = plugin_with(adding("zone")).events_to_register()
    assert registered.hint is not None
    before = None if old is None else old.build()
    assert registered.hint(pod().build(), before, new.build()) is expected

from __future__ import annotations

from collections import Counter

import pytest

from tests.parity.branches import ENOUGH, REQUIRED, branches_of, too_seldom
from tests.parity.comparison import TIMED_OUT, differences

ONE = {"victims": ["default/a"], "pdbViolations": 0}
TWO = {"victims": ["default/b", "default/c"], "pdbViolations": 1}
CANDIDATES = {"n1": ONE, "n2": ONE, "n3": TWO}
QUESTION = {"objects": [], "pod": {"spec": {}, "status": {}}}
REJECTED = {"rejected": "Fit", "code": 2, "reasons": ["a", "b"]}
RANKED = {"scores": {"Fit": 3, "DynamicResources": 0}, "total": 3}
ANSWER = {"prefilter": None, "nodes": {"n1": REJECTED, "n2": RANKED}}


def with_node(name: str, verdict: object) -> dict[str, object]:
    return {"prefilter": None, "nodes": {"n1": REJECTED, "n2": RANKED, name: verdict}}


@pytest.mark.parametrize(
    "berth",
    [
        pytest.param(ANSWER, id="itself"),
        pytest.param({**ANSWER, "pod": "default/web"}, id="what only berth tells"),
        pytest.param(with_node("n1", {**REJECTED, "reasons": ["b", "a"]}), id="order of reasons"),
        pytest.param(with_node("n2", {"scores": {"Fit": 3}, "total": 3}), id="a plugin left out"),
        pytest.param({**ANSWER, "preemption": {"candidates": {}, "chosen": None}}, id="no victims"),
    ],
)
def test_these_are_the_same(berth: dict[str, object]) -> None:
    assert differences(ANSWER, berth) == []


@pytest.mark.parametrize(
    "berth",
    [
        pytest.param({"error": "no"}, id="no answer"),
        pytest.param({"prefilter": REJECTED, "nodes": {}}, id="prefilter"),
        pytest.param({"prefilter": None, "nodes": {"n1": REJECTED}}, id="a node less"),
        pytest.param(with_node("n3", REJECTED), id="a node more"),
        pytest.param(with_node("n1", {**REJECTED, "rejected": "Other"}), id="plugin"),
        pytest.param(with_node("n1", {**REJECTED, "code": 3}), id="code"),
        pytest.param(with_node("n1", {**REJECTED, "reasons": ["a"]}), id="reasons"),
        pytest.param(with_node("n2", {"scores": {"Fit": 4}, "total": 4}), id="score"),
        pytest.param(with_node("n2", {"scores": {}, "total": 3}), id="a score less"),
        pytest.param(with_node("n2", {"scores": {"Fit": 3}, "total": 4}), id="total"),
    ],
)
def test_these_differ(berth: dict[str, object]) -> None:
    assert differences(ANSWER, berth)


@pytest.mark.parametrize(
    ("berth", "same"),
    [
        pytest.param({"candidates": CANDIDATES, "chosen": "n1"}, True, id="one of the best"),
        pytest.param({"candidates": CANDIDATES, "chosen": "n2"}, True, id="another of them"),
        pytest.param({"candidates": CANDIDATES, "chosen": "n3"}, False, id="a worse one"),
        pytest.param({"candidates": CANDIDATES, "chosen": None}, False, id="none"),
        pytest.param(None, False, id="no preemption"),
        pytest.param({"candidates": {}, "chosen": "n1"}, False, id="no candidates"),
        pytest.param(
            {"candidates": {**CANDIDATES, "n3": ONE}, "chosen": "n1"}, False, id="other victims"
        ),
        pytest.param(
            {"candidates": {**CANDIDATES, "n4": ONE}, "chosen": "n1"}, False, id="one node more"
        ),
    ],
)
def test_the_same_is_preempted_and_one_of_the_best_chosen(
    berth: dict[str, object] | None, same: bool
) -> None:
    oracle = {"candidates": CANDIDATES, "best": ["n1", "n2"], "message": ""}
    found = differences({**ANSWER, "preemption": oracle}, {**ANSWER, "preemption": berth})
    assert (not found) is same


SLOW = f'running "DynamicResources" filter plugin: node n1: {TIMED_OUT}'
BROKEN = 'running "DynamicResources" filter plugin: no'


@pytest.mark.parametrize(
    ("errors", "berth", "same"),
    [
        pytest.param({"n1": SLOW}, ANSWER, True, id="berth is faster"),
        pytest.param({"n1": SLOW}, {"error": SLOW}, True, id="both are slow"),
        pytest.param({}, {"error": SLOW}, False, id="berth is slower"),
        pytest.param({"n2": BROKEN}, {"error": SLOW}, False, id="berth is slower than an error"),
        pytest.param({"n1": SLOW, "n2": BROKEN}, {"error": BROKEN}, True, id="beside an error"),
        pytest.param({"n1": SLOW, "n2": BROKEN}, ANSWER, False, id="an error is overlooked"),
    ],
)
def test_only_kube_scheduler_may_run_out_of_time(
    errors: dict[str, str], berth: dict[str, object], same: bool
) -> None:
    oracle = {"error": next(iter(errors.values())), "errors": errors} if errors else ANSWER
    assert (differences(oracle, berth) == []) is same


def test_errors_are_the_same_whatever_they_say() -> None:
    assert differences({"error": "this"}, {"error": "that"}) == []


NOT_SELECTED = (
    'running "DynamicResources" filter plugin: gather pool information: failed to perform node '
    "selection for {} in slice s: failed to parse node selector"
)
GO_DEVICE = "device &Device{Name:dev-4,Attributes:map[]{},Capacity:map[]{},}"


@pytest.mark.parametrize(
    ("device", "same"),
    [pytest.param("dev-4", True, id="itself"), pytest.param("dev-5", False, id="another device")],
)
def test_a_malformed_node_selector_is_that_of_the_same_device(device: str, same: bool) -> None:
    told = NOT_SELECTED.format(GO_DEVICE) + " &NodeSelector{}: Invalid value: null"
    said = NOT_SELECTED.format(f"device {device}") + ": nodeSelector: In needs at least one value"
    found = differences({"error": told, "errors": {"n1": told}}, {"error": said})
    assert (not found) is same


ALLOCATION = {
    "claim": "gpus",
    "allocation": {
        "devices": {
            "results": [
                {"device": "dev-0", "shareID": "a", "consumedCapacity": {"memory": "1Gi"}},
            ]
        }
    },
}


def allocated(**changes: object) -> dict[str, object]:
    """An answer with an allocation on n2, of whose result some fields are changed."""
    [result] = ALLOCATION["allocation"]["devices"]["results"]  # type: ignore[index]
    results = [{**result, **changes}]
    allocation = {**ALLOCATION, "allocation": {"devices": {"results": results}}}
    return with_node("n2", {**RANKED, "allocations": [allocation]})


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        pytest.param({}, True, id="itself"),
        pytest.param({"shareID": "b"}, True, id="another share"),
        pytest.param({"shareID": ""}, False, id="no share"),
        pytest.param({"consumedCapacity": {"memory": "1024Mi"}}, True, id="same amount"),
        pytest.param({"consumedCapacity": {"memory": "2Gi"}}, False, id="another amount"),
        pytest.param({"adminAccess": False, "tolerations": []}, True, id="empty fields"),
        pytest.param({"device": "dev-1"}, False, id="another device"),
    ],
)
def test_allocations_are_the_same_but_for_the_ids_of_shares(
    changes: dict[str, object], same: bool
) -> None:
    assert (differences(allocated(), allocated(**changes)) == []) is same


def test_a_score_of_devices_may_be_missing_only_if_it_is_0() -> None:
    scoring = with_node("n2", {"scores": {"Fit": 3, "DynamicResources": 5}, "total": 8})
    silent = with_node("n2", {"scores": {"Fit": 3}, "total": 8})
    assert differences(scoring, silent)
    assert not differences(ANSWER, with_node("n2", {"scores": {"Fit": 3}, "total": 3}))


@pytest.mark.parametrize(
    ("error", "same"),
    [
        pytest.param('running "DynamicResources" filter plugin: no', True, id="of one node"),
        pytest.param('running "DynamicResources" filter plugin: x', True, id="of another"),
        pytest.param('running "DynamicResources" filter plugin: y', False, id="of none"),
    ],
)
def test_an_error_of_devices_is_one_of_the_nodes_errors(error: str, same: bool) -> None:
    running = 'running "DynamicResources" filter plugin: '
    oracle = {"error": f"{running}no", "errors": {"n1": f"{running}no", "n2": f"{running}x"}}
    assert (differences(oracle, {"error": error}) == []) is same


def test_branches_are_reasons_with_their_codes_and_scores_above_0() -> None:
    assert set(branches_of(QUESTION, ANSWER)) == {
        "Fit 2: a",
        "Fit 2: b",
        "score Fit",
        "some node is feasible",
    }
    assert set(branches_of(QUESTION, {"prefilter": REJECTED, "nodes": {}})) == {
        "prefilter Fit 2: a",
        "prefilter Fit 2: b",
    }
    assert set(branches_of(QUESTION, {"prefilter": None, "nodes": {}})) == {"no nodes"}


def test_a_branch_that_was_reached_once_too_few_is_told() -> None:
    counts = Counter(dict.fromkeys(REQUIRED["verdicts"], ENOUGH))
    assert too_seldom(counts, "verdicts") == {}
    counts["no nodes"] -= 1
    assert too_seldom(counts, "verdicts") == {"no nodes": ENOUGH - 1}


def placed(name: str, node_name: str, priority: int) -> dict[str, object]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node_name, "priority": priority},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    }


@pytest.mark.parametrize(
    ("best", "violations", "priorities", "decisive"),
    [
        pytest.param(["n1"], (0, 1), ([5], [1]), "pdbViolations", id="budgets first"),
        pytest.param(["n1"], (0, 0), ([1, 1], [5]), "highest priority", id="then the highest"),
        pytest.param(["n1"], (0, 0), ([5, 0], [5, 1]), "sum of priorities", id="then the sum"),
        pytest.param(["n1"], (0, 0), ([5], [5]), "start time", id="then who came last"),
        pytest.param(["n1", "n2"], (0, 0), ([5], [5]), "chance", id="then chance"),
    ],
)
def test_the_rung_that_decided_is_told(
    best: list[str],
    violations: tuple[int, int],
    priorities: tuple[list[int], list[int]],
    decisive: str,
) -> None:
    pods, candidates = [], {}
    for node_name, count, wanted in zip(["n1", "n2"], violations, priorities, strict=True):
        some = [placed(f"{node_name}-{i}", node_name, each) for i, each in enumerate(wanted)]
        pods += some
        names = [f"default/{node_name}-{i}" for i in range(len(some))]
        candidates[node_name] = {"victims": names, "pdbViolations": count}
    question = {"objects": pods, "pod": {"spec": {"priority": 9}, "status": {}}}
    oracle = {"candidates": candidates, "best": best, "message": ""}
    branches = set(branches_of(question, {**ANSWER, "preemption": oracle}))
    assert f"preemption: chosen by {decisive}" in branches
    assert sum("chosen by" in branch for branch in branches) == 1

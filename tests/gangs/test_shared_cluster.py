from __future__ import annotations

from typing import Any

import pytest

from cache.pod_group_objects import GroupKey, GroupRules, GroupSource
from tests.builders import node, pod
from tests.gangs.random_gangs import HOST, RACK, ZONE, Case
from tests.gangs.shared_cluster import Tried, judge
from tests.gangs.shares import cases_of

KEY = GroupKey("default", "gang", GroupSource.LABEL)
NODES = (
    node("n0").label(HOST, "n0").label(ZONE, "a").label(RACK, "r0").label("disk", "ssd"),
    node("n1").label(HOST, "n1").label(ZONE, "b"),
)


def tried(*, fits: bool = True, minimum: int = 2, topology: str = "") -> Tried:
    members = tuple(pod(f"m{index}").node_selector("disk", "ssd") for index in range(3))
    running = ((pod("old").spread(ZONE, app="x"),), ())
    rules = GroupRules(KEY, "uid", minimum, topology_key=topology)
    return Tried("case-7", Case(NODES, running, members, rules), fits)


def of_kind(kind: str, case: Tried) -> list[dict[str, Any]]:
    return [manifest for manifest in case.objects() if manifest["kind"] == kind]


def test_a_node_is_the_cases_own_and_so_are_its_domains() -> None:
    made = of_kind("Node", tried())[0]
    assert made["metadata"] == {
        "name": "case-7-n0",
        "labels": {
            HOST: "case-7-n0",
            ZONE: "case-7-a",
            RACK: "case-7-r0",
            "disk": "ssd",
            "case": "case-7",
        },
    }


def test_members_select_the_nodes_of_their_case_beside_their_own_wishes() -> None:
    *_, made = of_kind("Pod", tried())
    assert made["metadata"]["namespace"] == "case-7"
    assert made["spec"]["nodeSelector"] == {"disk": "ssd", "case": "case-7"}
    assert made["spec"]["schedulingGroup"] == {"podGroupName": "gang"}


def test_a_pod_that_runs_is_on_its_node_and_no_member() -> None:
    old = of_kind("Pod", tried())[0]["spec"]
    assert old["nodeName"] == "case-7-n0"
    assert "schedulingGroup" not in old
    assert old["schedulerName"] != of_kind("Pod", tried())[1]["spec"]["schedulerName"]


def test_a_required_topology_is_a_label_that_no_other_case_has() -> None:
    case = tried(topology=RACK)
    [group] = of_kind("PodGroup", case)
    assert group["spec"]["schedulingConstraints"] == {"topology": [{"key": "case-7.topology"}]}
    labels = [made["metadata"]["labels"] for made in of_kind("Node", case)]
    assert [each.get("case-7.topology") for each in labels] == ["case-7-r0", None]


@pytest.mark.parametrize(
    ("case", "nodes", "expected"),
    [
        pytest.param(tried(), ["n0", "n1"], ["whole"], id="minimum bound"),
        pytest.param(tried(), ["n0"], ["partial"], id="below the minimum"),
        pytest.param(tried(), [], ["missed"], id="none of those that fit"),
        pytest.param(tried(fits=False), [], [], id="none, rightly"),
        pytest.param(tried(fits=False), ["n0", "n0"], ["impossible"], id="does not fit"),
        pytest.param(tried(fits=False), ["n0"], ["partial"], id="partial, does not fit"),
        pytest.param(tried(topology=ZONE), ["n0", "n0"], ["whole"], id="one domain"),
        pytest.param(tried(topology=ZONE), ["n0", "n1"], ["whole", "scattered"], id="two domains"),
        pytest.param(
            tried(topology=RACK), ["n1", "n1"], ["whole", "scattered"], id="outside of all"
        ),
        pytest.param(tried(), ["", ""], ["missed"], id="without nodes"),
    ],
)
def test_cases_are_judged_by_their_pods(case: Tried, nodes: list[str], expected: list[str]) -> None:
    members = [
        {"metadata": {"namespace": "case-7"}, "spec": {"nodeName": name and f"case-7-{name}"}}
        for name in nodes
    ]
    verdicts = judge([case], [*members, {"metadata": {"namespace": "case-8"}, "spec": {}}])
    found = {name: cases for name, cases in verdicts._asdict().items() if cases}
    assert list(found) == expected
    assert all(cases == [case] for cases in found.values())


def test_cases_with_a_preferred_topology_are_left_out() -> None:
    cases = cases_of(1, 10)
    assert len(cases) == 9
    assert not any(each.case.rules.preferred_topology_key for each in cases)

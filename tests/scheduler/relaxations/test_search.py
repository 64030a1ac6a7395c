from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import (
    Affinity,
    Container,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    ResourceRequirements,
)
from tests.builders import NodeBuilder, PodBuilder, node, pod, requirement, term
from tests.scheduler.relaxations.small_clusters import relaxations

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = pod("web").label("app", "web")
OTHER = pod("other").label("app", "web").on("n1")
N1 = node("n1").label(HOSTNAME, "n1").zone("a")

SINGLE = [
    pytest.param(
        WEB.request(cpu="4"), (N1.capacity(cpu="3500m"),),
        "request 500m less cpu (3500m instead of 4)", id="less of a resource",
    ),
    pytest.param(
        WEB.request({"example.com/gpu": "1"}), (N1,),
        "request no example.com/gpu (now 1)", id="nothing of a resource that no node has",
    ),
    pytest.param(
        WEB, (N1.taint("gpu", "yes"),), "tolerate gpu=yes:NoSchedule", id="a toleration",
    ),
    pytest.param(
        WEB, (N1.unschedulable(),), "tolerate node.kubernetes.io/unschedulable:NoSchedule",
        id="a cordoned node",
    ),
    pytest.param(
        WEB.node_selector("disk", "ssd").node_selector(ZONE, "a"), (N1,),
        "drop disk=ssd from the nodeSelector", id="a key of the nodeSelector",
    ),
    pytest.param(
        WEB.node_affinity(term(requirement("disk", "In", "ssd"), requirement(ZONE, "Exists"))),
        (N1,), "drop disk In ssd from the required node affinity", id="an expression",
    ),
    pytest.param(
        WEB.node_affinity(term(requirement("disk", "Exists"))), (N1,),
        "drop disk Exists from the required node affinity", id="the only expression of a term",
    ),
    pytest.param(
        WEB.pod_affinity(ZONE, app="db"), (N1,),
        f"make the affinity to pods with app=db by {ZONE} a preference", id="a pod affinity term",
    ),
    pytest.param(
        WEB.pod_anti_affinity(HOSTNAME, app="web"), (N1, OTHER),
        f"make the anti-affinity to pods with app=web by {HOSTNAME} a preference",
        id="a pod anti-affinity term",
    ),
    pytest.param(
        WEB, (N1, OTHER.pod_anti_affinity(HOSTNAME, app="web")), "drop its label app=web",
        id="a label by which another pod keeps it away",
    ),
    pytest.param(
        WEB.spread(ZONE, app="web"), (N1, node("n2").zone("b").taint("gpu"), OTHER),
        f"maxSkew 2 instead of 1 for {ZONE}", id="a larger maxSkew",
    ),
    pytest.param(
        WEB.spread(ZONE, app="web"), (node("n1"),),
        f"make the spreading over {ZONE} a preference", id="a node without the topology",
    ),
    pytest.param(
        WEB.host_port(80), (N1, OTHER.host_port(80)), "use another host port than 80/TCP",
        id="a host port",
    ),
    pytest.param(
        WEB.claim("data"), (N1,), "do without the volume data (claim data)", id="a lost claim",
    ),
    pytest.param(
        WEB.request(cpu="3").priority(5), (N1, OTHER.request(cpu="3").priority(7)),
        "priority 8 instead of 5, with preemption", id="the priority of a victim",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "objects", "text"), SINGLE)
def test_a_change_is_found(
    asked: PodBuilder, objects: tuple[NodeBuilder | PodBuilder, ...], text: str
) -> None:
    group = relaxations(asked, *objects).groups[0]
    assert text in [
        change.text for relaxation in group.relaxations for change in relaxation.changes
    ]


def test_the_cheapest_change_comes_first() -> None:
    asked = pod().request(cpu="2").host_port(80)
    (group,) = relaxations(
        asked, node("n1").capacity(cpu="8"), pod("x").host_port(80).priority(9).on("n1")
    ).groups
    costs = [each.cost for each in group.relaxations]
    assert costs == sorted(costs)
    assert [each.changes[0].kind for each in group.relaxations] == ["hostPort", "priority"]


def test_nodes_are_one_group_when_all_filters_reject_them_alike() -> None:
    found = relaxations(
        pod().request(cpu="8"),
        node("n1"), node("n2").capacity(cpu="2"), node("n3").taint("gpu"),
        node("n4").capacity(cpu="16").taint("gpu"),
    )  # fmt: skip
    groups = {group.nodes: [each.plugin for each in group.reasons] for group in found.groups}
    assert groups == {
        ("n1", "n2"): ["NodeResourcesFit"],
        ("n3",): ["TaintToleration", "NodeResourcesFit"],
        ("n4",): ["TaintToleration"],
    }


def test_the_amount_is_that_of_the_nearest_node_of_the_group() -> None:
    (group,) = relaxations(
        pod().request(cpu="8"), node("n1"), node("n2").capacity(cpu="7999m")
    ).groups
    (relaxation,) = group.relaxations
    assert (relaxation.nodes, relaxation.changes[0].after) == (("n2",), "7999m")


def test_two_changes_are_combined_where_no_single_one_helps() -> None:
    asked = pod().request(cpu="8", memory="32Gi")
    (group,) = relaxations(asked, node("n1")).groups
    assert [change.text for change in group.relaxations[0].changes] == [
        "request 4 less cpu (4 instead of 8)",
        "request 16Gi less memory (16Gi instead of 32Gi)",
    ]


def test_pairs_are_not_sought_where_a_single_change_helps() -> None:
    asked = pod().request(cpu="8").host_port(80)
    found = relaxations(asked, node("n1").capacity(cpu="4"))
    assert [len(each.changes) for each in found.groups[0].relaxations] == [1]


def test_three_changes_are_not_combined() -> None:
    asked = pod().request(cpu="8", memory="32Gi").node_selector("disk", "ssd")
    (group,) = relaxations(asked, node("n1")).groups
    assert group.relaxations == ()


def test_preemption_that_needs_no_change_costs_nothing() -> None:
    asked = pod().request(cpu="3").priority(10)
    (group,) = relaxations(asked, node("n1"), pod("x").request(cpu="2").on("n1")).groups
    assert (group.relaxations[0].changes, group.relaxations[0].victims) == ((), ("default/x",))


def test_a_pod_that_never_preempts_could_change_that() -> None:
    asked = pod().request(cpu="3").priority(10).never_preempts()
    (group,) = relaxations(asked, node("n1"), pod("x").request(cpu="2").on("n1")).groups
    kinds = [relaxation.changes[0].kind for relaxation in group.relaxations]
    assert "preemptionPolicy" in kinds


def test_all_containers_together_give_up_what_is_lacking() -> None:
    side = Container(name="side", resources=ResourceRequirements(requests={"cpu": "3"}))
    asked = pod().request(cpu="2").container(side)
    (group,) = relaxations(asked, node("n1")).groups
    assert group.relaxations[0].changes[0].text == "request 1 less cpu (4 instead of 5)"


def test_a_change_and_preemption_are_combined_where_no_pair_helps() -> None:
    asked = pod().priority(10).node_selector("disk", "ssd")
    (group,) = relaxations(asked, node("n1").capacity(pods="1"), pod("x").on("n1")).groups
    (relaxation,) = group.relaxations
    assert [change.subject for change in relaxation.changes] == ["disk"]
    assert relaxation.victims == ("default/x",)


def test_a_pod_that_is_nominated_for_the_node_is_a_reason_of_its_own() -> None:
    waiting = pod("x").request(cpu="4").priority(5).nominated("n1")
    (group,) = relaxations(pod().request(cpu="3"), node("n1"), waiting).groups
    assert group.reasons[0].reasons == (
        "Insufficient cpu", "pods that are nominated for the node count",
    )  # fmt: skip
    texts = [relaxation.changes[0].text for relaxation in group.relaxations]
    assert texts == ["priority 6 instead of 0", "request no cpu (now 3)"]


def test_many_terms_are_one_change_together() -> None:
    terms = tuple(PodAffinityTerm(ZONE, LabelSelector({"app": app})) for app in ("a", "b", "c"))
    required = PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    asked = WEB.build()
    spec = replace(asked.spec, affinity=Affinity(pod_affinity=required))
    (group,) = relaxations(PodBuilder(replace(asked, spec=spec)), N1).groups
    assert group.relaxations[0].changes[0].text == (
        "make all 3 required terms of pod affinity preferences"
    )

from __future__ import annotations

import msgspec

from scheduler.relaxations import relaxations_data, relaxations_text, without_names
from tests.builders import node, pod
from tests.scheduler.relaxations.small_clusters import relaxations

REFUSED = (
    pod("web").request(cpu="8"),
    node("n1"),
    node("n2").capacity(cpu="2"),
    node("n3").taint("gpu").capacity(memory="0"),
    pod("x").request(cpu="1").priority(7).on("n1"),
)
PLACED = (
    pod("web").request(cpu="1"),
    node("n1"),
    node("n2"),
    pod("x").request(cpu="1").on("n2"),
    pod("y").request(cpu="500m").on("n1"),
)


def test_the_text_of_a_refused_pod() -> None:
    assert relaxations_text(relaxations(*REFUSED)) == (
        "What would help, by the filters' verdict on the changed pod:\n"
        "      2  Insufficient cpu [NodeResourcesFit]\n"
        "           request 5 less cpu (3 instead of 8): n1\n"
        "      1  node(s) had untolerated taint(s) [TaintToleration]; Insufficient cpu "
        "[NodeResourcesFit]\n"
        "           request 4 less cpu (4 instead of 8) and tolerate gpu:NoSchedule: n3\n"
        "A node that would do: of a new shape, with cpu 8\n"
    )


def test_the_text_of_a_pod_that_would_be_placed() -> None:
    lines = relaxations_text(relaxations(*PLACED)).splitlines()
    assert lines[0].startswith("n1 leads n2 by ")
    assert lines[-1] == "  n2 without the pod default/x"


def test_the_json_form_is_plain_data() -> None:
    data = msgspec.json.decode(msgspec.json.encode(relaxations_data(relaxations(*REFUSED))))
    assert data["groups"][0]["relaxations"][0]["changes"] == [
        {
            "kind": "resource",
            "path": "spec.containers[*].resources.requests[cpu]",
            "subject": "cpu",
            "from": "8",
            "to": "3",
            "text": "request 5 less cpu (3 instead of 8)",
            "cost": 2.5,
        }
    ]


def test_without_names_no_node_and_no_other_pod_is_named() -> None:
    for asked in (REFUSED, PLACED):
        found = without_names(relaxations(*asked))
        told = relaxations_text(found) + str(relaxations_data(found))
        assert not any(name in told for name in ("n1", "n2", "n3", "default/x"))

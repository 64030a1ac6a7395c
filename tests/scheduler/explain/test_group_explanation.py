"""``berth explain --podgroup``: what a group waits for, or what a trial of it finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest

from cache.pod_group_objects import GROUP_LABEL
from scheduler.cli import main
from scheduler.explain import ExplainError, ExplainOptions, run_explain
from tests.builders import PodBuilder, node, pod
from tests.controlplane.pod_groups import make_pod_group, make_x_pod_group
from tests.scheduler.explain.cluster_files import as_object

if TYPE_CHECKING:
    from pathlib import Path

NODES = [as_object(node(name).capacity(cpu="2", pods="10")) for name in ("n1", "n2")]
GANG = make_x_pod_group("gang", 3)


def member(number: int, *, cpu: str = "1") -> PodBuilder:
    named = pod(f"gang-{number}").uid(f"u{number}").scheduler("berth").request(cpu=cpu)
    return named.label(GROUP_LABEL, "gang")


def members(*builders: PodBuilder) -> list[Any]:
    return [as_object(builder) for builder in builders]


class Dump:
    """Explains groups of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(
        self, *objects: Any, group: str = "default/gang", form: Literal["text", "json"] = "text"
    ) -> str:
        items = [item for each in objects for item in (each if isinstance(each, list) else [each])]
        self._path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        options = ExplainOptions(pod_group=group, dumps=(str(self._path),), as_json=form == "json")
        return run_explain(options)

    def json(self, *objects: Any) -> dict[str, Any]:
        (line,) = self.text(*objects, form="json").splitlines()
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    return Dump(tmp_path / "dump.json")


# --- groups that cannot be tried ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "cause", "message"),
    [
        pytest.param(
            [members(member(0))], "object", 'waiting for pod group "gang" to appear', id="object"
        ),
        pytest.param(
            [GANG, members(member(0), member(1))],
            "members",
            "waiting for members: 2 of at least 3 wait",
            id="members",
        ),
        pytest.param(
            [GANG, members(member(0), member(1), member(2).gate("g"))],
            "gates",
            "waiting for members: 2 of at least 3 wait, 1 more have scheduling gates",
            id="gates",
        ),
        pytest.param(
            [GANG, members(member(0), member(1), member(2).scheduler("other"))],
            "scheduler_names",
            "members name different schedulers: 'berth', 'other'",
            id="schedulers",
        ),
        pytest.param(
            [make_x_pod_group("gang", -2), members(member(0))],
            "rules",
            "the pod group is refused: spec.minMember: -2 is negative",
            id="rules",
        ),
        pytest.param([GANG], "members", "waiting for members: 0 of at least 3 wait", id="nobody"),
    ],
)
def test_a_group_that_cannot_be_tried_says_what_it_waits_for(dump, objects, cause, message):
    answer = dump.json(NODES, *objects)
    assert (answer["verdict"], answer["cause"], answer["message"]) == ("held", cause, message)
    text = dump.text(NODES, *objects)
    assert text.startswith("PodGroup default/gang (scheduling.x-k8s.io): it cannot be tried\n")
    assert f"\n{message}\n" in text


def test_a_group_that_has_begun_says_how_many_are_missing(dump):
    objects = [NODES, GANG, members(member(0).on("n1"), member(1))]
    answer = dump.json(*objects)
    assert (answer["verdict"], answer["needed"]) == ("begun", 2)
    text = dump.text(*objects)
    assert "   members  1 waiting, 1 with a node (0 running)\n" in text
    assert "2 more members have to get nodes for the minimum.\n" in text
    assert "berth explain --pod default/gang-1\n" in text


def test_a_group_of_which_all_have_nodes_waits_for_nothing(dump):
    placed = members(*(member(number).on("n1") for number in range(3)))
    assert dump.json(NODES, GANG, placed)["verdict"] == "nobodyWaits"


# --- groups that are tried ----------------------------------------------------------------------


def test_a_group_that_fits_says_where(dump):
    objects = [NODES, GANG, members(*map(member, range(4)))]
    answer = dump.json(*objects)
    assert answer["verdict"] == "fits"
    assert sorted(answer["placed"]) == [f"gang-{number}" for number in range(4)]
    assert sorted(answer["placed"].values()) == ["n1", "n1", "n2", "n2"]
    text = dump.text(*objects)
    assert "4 of 4 waiting members would be placed:\n      2  n1\n      2  n2\n" in text


def test_a_group_that_does_not_fit_says_what_the_next_member_lacks(dump):
    objects = [NODES, make_x_pod_group("gang", 5), members(*map(member, range(5)))]
    answer = dump.json(*objects)
    assert (answer["verdict"], answer["needed"], answer["fitting"]) == ("doesNotFit", 5, 4)
    assert answer["placed"] == {}
    (refused,) = answer["refused"].values()
    assert "Insufficient cpu" in refused
    text = dump.text(*objects)
    assert "4 of 5 members needed fit" in text
    assert "berth explain --pod default/gang-" in text


def test_a_group_that_asks_for_more_than_the_cluster_has_says_so(dump):
    group = make_x_pod_group("gang", 1, minResources={"cpu": "100"})
    answer = dump.json(NODES, group, members(member(0)))
    assert answer["verdict"] == "doesNotFit"
    assert "cpu" in answer["message"]


def test_members_that_are_nominated_do_not_keep_room_from_their_own_group(dump):
    nominated = members(*(member(number).nominated("n1") for number in range(4)))
    assert dump.json(NODES, make_x_pod_group("gang", 4), nominated)["verdict"] == "fits"


# --- which group --------------------------------------------------------------------------------


def test_a_group_of_the_field_is_found_too(dump):
    pods = [pod(f"p{number}").uid(f"u{number}").scheduling_group("gang") for number in range(2)]
    answer = dump.json(NODES, make_pod_group("gang", 2), members(*pods))
    assert (answer["apiGroup"], answer["verdict"]) == ("scheduling.k8s.io", "fits")
    assert (answer["minimum"], answer["members"]["waiting"]) == (2, 2)


def test_two_groups_of_one_name_are_both_explained(dump):
    text = dump.text(NODES, GANG, make_pod_group("gang", 2))
    assert text.count("PodGroup default/gang (scheduling.") == 2
    assert len(dump.text(NODES, GANG, make_pod_group("gang", 2), form="json").splitlines()) == 2


def test_a_group_that_is_not_there_gets_a_suggestion(dump):
    with pytest.raises(ExplainError, match=r"no pod group default/gagn among 1; .*gang"):
        dump.text(GANG, group="default/gagn")


def test_a_member_that_cannot_be_read_is_told(dump):
    broken = members(*map(member, range(3)))
    broken[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    with pytest.raises(ExplainError, match="a member of pod group default/gang cannot be read"):
        dump.text(NODES, GANG, broken)


def test_the_command_explains_a_group(tmp_path, capsys):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(GANG))
    assert main(["explain", "--from", str(path), "--podgroup", "gang"]) == 0
    assert capsys.readouterr().out.startswith("PodGroup default/gang")


def test_a_pod_and_a_group_are_two_questions(capsys):
    assert main(["explain", "--pod", "a", "--podgroup", "b"]) == 1
    assert "contradict" in capsys.readouterr().err


# --- preemption ---------------------------------------------------------------------------------


def full(priority: int) -> list[Any]:
    """Return a pod on each node that leaves no room there."""
    named = ((f"old-{name}", name) for name in ("n1", "n2"))
    pods = (pod(each).uid(each).request(cpu="2").priority(priority).on(on) for each, on in named)
    return members(*pods)


def test_a_group_that_would_fit_without_others_names_them(dump):
    gang = members(*(member(number).priority(10) for number in range(3)))
    answer = dump.json(NODES, full(0), GANG, gang)
    assert answer["verdict"] == "doesNotFit"
    victims = {"default/old-n1": "n1", "default/old-n2": "n2"}
    assert answer["preemption"] == {"victims": victims, "message": ""}
    text = dump.text(NODES, full(0), GANG, gang)
    assert "It would fit without 2 pods of lower priority:\n  default/old-n" in text


def test_a_group_that_preemption_does_not_help_says_why(dump):
    gang = members(*(member(number) for number in range(3)))
    answer = dump.json(NODES, full(10), GANG, gang)
    assert answer["preemption"]["victims"] == {}
    assert answer["preemption"]["message"]
    assert "Preemption does not help: " in dump.text(NODES, full(10), GANG, gang)

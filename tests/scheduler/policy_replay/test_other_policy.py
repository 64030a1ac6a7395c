"""What another policy would have done, on scenarios whose outcome is worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plugins.framework.status import SUCCESS, Code, Status, unschedulable
from scheduler.policy_replay.text_form import _profile_lines
from tests.regressions.bystander import Bystander
from tests.scheduler.journal.journaled import CUT, play_steps
from tests.scheduler.policy_replay.policies import (
    PACKING,
    profiles_of,
    recorded_profiles,
    replay_by,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cache.pod_info import PodInfo
    from scheduler.policy_replay.tally import ProfileReport
    from tests.scheduler.policy_replay.policies import Replayed


def packed(lines: Sequence[str], directory: Path) -> Replayed:
    """Record steps by the default policy, and replay them by one that fills nodes."""
    play_steps(lines, directory)
    return replay_by(profiles_of(PACKING), directory)


def scheduled(*pods: str) -> list[str]:
    return [line for pod in pods for line in (f"pod {pod}", "cycle")]


def outcome(profile: ProfileReport) -> tuple[int, int, int]:
    """Return the pods placed by both, only then, and only now."""
    return profile.moved + profile.same_node, profile.only_then, profile.only_now


NODES = ["node n1 cpu=4", "node n2 cpu=4"]
SPREAD = scheduled("a cpu=1", "b cpu=1")
"""Then one pod on each node, now both on one."""


def test_a_packing_policy_fills_nodes(tmp_path: Path) -> None:
    nodes = [f"node n{number} cpu=8" for number in range(6)]
    found = packed([*nodes, *scheduled(*(f"p{n} cpu=2" for n in range(8)))], tmp_path)
    assert found.end is not None
    then, now = found.end
    assert (then.nodes, now.nodes) == (6, 6)
    assert (then.used, now.used) == (6, 2)
    assert then.requested["cpu"] == pytest.approx(16 / 48)
    assert now.requested["cpu"] == 1.0


def test_its_own_placements_fill_its_cluster(tmp_path: Path) -> None:
    """The third pod needs a whole node: there is one only beside two that are packed."""
    found = packed([*NODES, *SPREAD, *scheduled("c cpu=4")], tmp_path)
    assert outcome(found.profile) == (2, 0, 1)


FOUR = [*NODES, *SPREAD, *scheduled("c cpu=3", "d cpu=3")]
"""Then a and c on one node, b and d on the other; now a and b, c, and no room for d."""


def test_a_pod_without_room_is_refused(tmp_path: Path) -> None:
    found = packed(FOUR, tmp_path)
    assert outcome(found.profile) == (3, 1, 0)
    assert found.profile.now.refused == 1


@pytest.mark.parametrize(
    ("then", "placed"),
    [
        pytest.param(["end pod a"], True, id="a pod ends"),
        pytest.param(["node n3 cpu=4"], True, id="a node comes"),
        pytest.param(["node n3 cpu=1"], False, id="a node without room"),
        pytest.param(["advance 400s"], False, id="time alone"),
        pytest.param(["delete pod d", "end pod a"], False, id="the pod is gone before"),
        pytest.param([CUT, "end pod a"], True, id="in another file"),
    ],
)
def test_a_refused_pod_is_tried_again_when_something_helps(
    then: Sequence[str], placed: bool, tmp_path: Path
) -> None:
    more = scheduled("tick cpu=0")
    found = packed([*FOUR, *more, *then, "advance 2s", *scheduled("tock cpu=0")], tmp_path)
    assert found.profile.only_then == (not placed)
    if placed:
        assert found.profile.now.waiting_s.max > 0


def test_a_pod_stays_on_its_other_node_until_it_is_gone(tmp_path: Path) -> None:
    """What c needs is free when a and b are gone, whatever node they were on then."""
    lines = [*NODES, *SPREAD, *scheduled("x cpu=4"), "end pod a", "end pod b"]
    found = packed([*lines, *scheduled("c cpu=4")], tmp_path)
    assert outcome(found.profile) == (3, 0, 1)
    then, now = found.end or ((), ())
    assert (then.used, now.used) == (1, 2)
    assert now.requested["cpu"] == 1.0


def test_a_pod_that_was_deleted_without_a_node_leaves_its_node(tmp_path: Path) -> None:
    lines = [*NODES, *SPREAD, *scheduled("c cpu=4"), "end pod c"]
    found = packed([*lines, *scheduled("e cpu=4")], tmp_path)
    assert outcome(found.profile) == (2, 0, 2)


def test_victims_of_the_other_policy_leave(tmp_path: Path) -> None:
    found = packed([*FOUR, *scheduled("vip cpu=3 priority=9")], tmp_path)
    profile = found.profile
    assert profile.then.victims == profile.now.victims == 1
    assert profile.now.victim_priorities == {0: 1}


def test_a_preemption_that_only_the_other_policy_needs(tmp_path: Path) -> None:
    lines = [*NODES, *SPREAD, *scheduled("c cpu=3", "vip cpu=3 priority=9")]
    found = packed([*lines, "advance 2s", *scheduled("tick cpu=0")], tmp_path)
    profile = found.profile
    assert (profile.then.victims, profile.now.victims) == (0, 1)
    assert outcome(profile)[1:] == (0, 0)
    assert profile.now.waiting_s.max > 0


def test_a_group_is_placed_as_one(tmp_path: Path) -> None:
    """Two members of four CPUs each: there is a whole node for both only now."""
    nodes = [*NODES, "node n3 cpu=4"]
    gang = ["group g min=2", "pod g1 cpu=4 group=g", "pod g2 cpu=4 group=g", "cycle", "cycle"]
    found = packed([*nodes, *SPREAD, *gang], tmp_path)
    assert outcome(found.profile) == (2, 0, 2)


def test_a_group_without_room_is_refused_as_one_and_tried_again(tmp_path: Path) -> None:
    gang = ["group g min=2", "pod g1 cpu=3 group=g", "pod g2 cpu=3 group=g", "cycle", "cycle"]
    lines = [*NODES, *SPREAD, *gang]
    assert outcome(packed(lines, tmp_path / "1").profile) == (2, 2, 0)
    lines += ["node n3 cpu=4", "advance 2s", *scheduled("tick cpu=0")]
    assert outcome(packed(lines, tmp_path / "2").profile) == (5, 0, 0)


def test_each_decision_by_itself_is_judged_in_the_cluster_as_it_was(tmp_path: Path) -> None:
    found = packed(FOUR, tmp_path)
    counts = found.replay.recorded.open_loop["berth"]
    assert counts.decisions == 4
    # b would join a; c and d have one node with room each, or two that are alike.
    assert (counts.other_node, counts.only_then, counts.only_now) == (1, 0, 0)


# --- permit -----------------------------------------------------------------------------------


def permits(monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Status]) -> None:
    """Let the policies of replays have a Permit plugin that answers so, by the pod's name."""

    def permit(plugin: object, state: object, info: PodInfo, node_name: str) -> Any:
        return answers.get(info.name, SUCCESS), 30.0

    monkeypatch.setattr(Bystander, "permit", permit)


GANG = ["group g min=2", "pod g1 cpu=1 group=g", "pod g2 cpu=1 group=g", "cycle"]


def test_a_pod_that_the_other_policy_does_not_permit_has_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_steps([*NODES, *SPREAD, *scheduled("c cpu=3")], tmp_path)
    permits(monkeypatch, {"b": unschedulable("not now")})
    found = replay_by(recorded_profiles(tmp_path), tmp_path)
    assert outcome(found.profile) == (2, 1, 0)
    assert found.end is not None
    assert found.end[1].requested["cpu"] < found.end[0].requested["cpu"]


def test_a_group_with_a_member_that_is_not_permitted_is_refused_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_steps([*NODES, *GANG], tmp_path)
    permits(monkeypatch, {"g2": unschedulable("not now")})
    found = replay_by(recorded_profiles(tmp_path), tmp_path)
    assert outcome(found.profile) == (0, 2, 0)
    assert found.end is not None
    assert found.end[1].used == 0


def test_pods_that_would_be_held_count_as_placed_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_steps([*NODES, *SPREAD, *GANG], tmp_path)
    permits(monkeypatch, {name: Status(Code.WAIT) for name in ("a", "g1")})
    found = replay_by(recorded_profiles(tmp_path), tmp_path)
    assert outcome(found.profile) == (4, 0, 0)
    assert found.profile.permit_waits == 2
    assert "would have held pods 2 times" in "\n".join(_profile_lines(found.profile))

"""Versions of SchedulingProfiles as they come: twice, late, out of order, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.errors import ApiError
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.reconciler import ProfileIntake
from scheduler.profiles.operator.status_patch import wanted_status
from tests.scheduler.profiles.compiling import Compiling, Dial
from tests.scheduler.profiles.operator.objects import profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.profiles import PythonSource
    from scheduler.profiles.operator.scheduling_profile import ProfileObject

PYTHON = OperatorOptions(enabled=True, allow_python=True, namespace="berth-system")
GOOD = {"schedulerName": "gpu"}
BETTER = {"schedulerName": "gpu", "percentageOfNodesToScore": 50}
BAD = {"schedulerName": "gpu", "plugins": {"filter": {"enabled": [{"name": "Nope"}]}}}
UNREADABLE = {"schedulerName": "gpu", "mode": 7}
SNAKE = {"schedulerName": "gpu", "python": [{"configMap": {"name": "snakes", "key": "a.py"}}]}


class World:
    """An intake with real policies, and ConfigMaps that a test fills."""

    def __init__(self, options: OperatorOptions = PYTHON) -> None:
        self.config_maps: dict[str, Mapping[str, str]] = {}
        self.is_down = False
        self.loaded: list[str | None] = []
        self.told: list[ProfileObject | str] = []
        self.compiling = Compiling(load_python=self._load)
        self.policies = self.compiling.policies
        self.intake = ProfileIntake(self.policies, options, self._read, self.told.append)

    def _read(self, name: str) -> Mapping[str, str] | None:
        if self.is_down:
            raise ApiError(None, "Unreachable", "nobody answers")
        return self.config_maps.get(name)

    def _load(self, sources: Sequence[PythonSource]) -> Mapping[str, type[Plugin]]:
        self.loaded += [each.text for each in sources]
        if "broken" in self.loaded:
            raise RuntimeError("our mistake")
        return {"Dial": Dial}

    def seen(self, *names: str, **fields: Any) -> None:
        self.intake.seen(profile(*names, **fields))

    def status(self, name: str = "gpu") -> dict[str, Any]:
        """Return what the status of the newest version should say."""
        newest = [each for each in self.told if not isinstance(each, str) and each.name == name]
        status = wanted_status(newest[-1], self.policies.status(name), None, "now")
        assert status is not None
        return status

    def conditions(self) -> dict[str, tuple[str, str]]:
        found = self.status()["conditions"]
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    @property
    def running(self) -> dict[str, str]:
        return self.compiling.running()


def test_a_version_is_given_to_the_policies_once() -> None:
    world = World()
    world.seen(version=5)
    world.seen(version=5)
    world.seen(version=6)
    assert world.running == {"berth": "default@1", "gpu": "schedulingprofile/gpu@1"}
    assert len(world.compiling.swaps) == 1


def test_the_status_that_it_shows_is_passed_on_with_each_version() -> None:
    world = World()
    world.seen(version=5)
    world.seen(version=6, status={"activeGeneration": 1})
    assert [each.status for each in world.told if not isinstance(each, str)] == [
        {},
        {"activeGeneration": 1},
    ]


def test_an_older_version_that_comes_late_changes_nothing() -> None:
    world = World()
    world.seen(version=6, generation=2, spec=BETTER)
    world.seen(version=5, generation=1)
    assert world.running["gpu"] == "schedulingprofile/gpu@2"


def test_what_was_deleted_does_not_come_back_by_an_old_list() -> None:
    world = World()
    old = profile(version=5)
    world.intake.seen(old)
    world.intake.gone("gpu", old.uid)
    world.intake.listed([old], 5)
    assert world.running == {"berth": "default@1"}
    assert world.told[-1] == "gpu"


def test_one_made_again_under_its_name_is_another() -> None:
    world = World()
    world.seen(uid="first", version=5, generation=3)
    world.seen(uid="second", version=9, generation=1, spec=BETTER)
    world.intake.gone("gpu", "first")
    assert world.running["gpu"] == "schedulingprofile/gpu@1"


def test_what_a_list_lacks_is_gone() -> None:
    world = World()
    world.seen(version=5)
    world.intake.listed([], 6)
    assert world.running == {"berth": "default@1"}


def test_what_is_newer_than_a_list_stays() -> None:
    world = World()
    world.seen(version=7)
    world.intake.listed([], 6)
    assert "gpu" in world.running


def test_without_the_kind_there_are_none() -> None:
    world = World()
    world.seen()
    world.intake.not_installed()
    assert world.running == {"berth": "default@1"}


@pytest.mark.parametrize(
    "bad", [pytest.param(BAD, id="unusable"), pytest.param(UNREADABLE, id="unreadable")]
)
def test_a_bad_version_leaves_the_good_one_running(bad: dict[str, Any]) -> None:
    world = World()
    world.seen(version=5)
    world.seen(version=6, generation=2, spec=bad)
    assert world.running["gpu"] == "schedulingprofile/gpu@1"


@pytest.mark.parametrize(
    "bad", [pytest.param(BAD, id="unusable"), pytest.param(UNREADABLE, id="unreadable")]
)
def test_a_process_that_sees_a_bad_version_first_runs_the_last_good_one(
    bad: dict[str, Any],
) -> None:
    world = World()
    history = [{"generation": 4, "spec": BETTER}, {"generation": 1, "spec": GOOD}]
    world.seen(generation=5, spec=bad, status={"history": history})
    assert world.running["gpu"] == "schedulingprofile/gpu@4"


def test_a_status_cannot_choose_what_runs() -> None:
    world = World()
    history = [{"generation": 4, "spec": BETTER}, {"generation": 1, "spec": GOOD}]
    world.seen(generation=5, spec=BAD, status={"history": history}, sealed=history[1:])
    assert world.running["gpu"] == "schedulingprofile/gpu@1"
    world = World()
    world.seen(generation=5, spec=BAD, status={"history": history}, sealed=[])
    assert "gpu" not in world.running


def test_a_good_version_that_is_seen_first_decides() -> None:
    world = World()
    history = [{"generation": 4, "spec": BETTER}]
    world.seen(generation=5, spec=GOOD, status={"history": history})
    assert world.running["gpu"] == "schedulingprofile/gpu@5"


def test_a_shadow_does_not_bring_back_what_decided_before_it() -> None:
    world = World()
    history = [{"generation": 4, "spec": GOOD}]
    world.seen(generation=5, spec={**GOOD, "mode": "Shadow"}, status={"history": history})
    assert "gpu" not in world.running
    assert world.conditions()["Active"] == ("False", "Shadowing")
    assert world.status()["history"] == history


def test_one_that_cannot_be_read_while_the_last_good_one_runs() -> None:
    world = World()
    world.seen(version=5, generation=2)
    world.seen(version=6, generation=3, spec=UNREADABLE)
    assert world.conditions() == {
        "Accepted": ("False", "Invalid"),
        "Active": ("True", "Running"),
        "Degraded": ("True", "LastGoodRunning"),
    }
    status = world.status()
    assert status["conditions"][0]["message"].startswith("spec.mode: ")
    assert "generation 2 goes on: spec.mode: " in status["conditions"][2]["message"]
    assert (status["observedGeneration"], status["activeGeneration"]) == (3, 2)
    assert status["history"] == []


def test_one_that_cannot_be_read_and_never_could() -> None:
    world = World()
    world.seen(spec=UNREADABLE)
    assert world.conditions() == {
        "Accepted": ("False", "Invalid"),
        "Active": ("False", "NotAccepted"),
        "Degraded": ("True", "NotRunning"),
    }
    assert "activeGeneration" not in world.status()


@pytest.mark.parametrize("spec", [7, None, {"schedulerName": 7}, {"schedulerName": ""}])
def test_whatever_a_spec_is_it_gets_a_status(spec: Any) -> None:
    world = World()
    world.intake.seen(replace(profile(), spec=spec))
    assert world.conditions()["Accepted"] == ("False", "Invalid")


def test_one_that_can_be_read_again_is_taken() -> None:
    world = World()
    world.seen(version=5, spec=UNREADABLE)
    world.seen(version=6, generation=2, spec=GOOD)
    assert world.running["gpu"] == "schedulingprofile/gpu@2"
    assert world.conditions()["Degraded"] == ("False", "AsExpected")


def test_a_mistake_of_ours_costs_one_and_not_the_others() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "broken"}
    world.seen("snake", spec=SNAKE)
    world.seen(version=2)
    assert world.running["gpu"] == "schedulingprofile/gpu@1"
    status = world.policies.status("snake")
    assert status is not None
    assert "spec: could not be compiled: RuntimeError('our mistake')" in status.accepted.message


# --- whose it is ------------------------------------------------------------------------------


SELECTING = OperatorOptions(enabled=True, selector={"for": "us"})


def test_those_of_others_are_left_alone() -> None:
    world = World(SELECTING)
    world.seen(labels={"for": "them"})
    assert (world.running, world.told) == ({"berth": "default@1"}, [])


def test_one_that_loses_our_label_is_gone() -> None:
    world = World(SELECTING)
    world.seen(version=5, labels={"for": "us", "more": ""})
    assert "gpu" in world.running
    world.seen(version=6)
    assert (world.running, world.told[-1]) == ({"berth": "default@1"}, "gpu")


# --- ConfigMaps -------------------------------------------------------------------------------


def test_python_of_a_config_map_is_read() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    assert world.loaded == ["first"]
    assert world.intake.names_config_maps


def test_changed_python_is_taken_over() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    world.config_maps["snakes"] = {"a.py": "second"}
    world.intake.look_at_config_maps()
    world.intake.look_at_config_maps()
    assert world.loaded == ["first", "second"]


def test_a_config_map_that_cannot_be_read_for_a_while_changes_nothing() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    world.is_down = True
    world.intake.look_at_config_maps()
    assert world.loaded == ["first"]


def test_a_config_map_that_could_not_be_read_is_asked_for_again() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.is_down = True
    world.seen(spec=SNAKE)
    world.is_down = False
    world.intake.look_at_config_maps()
    assert world.loaded[-1] == "first"


def test_when_nobody_names_a_config_map_any_more_none_is_asked_for() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(version=5, spec=SNAKE)
    world.seen(version=6, generation=2, spec=GOOD)
    assert not world.intake.names_config_maps


# --- any order --------------------------------------------------------------------------------


@given(st.permutations(range(1, 6)), st.sets(st.integers(1, 5)))
def test_in_any_order_and_as_often_as_you_like_the_newest_decides(
    order: list[int], twice: set[int]
) -> None:
    world = World()
    for generation in [*order, *twice]:
        spec = {"schedulerName": "gpu", "percentageOfNodesToScore": generation}
        world.seen(version=generation, generation=generation, spec=spec)
    assert world.running["gpu"] == "schedulingprofile/gpu@5"

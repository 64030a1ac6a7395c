"""SchedulingProfiles as kopf hands them over, and what is given to the policies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.errors import ApiError
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.reconciler import ProfileReconciler
from scheduler.profiles.operator.status_patch import wanted_status
from tests.scheduler.profiles.compiling import Compiling, Dial
from tests.scheduler.profiles.operator.objects import raw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.profiles import ProfileStatus, ProfileVersion, PythonSource

PYTHON = OperatorOptions(enabled=True, allow_python=True, namespace="berth-system")
GOOD = {"schedulerName": "gpu"}
BETTER = {"schedulerName": "gpu", "percentageOfNodesToScore": 50}
BAD = {"schedulerName": "gpu", "plugins": {"filter": {"enabled": [{"name": "Nope"}]}}}
UNREADABLE = {"schedulerName": "gpu", "mode": 7}
SNAKE = {"schedulerName": "gpu", "python": [{"configMap": {"name": "snakes", "key": "a.py"}}]}


class World:
    """A reconciler with real policies, and ConfigMaps that a test fills."""

    def __init__(self, options: OperatorOptions = PYTHON) -> None:
        self.config_maps: dict[str, Mapping[str, str]] = {}
        self.is_down = False
        self.loaded: list[str | None] = []
        self.compiling = Compiling(load_python=self._load)
        self.policies = self.compiling.policies
        self.reconciler = ProfileReconciler(self.policies, options, self._read)

    def _read(self, name: str) -> Mapping[str, str] | None:
        if self.is_down:
            raise ApiError(None, "Unreachable", "nobody answers")
        return self.config_maps.get(name)

    def _load(self, source: PythonSource) -> Mapping[str, type[Plugin]]:
        self.loaded.append(source.text)
        if "broken" in self.loaded:
            raise RuntimeError("our mistake")
        return {"Dial": Dial}

    def seen(self, *names: str, is_listed: bool = False, **fields: Any) -> None:
        self.reconciler.changed(raw(*names, **fields), is_listed=is_listed)

    def status(self, name: str = "gpu") -> dict[str, Any]:
        """Return what the status of the newest version should say."""
        known = self.policies.statuses()[name]
        assert known.version.object is not None
        return wanted_status(known.version.object, known, None, "now")

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
    known = world.policies.statuses()["gpu"].version.object
    assert known is not None
    assert known.status == {"activeGeneration": 1}
    assert len(world.compiling.swaps) == 1


def test_what_was_deleted_is_gone() -> None:
    world = World()
    world.seen(version=5)
    world.reconciler.deleted(raw(version=6))
    assert world.running == {"berth": "default@1"}
    assert world.policies.statuses() == {}


def test_one_made_again_under_its_name_is_another_whatever_comes_late_of_the_first() -> None:
    world = World()
    world.seen(uid="first", version=5, generation=3)
    world.seen(uid="second", version=9, generation=1, spec=BETTER)
    world.seen(uid="first", version=7, generation=4)
    world.reconciler.deleted(raw(uid="first", version=8))
    assert world.running["gpu"] == "schedulingprofile/gpu@1"


def test_what_a_list_lacks_is_gone() -> None:
    world = World()
    world.seen(version=5)
    world.seen("kept", version=6)
    world.reconciler.listed({"uid-kept"})
    assert world.running == {"berth": "default@1", "kept": "schedulingprofile/kept@1"}


def test_a_list_after_a_restore_of_etcd_says_what_there_is_now() -> None:
    world = World()
    world.seen(version=9, generation=2, spec=BETTER)
    world.seen("again", uid="second", version=8, generation=2)
    world.seen(version=3, generation=2, spec=GOOD, is_listed=True)
    world.seen("again", uid="first", version=2, generation=7, is_listed=True)
    percentages = {
        each.profile_name: each.percentage_of_nodes_to_score for each in world.policies.frameworks()
    }
    assert percentages["gpu"] == 0
    assert world.running["again"] == "schedulingprofile/again@7"


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
    bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    history = [{"generation": 4, "spec": BETTER}, {"generation": 1, "spec": GOOD}]
    put, objects = world.policies.put, []

    def record(version: ProfileVersion) -> ProfileStatus:
        objects.append(version.object)
        return put(version)

    monkeypatch.setattr(world.policies, "put", record)
    world.seen(generation=5, spec=bad, status={"history": history})
    assert world.running["gpu"] == "schedulingprofile/gpu@4"
    # The last good one has no object, whose status could be taken for that of the newest.
    assert [each is None for each in objects] == [True, False]


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
    assert "generation 2 stays active: spec.mode: " in status["conditions"][2]["message"]
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
    world.reconciler.changed({**raw(), "spec": spec})
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
    assert (world.running, world.policies.statuses()) == ({"berth": "default@1"}, {})


def test_one_that_loses_our_label_is_gone() -> None:
    world = World(SELECTING)
    world.seen(version=5, labels={"for": "us", "more": ""})
    assert "gpu" in world.running
    world.seen(version=6)
    assert (world.running, world.policies.statuses()) == ({"berth": "default@1"}, {})


# --- ConfigMaps -------------------------------------------------------------------------------


def test_python_of_a_config_map_is_read() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    assert world.loaded == ["first"]
    assert world.reconciler.names_config_maps


def test_changed_python_is_taken_over() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    world.config_maps["snakes"] = {"a.py": "second"}
    world.reconciler.look_at_config_maps()
    world.reconciler.look_at_config_maps()
    assert world.loaded == ["first", "second"]


def test_a_config_map_that_cannot_be_read_for_a_while_changes_nothing() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(spec=SNAKE)
    world.is_down = True
    world.reconciler.look_at_config_maps()
    assert world.loaded == ["first"]


def test_a_config_map_that_could_not_be_read_is_asked_for_again() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.is_down = True
    world.seen(spec=SNAKE)
    world.is_down = False
    world.reconciler.look_at_config_maps()
    assert world.loaded[-1] == "first"


def test_when_nobody_names_a_config_map_any_more_none_is_asked_for() -> None:
    world = World()
    world.config_maps["snakes"] = {"a.py": "first"}
    world.seen(version=5, spec=SNAKE)
    world.seen(version=6, generation=2, spec=GOOD)
    assert not world.reconciler.names_config_maps

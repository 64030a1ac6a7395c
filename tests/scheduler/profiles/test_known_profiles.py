from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from scheduler.config import ConfigError, Profile, default_config
from scheduler.config.file_profile import PluginConfig, PluginEntry, Plugins, PluginSet
from scheduler.profiles import Mode, PythonSource, ShadowOptions
from tests.scheduler.profiles.compiling import Compiling, Dial, enabled, spec


class RecordingShadows:
    def __init__(self) -> None:
        self.installed: dict[str, str] = {}
        self.installs = 0

    def install(self, name, framework, options):
        self.installs += 1
        self.installed[name] = framework.policy.text

    def remove(self, name):
        self.installed.pop(name, None)


def test_at_first_the_file_decides():
    assert Compiling().running() == {"berth": "default@1"}


def test_a_scheduling_profile_adds_a_profile():
    world = Compiling()
    world.policies.put(spec())
    assert world.swaps == [{"berth": "default@1", "gpu": "schedulingprofile/gpu@1"}]


def test_a_scheduling_profile_replaces_the_files_profile():
    world = Compiling()
    world.policies.put(spec(profile=enabled(scheduler_name="berth")))
    assert world.running() == {"berth": "schedulingprofile/gpu@1"}


def test_removing_one_gives_the_files_profile_back():
    world = Compiling()
    before = world.policies.frameworks()
    world.policies.put(spec(profile=enabled(scheduler_name="berth")))
    world.policies.remove("gpu")
    assert world.policies.frameworks() == before


def test_other_profiles_stay_the_same_objects():
    world = Compiling()
    (of_file,) = world.policies.frameworks()
    world.policies.put(spec())
    assert world.policies.frameworks()[0] is of_file


def test_the_same_version_once_more_is_no_change():
    world = Compiling()
    world.policies.put(spec())
    world.policies.put(spec())
    assert len(world.swaps) == 1


def test_removing_what_is_not_known_is_no_mistake():
    world = Compiling()
    world.policies.remove("nobody")
    assert world.swaps == []


def test_a_new_generation_decides():
    world = Compiling()
    world.policies.put(spec())
    world.policies.put(spec(generation=2, profile=enabled("Dial", level=3)))
    assert world.running()["gpu"] == "schedulingprofile/gpu@2"


def test_its_plugins_are_told():
    world = Compiling()
    status = world.policies.put(spec(profile=enabled("Dial")))
    assert "Dial" in status.running_plugins


BROKEN = [
    pytest.param(
        enabled("Dail"), "spec.plugins.multiPoint.enabled[0].name", "did you mean Dial", id="name"
    ),
    pytest.param(enabled("Breaks"), "spec", "RuntimeError: boom", id="constructor"),
    pytest.param(
        Profile(
            "gpu",
            plugins=enabled("Dial").plugins,
            plugin_config=(PluginConfig("Dial", {"level": "high"}),),
        ),
        "spec.pluginConfig[0].args.level",
        "must be a whole number",
        id="arguments",
    ),
    pytest.param(
        Profile("gpu", plugins=Plugins(queue_sort=PluginSet(disabled=(PluginEntry("*"),)))),
        "spec.plugins.queueSort",
        "exactly one",
        id="no queueSort",
    ),
]


@pytest.mark.parametrize(("profile", "path", "why"), BROKEN)
def test_a_mistake_is_told_with_its_path(profile, path, why):
    (mistake,) = Compiling().policies.put(spec(profile=profile)).mistakes
    assert mistake.path == path
    assert why in mistake.why


@pytest.mark.parametrize(("profile", "path", "why"), BROKEN)
def test_a_broken_generation_leaves_the_last_good_one(profile, path, why):
    world = Compiling()
    world.policies.put(spec())
    world.policies.put(spec(generation=2, profile=profile))
    assert world.running()["gpu"] == "schedulingprofile/gpu@1"


def test_a_broken_generation_is_told_in_the_conditions():
    world = Compiling()
    world.policies.put(spec())
    status = world.policies.put(spec(generation=2, profile=enabled("Dail")))
    assert (status.accepted.status, status.accepted.reason) == (False, "Invalid")
    assert (status.active.status, status.active_generation) == (True, 1)
    assert (status.degraded.status, status.degraded.reason) == (True, "LastGoodRunning")
    assert "spec.plugins.multiPoint.enabled[0].name" in status.degraded.message
    assert status.version.generation == 2


def test_a_first_generation_that_is_broken_leaves_the_files_profile():
    world = Compiling()
    status = world.policies.put(spec(profile=enabled("Dail", scheduler_name="berth")))
    assert world.running() == {"berth": "default@1"}
    assert (status.degraded.status, status.degraded.reason) == (True, "NotRunning")


def test_after_a_broken_generation_a_good_one_is_taken():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Dail")))
    status = world.policies.put(spec(generation=2))
    assert (status.accepted.status, status.degraded.status) == (True, False)


# --- two for one schedulerName -------------------------------------------------------------------

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(spec("a", created=OLD), spec("b", created=NEW), id="the older comes first"),
        pytest.param(spec("b", created=NEW), spec("a", created=OLD), id="the older comes later"),
        pytest.param(spec("a", created=OLD), spec("b", created=OLD), id="by name if as old"),
    ],
)
def test_of_two_the_older_decides(first, second):
    world = Compiling()
    world.policies.put(first)
    world.policies.put(second)
    assert world.running()["gpu"] == "schedulingprofile/a@1"


def test_the_younger_is_told_who_was_first():
    world = Compiling()
    world.policies.put(spec("a", created=OLD))
    status = world.policies.put(spec("b", created=NEW))
    assert (status.accepted.status, status.accepted.reason) == (False, "Conflict")
    assert "SchedulingProfile a" in status.accepted.message
    assert status.active_generation is None


def test_the_younger_follows_when_the_older_goes():
    world = Compiling()
    world.policies.put(spec("a", created=OLD))
    world.policies.put(spec("b", created=NEW))
    world.policies.remove("a")
    assert world.running()["gpu"] == "schedulingprofile/b@1"
    assert world.policies.statuses()["b"].active.status


def test_one_that_cannot_be_used_keeps_nobody_out():
    world = Compiling()
    world.policies.put(spec("a", profile=enabled("Dail"), created=OLD))
    world.policies.put(spec("b", created=NEW))
    assert world.running()["gpu"] == "schedulingprofile/b@1"


# --- in the shadow -------------------------------------------------------------------------------


def test_one_in_the_shadow_does_not_decide():
    shadows = RecordingShadows()
    world = Compiling(shadows=shadows)
    status = world.policies.put(spec(mode=Mode.SHADOW))
    assert world.running() == {"berth": "default@1"}
    assert shadows.installed == {"gpu": "schedulingprofile/gpu@1"}
    assert (status.accepted.status, status.active.reason) == (True, "Shadowing")


def test_active_takes_it_out_of_the_shadow():
    shadows = RecordingShadows()
    world = Compiling(shadows=shadows)
    world.policies.put(spec(mode=Mode.SHADOW))
    world.policies.put(spec(generation=2))
    assert shadows.installed == {}
    assert world.running()["gpu"] == "schedulingprofile/gpu@2"


def test_other_changes_leave_a_comparison_alone():
    shadows = RecordingShadows()
    world = Compiling(shadows=shadows)
    world.policies.put(spec(mode=Mode.SHADOW))
    world.policies.set_file(default_config("berth"))
    world.policies.put(spec("other"))
    assert shadows.installs == 1


def test_other_options_begin_a_comparison_anew():
    shadows = RecordingShadows()
    world = Compiling(shadows=shadows)
    world.policies.put(spec(mode=Mode.SHADOW))
    world.policies.put(spec(mode=Mode.SHADOW, generation=2, shadow=ShadowOptions(decisions=5)))
    assert shadows.installs == 2


def test_removing_it_ends_the_comparison():
    shadows = RecordingShadows()
    world = Compiling(shadows=shadows)
    world.policies.put(spec(mode=Mode.SHADOW))
    world.policies.remove("gpu")
    assert shadows.installed == {}


# --- the file ------------------------------------------------------------------------------------


def config(*profiles: Profile):
    return msgspec.structs.replace(default_config("berth"), profiles=profiles, source="berth.yaml")


def test_a_files_generation_counts_its_contents():
    world = Compiling(config=config(Profile("berth")))
    assert world.running() == {"berth": "file@1"}
    world.policies.set_file(config(enabled("Dial", level=1, scheduler_name="berth")))
    assert world.running() == {"berth": "file@2"}


def test_what_a_new_file_leaves_alone_goes_on():
    world = Compiling(config=config(Profile("a"), Profile("b")))
    a, _ = world.policies.frameworks()
    world.policies.set_file(config(Profile("a"), enabled("Dial", scheduler_name="b")))
    assert world.policies.frameworks()[0] is a
    assert world.running() == {"a": "file@1", "b": "file@2"}


def test_a_broken_file_changes_nothing():
    world = Compiling(config=config(Profile("a")))
    before = world.policies.frameworks()
    (mistake,) = world.policies.set_file(config(enabled("Dail", scheduler_name="a")))
    assert mistake.path == "profiles[0].plugins.multiPoint.enabled[0].name"
    assert world.policies.frameworks() == before


@pytest.mark.parametrize("of", ["file", "resource"])
def test_who_sorts_the_queue_cannot_change(of):
    sorting = PluginSet((PluginEntry("OtherSort"),), (PluginEntry("*"),))
    profile = Profile("a", plugins=Plugins(queue_sort=sorting))
    world = Compiling(config=config(Profile("a")))
    if of == "file":
        (mistake,) = world.policies.set_file(config(profile))
    else:
        (mistake,) = world.policies.put(spec(profile=profile)).mistakes
    assert mistake.path.endswith("plugins.queueSort")
    assert world.running() == {"a": "file@1"}


def test_a_scheduling_profile_follows_what_the_file_says_for_all():
    world = Compiling(config=config(Profile("a")))
    world.policies.put(spec())
    world.policies.set_file(
        msgspec.structs.replace(config(Profile("a")), percentage_of_nodes_to_score=30)
    )
    assert [f.percentage_of_nodes_to_score for f in world.policies.frameworks()] == [30, 30]


# --- plugins -------------------------------------------------------------------------------------


class OtherDial(Dial):
    """The same from another version of a file."""


def test_a_plugin_that_is_loaded_anew_is_in_its_profiles_and_in_no_other():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Dial", level=2)))
    of_file, _ = world.policies.frameworks()
    world.plugins["Dial"] = OtherDial
    assert world.policies.plugins_changed() == []
    unchanged, changed = world.policies.frameworks()
    assert unchanged is of_file
    assert OtherDial in {type(plugin) for plugin in changed.plugins}


def test_a_plugin_that_appears_heals_who_has_missed_it():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Late")))
    world.plugins["Late"] = type("Late", (OtherDial,), {"name": "Late"})
    world.policies.plugins_changed()
    assert world.running()["gpu"] == "schedulingprofile/gpu@1"


def test_a_plugin_that_goes_leaves_the_last_good_profile():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Dial")))
    del world.plugins["Dial"]
    world.policies.plugins_changed()
    assert world.running()["gpu"] == "schedulingprofile/gpu@1"
    assert world.policies.statuses()["gpu"].degraded.reason == "LastGoodRunning"


def test_scheduling_profiles_get_new_plugins_though_the_file_lacks_one():
    world = Compiling(config=config(enabled("Shut", scheduler_name="a")))
    world.policies.put(spec(profile=enabled("Dial")))
    del world.plugins["Shut"]
    world.plugins["Dial"] = OtherDial
    (mistake,) = world.policies.plugins_changed()
    of_file, changed = world.policies.frameworks()
    assert mistake.path.startswith("profiles[0]")
    assert "Shut" in {plugin.name for plugin in of_file.plugins}
    assert OtherDial in {type(plugin) for plugin in changed.plugins}


def test_the_last_good_generation_gets_new_plugins_too():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Dial")))
    world.policies.put(spec(generation=2, profile=enabled("Dail")))
    world.plugins["Dial"] = OtherDial
    world.policies.plugins_changed()
    _, changed = world.policies.frameworks()
    assert OtherDial in {type(plugin) for plugin in changed.plugins}
    assert world.running()["gpu"] == "schedulingprofile/gpu@1"


def test_a_plugin_that_fails_is_told_where_it_runs():
    world = Compiling()
    world.policies.put(spec(profile=enabled("Dial")))
    world.policies.put(spec("other", profile=enabled(scheduler_name="other")))
    world.policies.plugin_trouble({"Dial": "raised ValueError"})
    statuses = world.policies.statuses()
    assert statuses["gpu"].degraded.message == "Dial: raised ValueError"
    assert not statuses["other"].degraded.status


def test_python_is_refused_where_nobody_loads_any():
    source = PythonSource("config-map", "ns/a/b.py", "x")
    (mistake,) = Compiling().policies.put(spec(python=(source,))).mistakes
    assert mistake.path == "spec.python"


def test_python_of_its_own_runs_without_being_named():
    source = PythonSource("config-map", "ns/a/b.py", "x", args={"level": 4})
    mine = type("Mine", (OtherDial,), {"name": "Mine"})
    world = Compiling(load_python=lambda source: {"Mine": mine})
    status = world.policies.put(spec(python=(source,)))
    assert status.mistakes == ()
    (_, framework) = world.policies.frameworks()
    (plugin,) = [each for each in framework.plugins if each.name == "Mine"]
    assert plugin.level == 4


def test_a_mistake_in_its_arguments_is_told_at_the_source():
    source = PythonSource("entry-point", "mine", args={"level": "high"})
    mine = type("Mine", (OtherDial,), {"name": "Mine"})
    world = Compiling(load_python=lambda source: {"Mine": mine})
    (mistake,) = world.policies.put(spec(python=(source,))).mistakes
    assert mistake.path == "spec.python[0].args.level"


def test_a_source_that_cannot_be_loaded_is_told():
    def refuse(source):
        raise ConfigError("configMap", "line 3: no")

    source = PythonSource("config-map", "ns/a/b.py", "x")
    (mistake,) = Compiling(load_python=refuse).policies.put(spec(python=(source,))).mistakes
    assert mistake.path == "spec.python[0].configMap"


# --- subscribers ---------------------------------------------------------------------------------


def test_who_subscribed_hears_of_each_status_that_changes():
    world = Compiling()
    world.policies.put(spec("a", created=OLD))
    world.policies.put(spec("b", created=NEW))
    world.policies.remove("a")
    assert world.told == [frozenset("a"), frozenset("b"), frozenset("ab")]


def test_a_new_object_of_the_same_name_begins_anew():
    world = Compiling()
    world.policies.put(spec())
    status = world.policies.put(replace(spec(profile=enabled("Dail")), uid="another"))
    assert (status.version.uid, status.active_generation) == ("another", None)

from __future__ import annotations

from scheduler.config import default_config, running_profiles
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.finding import Found
from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.profile_of_directory import usable_as_they_are, with_plugins
from tests.scheduler.user_plugins.sources import good

NEEDY = good("Needy").replace('label: str = "cost"', "label: str")
REFUSING = good("Refusing").replace("self.args = args", "raise ValueError('no')")
SOURCES = [
    PluginSource.of_text("directory", f"{name}.py", text)
    for name, text in {"a": good("A"), "needy": NEEDY, "refusing": REFUSING}.items()
]


def catalogue() -> PluginCatalogue:
    made = PluginCatalogue()
    made.replace("directory", Found(tuple(SOURCES)))
    return made


def test_a_plugin_of_the_directory_runs_where_it_serves() -> None:
    plugins = catalogue().plugins
    (profile,) = running_profiles(with_plugins(default_config(), ["A"]), plugins)
    assert profile.points["score"][-1] == "A"
    assert "A" not in profile.points["filter"]
    assert profile.score_weights["A"] == 1


def test_the_rest_of_the_profile_stays_as_it_was() -> None:
    (before,) = running_profiles(default_config())
    (after,) = running_profiles(with_plugins(default_config(), ["A"]), catalogue().plugins)
    assert after.points["filter"] == before.points["filter"]
    assert after.points["score"][:-1] == before.points["score"]


def test_a_plugin_that_cannot_be_made_as_it_is_is_left_out() -> None:
    made = catalogue()
    assert usable_as_they_are(made.names_from("directory"), made.plugins) == ("A",)

"""Profiles with users' plugins are replayed with the same code only."""

from __future__ import annotations

from dataclasses import replace

from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.journal.records import RecordEncoder
from scheduler.journal.replayed_profiles import ReplayedProfiles
from scheduler.journal.replayed_services import ReplayedServices
from scheduler.journal.replayed_state import ReplayedState
from scheduler.runtime.profile_builder import build_framework
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.finding import Found
from scheduler.user_plugins.plugin_source import PluginSource

CODE = """
class Last:
    def score_one(self, pod, node):
        return {}
"""


def _plugins(score: int):
    catalogue = PluginCatalogue()
    source = PluginSource.of_text("directory", "last.py", CODE.format(score))
    catalogue.replace("directory", Found((source,)))
    return catalogue.plugins


def test_a_profile_is_replayed_with_the_code_that_it_ran_with() -> None:
    state = ReplayedState()
    services = ReplayedServices(state)
    (profile,) = effective_profiles(default_config("berth"))
    plugins = _plugins(1)
    points = {**profile.points, "score": (*profile.points["score"], "Last")}
    profile = replace(
        profile,
        points=points,
        score_weights={**profile.score_weights, "Last": 1},
        classes={**profile.classes, "Last": plugins["Last"]},
    )
    framework = build_framework(profile, 0, plugins, services)
    encoder = RecordEncoder()
    encoder.add(("config", (1, (framework,)), ""))
    ((_, version, told),) = encoder.take()
    found = {}
    for name, known in {"same": plugins, "other": _plugins(2), "none": PLUGINS}.items():
        profiles = ReplayedProfiles(known, services, state.cluster.nominator)
        profiles.configure(version, told)
        built = profiles.get(1, "berth")
        found[name] = profiles.problem(1, "berth") if built is None else ""
    assert found == {
        "same": "",
        "other": "profile berth ran with other code of Last",
        "none": "profile berth needs plugins that are not here: Last",
    }

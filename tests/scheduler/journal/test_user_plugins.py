"""Profiles with users' plugins are replayed with the same code only."""

from __future__ import annotations

from contextlib import suppress
from threading import get_ident

import pytest
from msgspec.structs import replace

from cache.node_info import NodeInfo
from plugins.framework.cycle_state import CycleState
from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.journal import Journal
from scheduler.journal.records import RecordEncoder
from scheduler.journal.replayed_profiles import ReplayedProfiles
from scheduler.journal.replayed_services import Answers, ReplayedGuard, ReplayedServices
from scheduler.journal.replayed_state import ReplayedState
from scheduler.runtime.profile_builder import build_framework
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.containment import Containment
from scheduler.user_plugins.containment.guard import PluginFailedError
from scheduler.user_plugins.finding import Found
from scheduler.user_plugins.plugin_source import PluginSource
from tests.builders import pod

WEB = pod("web").info()

CODE = """
class Last:
    def score_one(self, pod, node):
        return {}
"""


def _plugins(score: int, containment: Containment | None = None):
    guard_for = None if containment is None else containment.guard_for
    catalogue = PluginCatalogue(guard_for=guard_for)
    source = PluginSource.of_text("directory", "last.py", CODE.format(score))
    catalogue.replace("directory", Found((source,)))
    return catalogue.plugins


def _profile(plugins):
    (profile,) = effective_profiles(default_config("berth"))
    points = {**profile.points, "score": (*profile.points["score"], "Last")}
    return replace(
        profile,
        points=points,
        score_weights={**profile.score_weights, "Last": 1},
        classes={**profile.classes, "Last": plugins["Last"]},
    )


def _last(framework):
    (found,) = (plugin for plugin in framework.plugins if plugin.name == "Last")
    return found


def test_a_profile_is_replayed_with_the_code_that_it_ran_with() -> None:
    state = ReplayedState()
    services = ReplayedServices(state)
    plugins = _plugins(1)
    framework = build_framework(_profile(plugins), 0, plugins, services)
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


def _fail() -> int:
    raise ValueError("no cost")


def test_a_plugin_that_was_switched_off_is_skipped_in_the_replay() -> None:
    state = ReplayedState()
    services = ReplayedServices(state)
    containment = Containment()
    try:
        plugins = _plugins(7, containment)
        framework = build_framework(_profile(plugins), 0, plugins, services)
        journal = Journal(1, 100)
        journal.configured(1, [framework])
        journal.thread = get_ident()
        plugin, node = _last(framework), NodeInfo("n1")
        for _ in range(containment.options.breaker.failures):
            with suppress(PluginFailedError):
                plugin.guard.call("Last", "score_one", _fail)
        cycle = SchedulingCycle(state.snapshot, journal.ties, services)
        journal.begin(cycle)
        assert plugin.score_one(CycleState(), WEB, node) == 0
        reads = journal._asked(framework, 1).reads
    finally:
        containment.stop()
    assert reads == [["off", "Last", "score_one", ""]]
    encoder = RecordEncoder()
    encoder.add(("config", (1, (framework,)), ""))
    ((_, version, told),) = encoder.take()
    profiles = ReplayedProfiles(_plugins(7), services, state.cluster.nominator)
    profiles.configure(version, told)
    again = _last(profiles.get(1, "berth"))
    called = again.score_one(CycleState(), WEB, node)
    services.answers = Answers(reads)
    assert (called != 0, again.score_one(CycleState(), WEB, node)) == (True, 0)


def test_a_plugin_that_failed_is_told_of_in_the_same_words() -> None:
    state = ReplayedState()
    services = ReplayedServices(state)
    containment = Containment()
    texts = []
    try:
        for known in (_plugins(7, containment), _plugins(7)):
            framework = build_framework(_profile(known), 0, known, services)
            guard = _last(framework).guard
            if not hasattr(guard, "observer"):
                guard = ReplayedGuard(_last(framework), services)
            with pytest.raises(PluginFailedError) as failed:
                guard.call("Last", "score_one", _fail)
            texts.append(str(failed.value))
    finally:
        containment.stop()
    assert texts == ["score_one: ValueError: no cost (last.py)"] * 2

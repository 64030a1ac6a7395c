"""All of it together: who is told what is wrong, and what the next process remembers."""

from __future__ import annotations

import queue

import pytest
from msgspec.structs import replace

from plugins.authoring import ABSENT
from scheduler.metrics import Metrics
from scheduler.user_plugins.containment import (
    BreakerRules,
    Containment,
    ContainmentOptions,
    PluginCode,
    PluginFailedError,
    StateDirError,
    add_containment_metrics,
)
from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.plugin_trial import TrialLimits
from tests.fakes.clock import FakeClock

CODE = PluginCode("Cheap", "digest")
OPTIONS = ContainmentOptions(breaker=BreakerRules(failures=2))
GOOD = """
class Cheap:
    def score(self, pod, nodes):
        return nodes.free("cpu")
"""
BAD = GOOD.replace('nodes.free("cpu")', "None")


class Cheap:
    def score(self, pod, nodes):
        return nodes.free("cpu")


@pytest.fixture
def containment():
    made = Containment(OPTIONS)
    yield made
    made.stop()


def fail(containment: Containment, code: PluginCode = CODE) -> None:
    def raises() -> None:
        raise KeyError("rack")

    with pytest.raises(PluginFailedError):
        containment.guard(code).call(code.name, "score", raises)


def test_one_version_of_a_plugin_has_one_guard(containment):
    assert containment.guard(CODE) is containment.guard(replace(CODE))
    assert containment.guard(CODE) is not containment.guard(replace(CODE, digest="changed"))


def test_a_new_version_starts_with_a_clean_record(containment):
    fail(containment)
    fail(containment)
    guard = containment.guard(replace(CODE, digest="changed"))
    assert containment.guard(CODE).call("Cheap", "score", lambda: 7) is ABSENT
    assert guard.call("Cheap", "score", lambda: 7) == 7


def test_trouble_with_code_that_was_replaced_is_over_when_nobody_asks_for_it():
    clock = FakeClock()
    containment = Containment(OPTIONS, clock)
    source = PluginSource.of_text("directory", "/plugins/cheap.py", GOOD)
    old = containment.guard_for(source, Cheap).code
    fail(containment, old)
    fail(containment, old)
    containment.guard_for(replace(source, digest="changed"), Cheap)
    assert containment.troubles()
    clock.advance(OPTIONS.breaker.window_s)
    assert not containment.troubles()
    containment.stop()


def test_trouble_with_code_that_is_switched_off_lasts():
    clock = FakeClock()
    containment = Containment(OPTIONS, clock)
    fail(containment)
    fail(containment)
    clock.advance(10 * OPTIONS.breaker.max_open_s)
    assert containment.troubles()
    containment.stop()


def test_whoever_asked_is_told_of_trouble(containment):
    told: queue.Queue[object] = queue.Queue()
    containment.subscribe(told.put)
    fail(containment)
    assert told.get(timeout=60) == {"Cheap": "fails: score: KeyError: 'rack'"}


def test_failures_are_there_at_a_scrape(containment):
    metrics = Metrics()
    add_containment_metrics(containment, metrics)
    fail(containment)
    fail(containment)
    containment.guard(CODE).call("Cheap", "score", lambda: 7)
    text = metrics.render()[0].decode()
    assert 'berth_plugin_failures_total{plugin="Cheap",kind="raised"} 2' in text
    assert 'berth_plugin_passed_over_total{plugin="Cheap"} 1' in text
    assert 'berth_plugin_breaker_open{plugin="Cheap"} 1' in text


def test_a_folder_belongs_to_one_process(tmp_path):
    first = Containment(replace(OPTIONS, state_dir=tmp_path / "state"))
    with pytest.raises(StateDirError, match="another process is using it"):
        Containment(replace(OPTIONS, state_dir=tmp_path / "state"))
    first.stop()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateDirError, match="file/state: Not a directory"):
        Containment(replace(OPTIONS, state_dir=tmp_path / "file" / "state"))


def test_code_that_was_accepted_is_not_tried_by_the_next_process(tmp_path):
    source = PluginSource.of_text("directory", "/plugins/cheap.py", GOOD)
    patient = TrialLimits(wall_s=60.0, cpu_s=30)
    first = Containment(replace(OPTIONS, state_dir=tmp_path, trial=patient))
    assert first.admit(source) == ""
    first.stop()
    hasty = TrialLimits(wall_s=0.001)
    second = Containment(replace(OPTIONS, state_dir=tmp_path, trial=hasty))
    assert second.admit(source) == ""
    assert "no trial was possible" in second.admit(replace(source, digest="changed"))
    second.stop()


def test_code_that_answers_nonsense_is_refused_with_the_reason():
    source = PluginSource.of_text("directory", "/plugins/cheap.py", BAD)
    containment = Containment(replace(OPTIONS, trial=TrialLimits(wall_s=60.0, cpu_s=30)))
    assert "Cheap: score returned None" in containment.admit(source)
    containment.stop()


def test_a_class_says_itself_what_becomes_of_its_pods():
    class Insists:
        failure_policy = "Fail"

        def filter(self, pod, nodes):
            return None

    code = PluginCode.of(Insists, "digest")
    assert (code.name, code.failure_policy, code.file) == ("Insists", "Fail", __file__)


def test_a_failure_policy_that_nobody_knows_is_a_mistake():
    class Shrugs:
        failure_policy = "Shrug"

    with pytest.raises(ValueError, match="'Shrug', it must be 'Ignore' or 'Fail'"):
        PluginCode.of(Shrugs)

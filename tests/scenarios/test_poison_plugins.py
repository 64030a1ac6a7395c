"""Plugins that misbehave under load, on a real API server."""

from __future__ import annotations

import pytest

from tests.scenarios import poison_plugins
from tests.scenarios.poison_plugins import BAD_PODS, NEVER_RETURNS, POISONS

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def outcome(controlplane_binaries) -> poison_plugins.Outcome:
    return poison_plugins.run()


def test_all_other_pods_are_placed(outcome):
    assert outcome.placed == outcome.pods


def test_the_pods_that_plugins_failed_with_are_placed_once_these_are_passed_over(outcome):
    assert outcome.poisoned_placed == set(POISONS)


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        pytest.param("Raises", "KeyError: 'a rack that nobody has' (raises.py, line 11)"),
        pytest.param("WrongShape", "filter returned an array of shape (5,), it must be (6,)"),
        pytest.param("Allocates", "(allocates.py, line 11)"),
        pytest.param("Mutates", "read-only (mutates.py, line 11)"),
    ],
    ids=lambda value: value if value in POISONS else "",
)
def test_the_pods_event_names_plugin_method_and_line(outcome, plugin, told):
    wanted = f'running "{plugin}" filter plugin: filter: '
    assert any(wanted in text and told in text for text in outcome.events[plugin])


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        pytest.param("Raises", "raised"),
        pytest.param("Sleeps", "slow"),
        pytest.param("WrongShape", "shape"),
        pytest.param("Allocates", "memory"),
        pytest.param("Mutates", "raised"),
    ],
)
def test_failures_are_counted_by_kind(outcome, plugin, kind):
    assert outcome.failures[plugin, kind] >= 1


@pytest.mark.parametrize(
    ("plugin", "kind", "why"),
    [
        pytest.param("Raises", "raised", "filter: KeyError: ", id="raises"),
        pytest.param("Sleeps", "slow", "ms on average, more than its 10 ms", id="sleeps"),
        pytest.param("WrongShape", "shape", "filter returned an array of shape", id="wrong-shape"),
        pytest.param("Allocates", "memory", "filter: Unable to allocate", id="allocates"),
        pytest.param("Mutates", "raised", "read-only", id="mutates"),
    ],
)
def test_each_is_switched_off_and_the_log_says_why(outcome, plugin, kind, why):
    told = outcome.switched_off[plugin]
    assert told[0] == kind
    assert why in told[1]


@pytest.mark.parametrize("plugin", POISONS)
def test_what_is_switched_off_is_not_asked(outcome, plugin):
    assert outcome.passed_over[plugin] >= 1


def test_the_one_that_sleeps_is_not_waited_for_once_it_is_switched_off(outcome):
    assert outcome.failures["Sleeps", "slow"] < BAD_PODS["Sleeps"]


def test_no_other_thread_comes_to_harm(outcome):
    assert not outcome.harmed


def test_a_call_that_never_returns_ends_the_process(outcome):
    assert outcome.ended_by_hanging


def test_the_next_process_leaves_that_plugin_out_and_says_so(outcome):
    assert f'"plugin":"{NEVER_RETURNS}"' in outcome.told_after_restart.replace('": "', '":"')
    assert "filter did not come back within 10 s" in outcome.told_after_restart


def test_then_the_pods_that_it_hung_with_are_placed(outcome):
    assert any(name.startswith("bad-again-") for name in outcome.placed_after_restart)

"""The README's plugin, as a newcomer would type it in."""

from __future__ import annotations

import pytest

from tests.scenarios import readme_plugin

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def outcome(controlplane_binaries) -> readme_plugin.Outcome:
    # That it ends at all says that each change took effect.
    return readme_plugin.run()


def test_without_it_pods_go_to_many_nodes(outcome):
    assert len(set(outcome.before)) > readme_plugin.NODES / 2


def test_it_changes_placements_without_a_restart(outcome):
    assert outcome.restarts == 0


def test_broken_code_leaves_the_last_good_version(outcome):
    assert set(outcome.after_breaking) == {readme_plugin.CHEAP}


def test_what_is_at_work_is_noted_where_the_next_process_finds_it(outcome):
    assert "plugin-at-work" in outcome.noted


def test_it_has_no_more_than_ten_lines():
    lines = readme_plugin.readme_plugin().splitlines()
    assert len([line for line in lines if line]) <= 10

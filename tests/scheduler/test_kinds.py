"""The table of kinds is whole, and whoever follows it has each row."""

from __future__ import annotations

from typing import Any

import pytest

from cache.known import Known
from plugins.framework.cluster_events import ALL_EVENTS, Resource
from plugins.registry import PLUGINS
from scheduler import kinds
from scheduler.config import default_config, effective_profiles
from scheduler.kinds import WATCHED, WatchedKind
from tests.profiles import build_profiles
from tests.scheduler.parts import NoBinding

ROWS = [pytest.param(kind, id=kind.name) for kind in WATCHED]


def test_each_kind_that_is_described_is_in_the_table_once() -> None:
    described = [each for each in vars(kinds).values() if isinstance(each, WatchedKind)]
    assert sorted(kind.path for kind in described) == sorted(kind.path for kind in WATCHED)


@pytest.mark.parametrize("attribute", ["name", "path", "struct"])
def test_no_two_rows_are_alike(attribute: str) -> None:
    values = [getattr(kind, attribute) for kind in WATCHED]
    assert len(set(values)) == len(values)


def test_no_two_kinds_of_a_group_share_a_name() -> None:
    values = [(kind.group, kind.kind) for kind in WATCHED]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("kind", ROWS)
def test_a_name_is_that_of_the_resource_or_as_kubectl_takes_it(kind: WatchedKind[Any]) -> None:
    assert kind.name in {kind.resource, f"{kind.resource}.{kind.group}"}


@pytest.mark.parametrize("kind", ROWS)
def test_the_path_is_that_of_the_best_version(kind: WatchedKind[Any]) -> None:
    assert kind.in_versions()[0] == kind
    paths = [each.path for each in kind.in_versions()]
    assert len(set(paths)) == len(paths) == max(len(kind.versions), 1)


@pytest.mark.parametrize("kind", ROWS)
def test_only_what_berth_can_do_without_may_appear(kind: WatchedKind[Any]) -> None:
    assert kind.is_optional or not kind.can_appear


@pytest.mark.parametrize("kind", ROWS)
def test_the_path_ends_with_the_resource(kind: WatchedKind[Any]) -> None:
    assert kind.path == f"/{'apis' if kind.group else 'api'}/{kind.group_version}/{kind.resource}"


@pytest.mark.parametrize("kind", ROWS)
def test_only_pods_and_nodes_go_nowhere_else(kind: WatchedKind[Any]) -> None:
    if kind.goes_to is None:
        assert kind.name in {"pods", "nodes"}
    else:
        assert callable(kind.goes_to(Known.nothing()))


def test_what_plugins_register_for_is_watched() -> None:
    """A hint for an event that no watch brings would never be asked."""
    watched = {kind.event for kind in WATCHED} | {ALL_EVENTS.resource}
    of_pods = {Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD}
    profiles = build_profiles(effective_profiles(default_config("berth")), PLUGINS, NoBinding())
    registered = {
        registration.event.resource
        for registrations in profiles.registrations("berth").values()
        for registration in registrations
    }
    assert registered
    assert registered <= watched | of_pods

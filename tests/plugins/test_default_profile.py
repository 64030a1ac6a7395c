from __future__ import annotations

from plugins import names
from plugins.default_profile import DEFAULT_PROFILE, GUARDS, KUBE_SCHEDULER_PROFILE, MISSING
from plugins.framework.interfaces import BindPlugin, QueueSortPlugin, ScorePlugin
from plugins.registry import PLUGINS


def test_what_is_missing_is_what_the_registry_lacks() -> None:
    assert list(MISSING) == [
        entry.name for entry in KUBE_SCHEDULER_PROFILE if entry.name not in PLUGINS
    ]


def test_the_profile_is_kube_schedulers_as_far_as_it_exists_and_then_the_guards() -> None:
    existing = [entry for entry in KUBE_SCHEDULER_PROFILE if entry.name in PLUGINS]
    assert list(DEFAULT_PROFILE) == [*existing, *GUARDS]


def test_dynamic_resources_come_right_before_preemption() -> None:
    order = [entry.name for entry in KUBE_SCHEDULER_PROFILE]
    assert order.index(names.DYNAMIC_RESOURCES) + 1 == order.index(names.DEFAULT_PREEMPTION)


def test_a_plugin_has_a_weight_exactly_if_it_scores() -> None:
    for entry in DEFAULT_PROFILE:
        assert (entry.weight > 0) == issubclass(PLUGINS[entry.name], ScorePlugin), entry.name


def test_a_profile_can_be_made_of_it() -> None:
    classes = [PLUGINS[entry.name] for entry in DEFAULT_PROFILE]
    assert len(set(classes)) == len(classes)
    assert sum(issubclass(cls, QueueSortPlugin) for cls in classes) == 1
    assert any(issubclass(cls, BindPlugin) for cls in classes)


def test_names_of_our_own_are_nobody_elses() -> None:
    assert not names.OWN & names.IN_TREE
    assert set(PLUGINS) <= names.IN_TREE | names.OWN

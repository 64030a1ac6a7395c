from __future__ import annotations

from plugins import names
from plugins.default_profile import KUBE_SCHEDULER_PROFILE
from plugins.framework.interfaces import BindPlugin, QueueSortPlugin, ScorePlugin
from plugins.registry import PLUGINS

DEFAULT_PROFILE = [e for e in KUBE_SCHEDULER_PROFILE if e.name in PLUGINS]
"""What a profile runs here when its configuration says nothing."""


def test_of_kube_schedulers_profile_no_plugin_is_missing() -> None:
    assert {entry.name for entry in KUBE_SCHEDULER_PROFILE} <= set(PLUGINS)


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


def test_plugins_that_kube_scheduler_does_not_have() -> None:
    assert PLUGINS.keys() - names.IN_TREE == {"NamespaceFairSort"}

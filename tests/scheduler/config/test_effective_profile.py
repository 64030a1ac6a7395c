from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plugins.default_profile import KUBE_SCHEDULER_PROFILE
from plugins.framework.interfaces import Plugin, PreScorePlugin, QueueSortPlugin
from plugins.framework.status import SUCCESS, Status
from plugins.node_resources_fit.args import NodeResourcesFitArgs
from plugins.registry import PLUGINS
from scheduler.config import (
    ConfigError,
    Extender,
    ManagedResource,
    default_config,
    effective_profiles,
    leave_to_extenders,
    parse_config,
)
from scheduler.config.extension_points import POINTS, points_of
from tests.scheduler.config.documents import (
    config_of,
    config_of_profile,
    mistakes_of,
    mistakes_of_profile,
    plugin_set,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class NewestFirst(QueueSortPlugin):
    name = "NewestFirst"

    def sort_key(self, pod: Any, since_s: float) -> tuple[float, ...]:
        return (-since_s,)


class Watcher(PreScorePlugin):
    name = "Watcher"

    def pre_score(self, state: Any, info: Any, nodes: Any) -> Status:
        return SUCCESS


class SortArgs(msgspec.Struct, frozen=True):
    by: str = ""


class SortedBy(NewestFirst):
    name = "SortedBy"
    args_type = SortArgs


MORE: Mapping[str, type[Plugin]] = {
    **PLUGINS,
    **{cls.name: cls for cls in (NewestFirst, Watcher, SortedBy)},
}


def sorted_by(name: str, args: Any = None) -> dict[str, Any]:
    return {
        "plugins": {"queueSort": plugin_set([name], ["*"])},
        "pluginConfig": [{"name": name, "args": args}],
    }


def mistakes_with_more(*profiles: dict[str, Any]) -> list[str]:
    named = [{"schedulerName": f"p{i}", **profile} for i, profile in enumerate(profiles)]
    try:
        parse_config(text_of(profiles=named), "", MORE)
    except ConfigError as error:
        return [str(mistake) for mistake in error.mistakes]
    return []


def test_the_default_configuration_comes_to_the_default_profile() -> None:
    (profile,) = effective_profiles(default_config("mine"))
    assert profile.scheduler_name == "mine"
    default = [e for e in KUBE_SCHEDULER_PROFILE if e.name in PLUGINS]
    for point in POINTS:
        expected = [e.name for e in default if point in points_of(PLUGINS[e.name])]
        assert list(profile.points[point]) == expected
    weights = {entry.name: entry.weight or 1 for entry in KUBE_SCHEDULER_PROFILE}
    assert dict(profile.score_weights) == {n: weights[n] for n in profile.points["score"]}
    assert dict(profile.args) == {}


def test_every_point_is_there() -> None:
    (profile,) = effective_profiles(default_config())
    assert tuple(profile.points) == tuple(POINTS)


@pytest.mark.parametrize(
    ("of_all", "of_profile", "effective"),
    [
        pytest.param(None, None, 0, id="absent-means-all"),
        pytest.param(30, None, 30, id="of-all-profiles"),
        pytest.param(30, 70, 70, id="of-the-profile"),
        pytest.param(30, 0, 0, id="zero-of-the-profile"),
    ],
)
def test_percentage_of_nodes(of_all: int | None, of_profile: int | None, effective: int) -> None:
    config = config_of(
        percentageOfNodesToScore=of_all, profiles=[{"percentageOfNodesToScore": of_profile}]
    )
    assert effective_profiles(config)[0].percentage_of_nodes_to_score == effective


def test_arguments_are_decoded() -> None:
    args = {"ignoredResources": ["example.com/a"], "kind": "NodeResourcesFitArgs"}
    config = config_of_profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    (profile,) = effective_profiles(config)
    assert profile.args == {
        "NodeResourcesFit": NodeResourcesFitArgs(
            kind="NodeResourcesFitArgs", ignored_resources=("example.com/a",)
        )
    }


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"name": "NodeName", "args": {"a": 1}}, id="of-a-plugin-that-takes-none"),
        pytest.param({"name": "Nobodys", "args": {"a": 1}}, id="of-a-plugin-nobody-knows"),
        pytest.param({"name": "GangScheduling", "args": {}}, id="of-a-plugin-not-there"),
        pytest.param({"name": "ImageLocality", "args": None}, id="null"),
    ],
)
def test_arguments_that_nobody_takes_are_left_out(entry: dict[str, Any]) -> None:
    (profile,) = effective_profiles(config_of_profile(pluginConfig=[entry]))
    assert dict(profile.args) == {}


def test_arguments_of_a_plugin_that_does_not_run_are_left_out() -> None:
    config = config_of_profile(
        plugins={"multiPoint": plugin_set(disabled=["NodeResourcesFit"])},
        pluginConfig=[{"name": "NodeResourcesFit", "args": {}}],
    )
    assert dict(effective_profiles(config)[0].args) == {}


@pytest.mark.parametrize(
    ("point", "plugins", "mistake"),
    [
        pytest.param(
            "score",
            plugin_set(["ImageLocality", "ImageLocality"]),
            "score.enabled[1].name: 'ImageLocality' stands there twice",
            id="twice",
        ),
        pytest.param(
            "multiPoint",
            plugin_set(["NodeResourceFit"]),
            "multiPoint.enabled[0].name: there is no plugin 'NodeResourceFit'; "
            "did you mean NodeResourcesFit?",
            id="misspelt",
        ),
        pytest.param(
            "score",
            plugin_set([""]),
            "score.enabled[0].name: there is no plugin ''",
            id="no-name",
        ),
        pytest.param(
            "bind",
            plugin_set(["NodeName"]),
            "bind.enabled[0].name: NodeName does not serve bind, only filter",
            id="at-a-point-that-it-does-not-serve",
        ),
        pytest.param(
            "filter",
            plugin_set(["CinderLimits"]),
            "filter.enabled[0].name: CinderLimits no longer exists; NodeVolumeLimits counts the "
            "volumes of every driver",
            id="removed",
        ),
        pytest.param(
            "multiPoint",
            plugin_set([("NodeResourcesFit", -1)]),
            "multiPoint.enabled[0].weight: must not be negative, but is -1",
            id="negative-weight",
        ),
        pytest.param(
            "queueSort",
            plugin_set(disabled=["*"]),
            "queueSort: a profile needs exactly one queueSort plugin, it has none",
            id="no-queue-sort",
        ),
        pytest.param(
            "bind",
            plugin_set(disabled=["DefaultBinder"]),
            "bind: a profile needs a bind plugin, it has none",
            id="no-binder",
        ),
        pytest.param(
            "placementScore",
            plugin_set(["Nobodys"]),
            "placementScore.enabled[0].name: there is no plugin 'Nobodys'",
            id="unknown-where-nothing-is-served",
        ),
    ],
)
def test_a_plugin_set_that_cannot_be(point: str, plugins: Any, mistake: str) -> None:
    assert mistakes_of_profile(plugins={point: plugins}) == [f"profiles[0].plugins.{mistake}"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("InterPodAffinity", id="of-the-default-profile"),
        pytest.param("GangScheduling", id="of-kube-scheduler"),
    ],
)
def test_plugins_of_kube_scheduler_may_be_named(name: str) -> None:
    assert mistakes_of_profile(plugins={"multiPoint": plugin_set([(name, 5)])}) == []


def test_two_queue_sort_plugins_are_one_too_many() -> None:
    profile = {"plugins": {"queueSort": plugin_set(["NewestFirst"])}}
    assert mistakes_with_more(profile) == [
        "profiles[0].plugins.queueSort: a profile needs exactly one queueSort plugin, "
        "it has PrioritySort, NewestFirst"
    ]


def test_profiles_sort_alike() -> None:
    assert mistakes_with_more({}, sorted_by("NewestFirst")) == [
        "profiles[1].plugins.queueSort: must be the same in all profiles: "
        "PrioritySort, not NewestFirst"
    ]


def test_profiles_sort_alike_by_their_arguments() -> None:
    profiles = [sorted_by("SortedBy", {"by": by}) for by in ("age", "age", "size")]
    assert mistakes_with_more(*profiles) == [
        "profiles[2].pluginConfig: the arguments of SortedBy must be the same in all profiles"
    ]


def test_profiles_may_say_the_same_in_different_words() -> None:
    explicit = {"plugins": {"queueSort": plugin_set(["PrioritySort"], ["*"])}}
    assert mistakes_with_more({}, explicit) == []


def test_mistakes_of_all_profiles_are_found() -> None:
    bad = {"plugins": {"filter": plugin_set(["Nobodys"])}}
    found = mistakes_of(profiles=[{"schedulerName": "a", **bad}, {"schedulerName": "b", **bad}])
    assert [line.split(".")[0] for line in found] == ["profiles[0]", "profiles[1]"]


def test_a_plugin_of_somebodys_own_takes_its_place() -> None:
    profiles = [{"schedulerName": "a", "plugins": {"multiPoint": plugin_set(["Watcher"])}}]
    config = parse_config(text_of(profiles=profiles), "", MORE)
    (profile,) = effective_profiles(config, MORE)
    assert profile.points["preScore"][-1] == "Watcher"


def test_a_plugin_of_somebodys_own_that_takes_no_arguments_gets_none() -> None:
    assert mistakes_with_more({"pluginConfig": [{"name": "Watcher", "args": {"a": 1}}]}) == [
        "profiles[0].pluginConfig[0].args: Watcher takes no arguments"
    ]


FPGA = Extender("http://127.0.0.1", managed_resources=(ManagedResource("example.com/fpga", True),))
GPU = Extender("http://127.0.0.1", managed_resources=(ManagedResource("example.com/gpu"),))


def test_what_extenders_judge_alone_is_not_checked_here() -> None:
    args = {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["example.org"]}
    config = config_of_profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    (profile,) = leave_to_extenders(effective_profiles(config), [GPU, FPGA])
    assert profile.args["NodeResourcesFit"] == NodeResourcesFitArgs(
        ignored_resources=("example.com/fpga",), ignored_resource_groups=("example.org",)
    )


def test_it_is_not_checked_where_no_arguments_are_given_either() -> None:
    (profile,) = leave_to_extenders(effective_profiles(default_config()), [FPGA])
    assert profile.args == {
        "NodeResourcesFit": NodeResourcesFitArgs(ignored_resources=("example.com/fpga",))
    }


def test_extenders_that_judge_nothing_alone_change_nothing() -> None:
    profiles = effective_profiles(default_config())
    assert leave_to_extenders(profiles, [GPU]) == profiles

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from plugins.framework.args import ArgsError
from plugins.framework.interfaces import Plugin
from plugins.registry import PLUGINS
from scheduler.config.file_profile import PluginConfig
from scheduler.config.plugin_config import check_plugin_config
from tests.scheduler.config.documents import (
    API_VERSION,
    config_of_profile,
    mistakes_of_profile,
)

ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def mistakes_of_args(name: str, args: Any) -> list[str]:
    """Return what is wrong with arguments of a plugin, each path from ``args`` on."""
    _, found = check_plugin_config([PluginConfig(name, args)], PLUGINS, "")
    return [str(each).removeprefix("[0].args").lstrip(".") for each in found]


def constraints(**fields: Any) -> dict[str, Any]:
    return {"defaultingType": "List", "defaultConstraints": [{**ZONE, **fields}]}


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        pytest.param("DefaultPreemption", {}, id="preemption-defaults"),
        pytest.param("DefaultPreemption", {"minCandidateNodesAbsolute": 0}, id="preemption-share"),
        pytest.param(
            "DefaultPreemption", {"minCandidateNodesPercentage": 0}, id="preemption-count"
        ),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 0}, id="affinity-no-weight"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 100}, id="affinity-most-weight"),
        pytest.param("NodeAffinity", {"addedAffinity": None}, id="node-affinity-null"),
        pytest.param("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}}, id="fit"),
        pytest.param("PodTopologySpread", {"defaultConstraints": []}, id="spread-no-constraints"),
        pytest.param("PodTopologySpread", constraints(), id="spread-list"),
        pytest.param(
            "PodTopologySpread", constraints(labelSelector=None), id="spread-null-selector"
        ),
        pytest.param("PodTopologySpread", constraints(minDomains=2), id="spread-min-domains"),
        pytest.param("VolumeBinding", {"bindTimeoutSeconds": 0}, id="volumes-do-not-wait"),
        pytest.param("DynamicResources", {"filterTimeout": "0s"}, id="devices-no-limit"),
        pytest.param("DynamicResources", {"bindingTimeout": "1s"}, id="devices-shortest"),
        pytest.param(
            "VolumeBinding", {"apiVersion": API_VERSION, "kind": "VolumeBindingArgs"}, id="kind"
        ),
        pytest.param("VolumeBinding", {"apiVersion": "", "kind": None}, id="empty-kind"),
        pytest.param("NodeName", {"whatever": 1}, id="a-plugin-that-takes-none"),
        pytest.param("Nobodys", [1, {"a": None}], id="a-plugin-that-nobody-knows"),
        pytest.param("VolumeZone", {"whatever": 1}, id="a-plugin-that-is-not-there"),
    ],
)
def test_arguments_that_will_do(plugin: str, args: Any) -> None:
    assert mistakes_of_args(plugin, args) == []


@pytest.mark.parametrize(
    ("plugin", "args", "mistakes"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                "minCandidateNodesPercentage: must be from 0 to 100, not 101",
                "minCandidateNodesAbsolute: must be at least 0, not -1",
            ],
            id="preemption-out-of-range",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            ["minCandidateNodesPercentage: must not be 0 together with minCandidateNodesAbsolute"],
            id="preemption-nothing",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: must be from 0 to 100, not 101"],
            id="affinity-weight",
        ),
        pytest.param(
            "NodeAffinity",
            {"addedAffinity": {"nodeSelectorTerms": []}},
            ["addedAffinity.nodeSelectorTerms: unknown field"],
            id="node-affinity-field",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [
                "scoringStrategy.requestedToCapacityRatio: must be given when the type is "
                "RequestedToCapacityRatio"
            ],
            id="fit-ratio-without-shape",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"weight": 1}]}},
            ["scoringStrategy.resources[0].name: is required"],
            id="fit-resource-without-name",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["example.com/a"]},
            ["ignoredResourceGroups[0]: the resource group 'example.com/a' must not contain '/'"],
            id="fit-group-with-slash",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            ["resources[0].weight: must be 1, not 2"],
            id="balance-weight",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "Own"},
            ["defaultingType: 'Own' is none of List, System"],
            id="spread-type",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": [ZONE]},
            ["defaultingType: must be List where there are defaultConstraints"],
            id="spread-system-with-constraints",
        ),
        pytest.param(
            "PodTopologySpread",
            constraints(maxSkew=0),
            ["defaultConstraints[0].maxSkew: must be more than 0, not 0"],
            id="spread-no-skew",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [{}]},
            [
                "defaultConstraints[0].maxSkew: must be more than 0, not 0",
                "defaultConstraints[0].topologyKey: is required",
                "defaultConstraints[0].whenUnsatisfiable: is required",
            ],
            id="spread-empty-constraint",
        ),
        pytest.param(
            "PodTopologySpread",
            constraints(topologyKey="a b", whenUnsatisfiable="Maybe"),
            [
                "defaultConstraints[0].topologyKey: 'a b' cannot be the key of a label",
                "defaultConstraints[0].whenUnsatisfiable: 'Maybe' is none of DoNotSchedule, "
                "ScheduleAnyway",
            ],
            id="spread-nonsense",
        ),
        pytest.param(
            "PodTopologySpread",
            constraints(labelSelector={}),
            [
                "defaultConstraints[0].labelSelector: must not be given: each pod's own Services "
                "and sets decide"
            ],
            id="spread-selector",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [ZONE, {**ZONE, "maxSkew": 2}]},
            ["defaultConstraints[1]: zone with ScheduleAnyway stands there twice"],
            id="spread-repeated",
        ),
        pytest.param(
            "PodTopologySpread",
            constraints(maxskew=1),
            ["defaultConstraints[0].maxskew: unknown field; did you mean maxSkew?"],
            id="spread-misspelt",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": -1, "shape": []},
            [
                "bindTimeoutSeconds: must be at least 0, not -1",
                "shape: is only known with the feature gate StorageCapacityScoring, which is off",
            ],
            id="volumes",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "-1s", "bindingTimeout": "999ms"},
            [
                "filterTimeout: must be at least 0s, not -1s",
                "bindingTimeout: must be at least 1s, not 999ms",
            ],
            id="devices",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": 10},
            ["filterTimeout: must be a duration like '1m30s', not 10"],
            id="devices-number",
        ),
        pytest.param(
            "InterPodAffinity",
            {"kind": "NodeAffinityArgs", "apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            [
                f"apiVersion: must be {API_VERSION}, not 'kubescheduler.config.k8s.io/v1beta3'",
                "kind: must be InterPodAffinityArgs, not 'NodeAffinityArgs'",
            ],
            id="kind",
        ),
        pytest.param(
            "NodeResourcesFit", ["a"], [": must be a mapping, not a list"], id="no-mapping"
        ),
    ],
)
def test_arguments_that_will_not_do(plugin: str, args: Any, mistakes: list[str]) -> None:
    assert mistakes_of_args(plugin, args) == mistakes


@pytest.mark.parametrize(
    ("entries", "mistake"),
    [
        pytest.param(
            [{"name": "NodeName"}, {"name": "NodeName"}],
            "[1].name: 'NodeName' stands there twice",
            id="twice",
        ),
        pytest.param([{"name": ""}], "[0].name: must not be empty", id="no-name"),
        pytest.param([{"args": {}}], "[0].name: is required", id="missing-name"),
        pytest.param(
            [{"name": "GCEPDLimits"}],
            "[0].name: GCEPDLimits no longer exists; NodeVolumeLimits counts the volumes of every "
            "driver",
            id="removed",
        ),
        pytest.param(
            [{"name": "NodeName", "arguments": {}}],
            "[0].arguments: unknown field",
            id="unknown-field",
        ),
    ],
)
def test_entries_that_will_not_do(entries: list[dict[str, Any]], mistake: str) -> None:
    assert mistakes_of_profile(pluginConfig=entries) == [f"profiles[0].pluginConfig{mistake}"]


def test_arguments_that_nobody_knows_are_kept_and_cannot_be_changed() -> None:
    config = config_of_profile(pluginConfig=[{"name": "Nobodys", "args": {"a": [{"b": 1}]}}])
    args: Any = config.profiles[0].plugin_config[0].args
    assert args == MappingProxyType({"a": (MappingProxyType({"b": 1}),)})
    assert isinstance(args, MappingProxyType)


class OwnArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    top: int = 0


class Own(Plugin):
    name = "Own"
    args_type = OwnArgs

    def __init__(self, args: msgspec.Struct | None, handle: Any) -> None:
        super().__init__(args, handle)
        assert isinstance(args, OwnArgs)
        if args.top < 0:
            raise ArgsError("top", "must not be negative")
        if args.top > 9:
            raise ArgsError("", "is too much")


@pytest.mark.parametrize(
    ("args", "mistakes"),
    [
        pytest.param({"top": 3}, [], id="good"),
        pytest.param(None, [], id="none"),
        pytest.param({"top": "x"}, ["a.args.top: must be a whole number, not 'x'"], id="type"),
        pytest.param({"top": -1}, ["a.args.top: must not be negative"], id="refused-by-it"),
        pytest.param({"top": 10}, ["a.args: is too much"], id="refused-as-a-whole"),
        pytest.param({"kind": "X"}, ["a.args.kind: unknown field"], id="kind-is-its-own-affair"),
    ],
)
def test_a_plugin_of_somebodys_own_says_what_it_takes(args: Any, mistakes: list[str]) -> None:
    plugins: dict[str, type[Plugin]] = {**PLUGINS, "Own": Own}
    _, found = check_plugin_config([PluginConfig("Own", args)], plugins, "a")
    assert [str(each).replace("a[0]", "a") for each in found] == mistakes


class Curious(Own):
    name = "Curious"

    def __init__(self, args: msgspec.Struct | None, handle: Any) -> None:
        super().__init__(args, handle)
        handle.bind_pod(None, "node")


def test_a_constructor_that_uses_its_handle_is_told_not_to() -> None:
    with pytest.raises(AttributeError, match=r"must not use its handle \(bind_pod\)"):
        check_plugin_config([PluginConfig("Curious", {})], {"Curious": Curious}, "a")

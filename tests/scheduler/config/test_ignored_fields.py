from __future__ import annotations

from typing import Any

import pytest

from scheduler.config import default_config, ignored_fields
from tests.scheduler.config.documents import config_of, config_of_profile, plugin_set

PROTOBUF = "application/vnd.kubernetes.protobuf"


def paths_ignored(**fields: Any) -> list[str]:
    return [line.partition(" (")[0] for line in ignored_fields(config_of(**fields))]


def test_the_built_in_configuration_asks_for_nothing() -> None:
    assert ignored_fields(default_config()) == []


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"percentageOfNodesToScore": 50, "podMaxBackoffSeconds": 60}, id="honoured"),
        pytest.param(
            {"enableProfiling": False, "delayCacheUntilActive": False}, id="what-happens-anyway"
        ),
        pytest.param({"leaderElection": {"leaderElect": False}}, id="no-election"),
        pytest.param(
            {"leaderElection": {"leaderElect": True, "leaseDuration": "60s"}}, id="election"
        ),
        pytest.param(
            {"clientConnection": {"qps": 5, "burst": 9, "contentType": "application/json"}},
            id="connection",
        ),
        pytest.param({"clientConnection": {"acceptContentTypes": ""}}, id="no-content-types"),
        pytest.param({"extenders": []}, id="no-extenders"),
    ],
)
def test_what_happens_is_not_ignored(fields: dict[str, Any]) -> None:
    assert paths_ignored(**fields) == []


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        pytest.param({"parallelism": 16}, ["parallelism"], id="parallelism"),
        pytest.param({"enableProfiling": True}, ["enableProfiling"], id="profiling"),
        pytest.param(
            {"enableProfiling": False, "enableContentionProfiling": True},
            ["enableContentionProfiling"],
            id="contention-profiling",
        ),
        pytest.param({"delayCacheUntilActive": True}, ["delayCacheUntilActive"], id="delay"),
        pytest.param(
            {"percentageOfPlacementsToScore": 5}, ["percentageOfPlacementsToScore"], id="placements"
        ),
        pytest.param(
            {"clientConnection": {"contentType": PROTOBUF, "acceptContentTypes": PROTOBUF}},
            ["clientConnection.contentType", "clientConnection.acceptContentTypes"],
            id="content-types",
        ),
        pytest.param(
            {"clientConnection": {"burst": 9}}, ["clientConnection.burst"], id="burst-without-qps"
        ),
        pytest.param(
            {"leaderElection": {"resourceName": "kube-scheduler"}},
            ["leaderElection.resourceName"],
            id="foreign-lease",
        ),
    ],
)
def test_what_does_not_happen_is_named(fields: dict[str, Any], paths: list[str]) -> None:
    assert paths_ignored(**fields) == paths


@pytest.mark.parametrize(
    ("profile", "line"),
    [
        pytest.param(
            {"plugins": {"multiPoint": plugin_set(["GangScheduling", "ImageLocality"])}},
            "plugins.multiPoint.enabled (not there yet: GangScheduling)",
            id="plugin-not-there",
        ),
        pytest.param(
            {"plugins": {"score": plugin_set(disabled=["ImageLocalty"])}},
            "plugins.score.disabled[0] (there is no plugin 'ImageLocalty'; "
            "did you mean ImageLocality?)",
            id="nothing-disabled",
        ),
        pytest.param(
            {"plugins": {"placementScore": plugin_set(["NodeResourcesFit"])}},
            "plugins.placementScore (pods are placed one by one)",
            id="placements",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "GangScheduling", "args": {"a": 1}}]},
            "pluginConfig[0].args (not there yet: GangScheduling)",
            id="arguments-of-a-plugin-not-there",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeName", "args": {"a": 1}}]},
            "pluginConfig[0].args (NodeName takes none)",
            id="arguments-of-a-plugin-that-takes-none",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "Nobodys", "args": {"a": 1}}]},
            "pluginConfig[0].args (there is no plugin 'Nobodys')",
            id="arguments-of-a-plugin-nobody-knows",
        ),
        pytest.param(
            {"percentageOfPlacementsToScore": 5},
            "percentageOfPlacementsToScore (pods are placed one by one)",
            id="percentage-of-placements",
        ),
    ],
)
def test_what_a_profile_does_not_get_is_named(profile: dict[str, Any], line: str) -> None:
    assert ignored_fields(config_of_profile(**profile)) == [f"profiles[0].{line}"]


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param({"plugins": {"score": plugin_set(disabled=["*"])}}, id="all-disabled"),
        pytest.param(
            {"plugins": {"multiPoint": plugin_set(disabled=["VolumeZone"])}},
            id="a-plugin-not-there-disabled",
        ),
        pytest.param({"pluginConfig": [{"name": "NodeName", "args": {}}]}, id="no-arguments"),
        pytest.param(
            {"pluginConfig": [{"name": "NodeAffinity", "args": {}}]}, id="arguments-that-count"
        ),
    ],
)
def test_what_a_profile_gets_is_not(profile: dict[str, Any]) -> None:
    assert ignored_fields(config_of_profile(**profile)) == []

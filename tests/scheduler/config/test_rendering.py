from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plugins.registry import PLUGINS
from scheduler.config import (
    SchedulerConfig,
    default_config,
    effective_profiles,
    parse_config,
    render_effective,
)
from scheduler.config.extension_points import POINTS, points_of
from scheduler.config.file_profile import ALL_PLUGINS
from tests.scheduler.config.documents import config_of, config_of_profile, plugin_set

SERVING = {
    point: sorted(name for name, cls in PLUGINS.items() if point in points_of(cls))
    for point in POINTS
}


def read_back(config: SchedulerConfig) -> SchedulerConfig:
    return parse_config(render_effective(config), "rendered")


def rendered(config: SchedulerConfig) -> Any:
    return yaml.safe_load(render_effective(config))


def sets_of(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    entries = st.sampled_from(names) | st.tuples(st.sampled_from(names), st.integers(0, 9))
    return st.builds(
        plugin_set,
        st.lists(entries, max_size=4, unique_by=lambda e: e if isinstance(e, str) else e[0]),
        st.lists(st.sampled_from([*names, ALL_PLUGINS]), max_size=3),
    )


plugins_of_a_profile = st.fixed_dictionaries(
    {},
    optional={
        "multiPoint": sets_of(sorted(PLUGINS)),
        **{point: sets_of(names) for point, names in SERVING.items() if names},
    },
).map(
    # A profile must sort its queue and bind, whatever else it does.
    lambda sets: {
        **sets,
        "queueSort": plugin_set(["PrioritySort"], [ALL_PLUGINS]),
        "bind": plugin_set(["DefaultBinder"]),
    }
)


@given(plugins_of_a_profile)
def test_what_is_rendered_reads_back_as_the_same(plugins: dict[str, Any]) -> None:
    config = config_of_profile(plugins=plugins, percentageOfNodesToScore=7)
    (before,) = effective_profiles(config)
    (after,) = effective_profiles(read_back(config))
    assert after.points == before.points
    assert after.score_weights == before.score_weights
    assert after.percentage_of_nodes_to_score == before.percentage_of_nodes_to_score


def test_what_is_rendered_renders_as_the_same() -> None:
    config = config_of(
        clientConnection={"kubeconfig": "k", "qps": 5},
        leaderElection={"leaseDuration": "1m", "leaderElect": False},
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 3}],
        extenders=[
            {
                "urlPrefix": "http://a",
                "httpTimeout": "300ms",
                "managedResources": [{"name": "a.com/b"}],
                "tlsConfig": {"caData": "aGk="},
            }
        ],
    )
    once = render_effective(config)
    twice = render_effective(read_back(config))
    assert once.partition("apiVersion")[2] == twice.partition("apiVersion")[2]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("y", id="a-word-for-true"),
        pytest.param("1e3", id="a-number"),
        pytest.param("null", id="a-word-for-null"),
        pytest.param("1:30", id="a-number-in-base-60"),
        pytest.param("a: b # c", id="punctuation"),
        pytest.param("schöpfer\n", id="beyond-ascii"),
        pytest.param("~", id="tilde"),
        pytest.param("x" * 300, id="long"),
        pytest.param(" spaced out ", id="spaces"),
    ],
)
def test_any_name_reads_back(name: str) -> None:
    assert read_back(default_config(name)).profiles[0].scheduler_name == name


def test_every_default_is_written_out() -> None:
    data = rendered(default_config())
    assert data["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "berth",
        "resourceNamespace": "kube-system",
    }
    args = {entry["name"]: entry["args"] for entry in data["profiles"][0]["pluginConfig"]}
    assert args["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }


def test_limits_that_do_not_hold_are_not_written() -> None:
    assert rendered(default_config())["clientConnection"] == {"kubeconfig": ""}


def test_weights_stand_at_score_only() -> None:
    (profile,) = rendered(default_config())["profiles"]
    weighted = {
        point: [entry["name"] for entry in plugins.get("enabled", ()) if "weight" in entry]
        for point, plugins in profile["plugins"].items()
    }
    (effective,) = effective_profiles(default_config())
    assert {point for point, names in weighted.items() if names} == {"score"}
    assert weighted["score"] == list(effective.points["score"])


def test_private_keys_are_not_shown() -> None:
    extender = {"urlPrefix": "http://a", "tlsConfig": {"keyData": "c2VjcmV0", "certData": "aGk="}}
    text = render_effective(config_of(extenders=[extender]))
    assert "c2VjcmV0" not in text
    assert "keyData" not in text
    assert "certData: aGk=" in text


def test_what_is_ignored_stands_in_comments() -> None:
    text = render_effective(config_of(parallelism=4, delayCacheUntilActive=True))
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert [line.split(" (")[0] for line in comments] == [
        "# accepted and ignored:",
        "#   parallelism",
        "#   delayCacheUntilActive",
    ]


def test_a_name_cannot_break_out_of_a_comment() -> None:
    config = config_of_profile(plugins={"score": plugin_set(disabled=["x\nprofiles: []"])})
    assert read_back(config).profiles[0].scheduler_name == "berth"

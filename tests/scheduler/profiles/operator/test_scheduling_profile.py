"""What a spec may say, and how a mistake in it is told."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from scheduler.profiles import Mode, ProfileVersion, PythonSource, ShadowOptions
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.scheduling_profile import read_version
from tests.scheduler.profiles.operator.objects import profile

ALLOWED = OperatorOptions(
    enabled=True,
    allow_python=True,
    namespace="berth-system",
    extender_urls=("http://extender",),
)


def read(spec: Any, options: OperatorOptions = ALLOWED) -> ProfileVersion:
    return read_version(replace(profile("gpu", uid="u", generation=7), spec=spec), options)


@pytest.mark.parametrize(
    ("spec", "mistake"),
    [
        pytest.param(None, "spec.schedulerName: is required", id="nothing"),
        pytest.param([], "spec: must be a mapping, not a list", id="no-mapping"),
        pytest.param({"schedulerName": ""}, "spec.schedulerName: must not be empty", id="no-name"),
        pytest.param(
            {"schedulerName": "a", "plugin": {}},
            "spec.plugin: unknown field; did you mean plugins?",
            id="unknown",
        ),
        pytest.param(
            {"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": 7}]}}},
            "spec.plugins.score.enabled[0].name: must be text, not 7",
            id="far-down",
        ),
        pytest.param(
            {"schedulerName": "a", "percentageOfNodesToScore": 101},
            "spec.percentageOfNodesToScore: must be from 0 to 100, not 101",
            id="beyond-its-bounds",
        ),
        pytest.param(
            {"schedulerName": "a", "mode": "Maybe"},
            "spec.mode: Invalid enum value 'Maybe'",
            id="no-mode",
        ),
        pytest.param(
            {"schedulerName": "a", "shadow": {"decisions": 0}},
            "spec.shadow.decisions: must be from 1 to 1000000, not 0",
            id="no-decisions",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{"filterVerb": "filter"}]},
            "spec.extenders[0].urlPrefix: is required",
            id="extender-without-address",
        ),
        pytest.param(
            {"schedulerName": "a", "python": [{}]},
            "spec.python[0]: needs exactly one of configMap and entryPoint",
            id="python-from-nowhere",
        ),
        pytest.param(
            {
                "schedulerName": "a",
                "python": [{"entryPoint": "x", "configMap": {"name": "a", "key": "b"}}],
            },
            "spec.python[0]: needs exactly one of configMap and entryPoint",
            id="python-from-two-places",
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(spec: Any, mistake: str) -> None:
    assert [str(each) for each in read(spec).mistakes] == [mistake]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(OperatorOptions(namespace="here"), "--allow-python-profiles", id="forbidden"),
        pytest.param(
            OperatorOptions(allow_python=True), "--python-profiles-namespace", id="nowhere"
        ),
    ],
)
def test_python_of_the_cluster_has_to_be_allowed(options: OperatorOptions, why: str) -> None:
    python = [{"configMap": {"name": "plugins", "key": "a.py"}}]
    mistakes = read({"schedulerName": "a", "python": python}, options).mistakes
    assert [each.path for each in mistakes] == ["spec.python[0].configMap"]
    assert why in mistakes[0].why


def test_an_installed_entry_point_needs_no_leave() -> None:
    spec = {"schedulerName": "a", "python": [{"entryPoint": "rack-spread"}]}
    assert read(spec, OperatorOptions()).mistakes == ()


def test_what_a_spec_says_is_what_the_policies_get() -> None:
    spec = {
        "schedulerName": "packed",
        "percentageOfNodesToScore": 30,
        "plugins": {"score": {"disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"a": 1}}],
        "mode": "Shadow",
        "shadow": {"decisions": 10, "budget": 0.5},
        "python": [
            {"configMap": {"name": "plugins", "key": "a.py"}, "args": {"label": "x"}},
            {"configMap": {"name": "missing", "key": "a.py"}},
            {"entryPoint": "rack-spread"},
        ],
        "extenders": [{"urlPrefix": "http://extender"}],
    }
    policy = read(spec)
    assert (policy.name, policy.uid, policy.generation) == ("gpu", "u", 7)
    assert (policy.profile.scheduler_name, policy.profile.percentage_of_nodes_to_score) == (
        "packed",
        30,
    )
    assert policy.profile.plugins.score.disables("anything")
    assert (policy.mode, policy.shadow) == (Mode.SHADOW, ShadowOptions(10, 0.5))
    assert policy.python == (
        PythonSource("config-map", "berth-system/plugins/a.py", None, {"label": "x"}),
        PythonSource("config-map", "berth-system/missing/a.py", None, None),
        PythonSource("entry-point", "rack-spread", None, None),
    )
    assert policy.extenders is not None
    assert [each.url_prefix for each in policy.extenders] == ["http://extender"]


def test_without_extenders_of_its_own_those_of_the_file_are_asked() -> None:
    assert read({"schedulerName": "a"}).extenders is None

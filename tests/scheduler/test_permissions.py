from __future__ import annotations

import pytest

from scheduler.client.api import Permission
from scheduler.config import SchedulerConfig, default_config, parse_config, with_election
from scheduler.permissions import REQUIRED_PERMISSIONS, required_permissions

DELETE_PODS = Permission("delete", "pods")


def config_with(plugins: str) -> SchedulerConfig:
    return parse_config(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        f"profiles: [{{schedulerName: a, plugins: {plugins}}}]\n",
        "test",
    )


@pytest.mark.parametrize(
    ("plugins", "needed"),
    [
        pytest.param("{}", True, id="by-default"),
        pytest.param("{postFilter: {disabled: [{name: '*'}]}}", False, id="nobody-preempts"),
        pytest.param(
            "{postFilter: {disabled: [{name: DefaultPreemption}]}}", False, id="not-this-one"
        ),
        pytest.param(
            "{postFilter: {disabled: [{name: '*'}], enabled: [{name: DynamicResources}]}}",
            False,
            id="one-that-gives-devices-back",
        ),
        pytest.param("{score: {disabled: [{name: '*'}]}}", True, id="another-point"),
    ],
)
def test_who_does_not_preempt_need_not_delete_pods(plugins: str, needed: bool) -> None:
    assert (DELETE_PODS in required_permissions(config_with(plugins))) is needed


@pytest.mark.parametrize("elects", [pytest.param(True, id="yes"), pytest.param(False, id="no")])
def test_the_lease_is_asked_for_where_there_is_an_election(elects: bool) -> None:
    config = with_election(default_config("berth"), elects)
    asked = {each.resource for each in required_permissions(config)}
    assert ("leases" in asked) is elects


def test_the_rest_is_needed_always() -> None:
    nothing = config_with("{postFilter: {disabled: [{name: '*'}]}}")
    assert set(required_permissions(nothing)) == set(REQUIRED_PERMISSIONS)

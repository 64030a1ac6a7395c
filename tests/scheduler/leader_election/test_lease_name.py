from __future__ import annotations

import pytest

from scheduler.client import credential_search
from scheduler.leader_election import lease_of
from tests.scheduler.config.documents import config_of


@pytest.fixture
def in_a_pod(tmp_path, monkeypatch):
    """Run as in a pod of namespace ``berth-system``."""
    (tmp_path / "namespace").write_text("berth-system\n")
    monkeypatch.setattr(credential_search, "SERVICE_ACCOUNT_FOLDER", tmp_path)


@pytest.mark.parametrize(
    ("fields", "lease"),
    [
        pytest.param({}, ("berth-system", "berth"), id="nothing said"),
        pytest.param(
            {"resourceNamespace": "kube-system"}, ("kube-system", "berth"), id="another namespace"
        ),
        pytest.param({"resourceName": "packer"}, ("berth-system", "packer"), id="another name"),
        pytest.param(
            {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"},
            ("kube-system", "berth"),
            id="kube-scheduler's",
        ),
    ],
)
def test_the_lease_of_a_pod(in_a_pod, fields, lease):
    assert lease_of(config_of(leaderElection=fields)) == lease


def test_outside_of_a_pod_it_is_where_kube_schedulers_is(tmp_path, monkeypatch):
    monkeypatch.setattr(credential_search, "SERVICE_ACCOUNT_FOLDER", tmp_path / "absent")
    assert lease_of(config_of()) == ("kube-system", "berth")

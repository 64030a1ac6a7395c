from __future__ import annotations

from typing import Any

import pytest

from scheduler.config import (
    ClientConnection,
    GoDuration,
    LeaderElection,
    Profile,
    SchedulerConfig,
    default_config,
)
from tests.scheduler.config.documents import config_of


def test_without_a_file_there_is_one_default_profile() -> None:
    assert default_config("mine") == SchedulerConfig(profiles=(Profile("mine"),))


def test_a_file_that_says_nothing_says_the_same() -> None:
    config = config_of()
    assert config.profiles == default_config().profiles
    assert config.leader_election == LeaderElection()
    assert config.client_connection == ClientConnection()


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        pytest.param("parallelism", 16, id="parallelism"),
        pytest.param("percentage_of_nodes_to_score", 0, id="all-nodes"),
        pytest.param("pod_initial_backoff_seconds", 1, id="initial-backoff"),
        pytest.param("pod_max_backoff_seconds", 10, id="max-backoff"),
        pytest.param("enable_profiling", True, id="profiling"),
        pytest.param("enable_contention_profiling", True, id="contention-profiling"),
        pytest.param("delay_cache_until_active", False, id="delay-cache"),
        pytest.param("extenders", (), id="extenders"),
        pytest.param("given", frozenset(), id="given"),
    ],
)
def test_defaults(attribute: str, value: object) -> None:
    assert getattr(default_config(), attribute) == value


def test_the_lease_is_never_that_of_kube_scheduler() -> None:
    assert default_config().leader_election.resource_name == "berth"


@pytest.mark.parametrize(
    ("fields", "lease", "replaced"),
    [
        pytest.param({"resourceName": ""}, ("kube-system", "berth"), False, id="empty"),
        pytest.param({"resourceName": "own"}, ("kube-system", "own"), False, id="own"),
        pytest.param(
            {"resourceName": "kube-scheduler"}, ("kube-system", "berth"), True, id="kube-scheduler"
        ),
        pytest.param(
            {"resourceName": "kube-scheduler", "resourceNamespace": "mine"},
            ("mine", "kube-scheduler"),
            False,
            id="kube-scheduler-elsewhere",
        ),
        pytest.param(
            {"resourceName": "kube-scheduler", "leaderElect": False},
            ("kube-system", "kube-scheduler"),
            False,
            id="no-election",
        ),
    ],
)
def test_the_lease(fields: dict[str, Any], lease: tuple[str, str], replaced: bool) -> None:
    config = config_of(leaderElection=fields)
    election = config.leader_election
    assert (election.resource_namespace, election.resource_name) == lease
    assert bool(config.replaced) == replaced


def test_zero_stands_for_the_default_of_a_period() -> None:
    zero = dict.fromkeys(("leaseDuration", "renewDeadline", "retryPeriod"), "0s")
    assert config_of(leaderElection=zero).leader_election == LeaderElection()


def test_periods_are_kept() -> None:
    election = config_of(leaderElection={"leaseDuration": "1m30s"}).leader_election
    assert election.lease_duration == GoDuration(90 * 10**9)


@pytest.mark.parametrize(
    ("fields", "qps", "burst"),
    [
        pytest.param({}, None, 100, id="not-given"),
        pytest.param({"qps": 0, "burst": 0}, None, 100, id="zero-is-not-given"),
        pytest.param({"qps": -1}, None, 100, id="negative-is-no-limit"),
        pytest.param({"qps": 20.5, "burst": 40}, 20.5, 40, id="given"),
        pytest.param({"qps": 20}, 20.0, 100, id="without-burst"),
    ],
)
def test_request_limits(fields: dict[str, Any], qps: float | None, burst: int) -> None:
    connection = config_of(clientConnection=fields).client_connection
    assert (connection.qps, connection.burst) == (qps, burst)


@pytest.mark.parametrize(
    ("fields", "contention"),
    [
        pytest.param({"enableProfiling": False}, False, id="follows-profiling"),
        pytest.param(
            {"enableProfiling": False, "enableContentionProfiling": True}, True, id="on-its-own"
        ),
        pytest.param({"enableContentionProfiling": False}, False, id="off"),
    ],
)
def test_contention_profiling(fields: dict[str, bool], contention: bool) -> None:
    assert config_of(**fields).enable_contention_profiling is contention


def test_an_extender_without_a_time_out_has_five_seconds() -> None:
    url = "http://127.0.0.1"
    config = config_of(extenders=[{"urlPrefix": url}, {"urlPrefix": url, "httpTimeout": "0s"}])
    assert [each.http_timeout.seconds for each in config.extenders] == [5.0, 5.0]


@pytest.mark.parametrize(
    ("profiles", "names"),
    [
        pytest.param(None, ["berth"], id="none"),
        pytest.param([{}], ["berth"], id="one-without-a-name"),
        pytest.param([{"schedulerName": "default-scheduler"}], ["default-scheduler"], id="named"),
    ],
)
def test_names_of_profiles(profiles: Any, names: list[str]) -> None:
    assert [profile.scheduler_name for profile in config_of(profiles=profiles).profiles] == names


def test_it_is_known_what_the_file_gives() -> None:
    config = config_of(
        parallelism=None, clientConnection={"qps": 1, "burst": None}, profiles=[{"plugins": {}}]
    )
    assert config.given == {
        "apiVersion",
        "kind",
        "clientConnection",
        "clientConnection.qps",
        "profiles",
    }

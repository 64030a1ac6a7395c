from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.config.documents import mistakes_of

HTTP = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("fields", "mistakes"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"leaseDuration": "0s", "retryPeriod": "0s"}, [], id="zero-is-default"),
        pytest.param(
            {"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"},
            [],
            id="not-looked-at-without-election",
        ),
        pytest.param(
            {"leaseDuration": "-1s"},
            [
                "leaseDuration: must be more than 0s, not -1s",
                "leaseDuration: must be more than renewDeadline (10s), not -1s",
            ],
            id="negative-lease",
        ),
        pytest.param(
            {"retryPeriod": "-1ns"}, ["retryPeriod: must be more than 0s, not -1ns"], id="retry"
        ),
        pytest.param(
            {"renewDeadline": "-5s"},
            [
                "renewDeadline: must be more than 0s, not -5s",
                "renewDeadline: must be more than 1.2 times retryPeriod (2s), not -5s",
            ],
            id="negative-deadline",
        ),
        pytest.param(
            {"leaseDuration": "10s"},
            ["leaseDuration: must be more than renewDeadline (10s), not 10s"],
            id="lease-as-short-as-the-deadline",
        ),
        pytest.param(
            {"retryPeriod": "8.4s"},
            ["renewDeadline: must be more than 1.2 times retryPeriod (8.4s), not 10s"],
            id="no-time-for-a-retry",
        ),
        pytest.param({"retryPeriod": "8.3s"}, [], id="just-time-for-a-retry"),
        pytest.param(
            {"resourceLock": "configmaps"},
            ["resourceLock: must be leases, not 'configmaps'"],
            id="another-lock",
        ),
    ],
)
def test_leader_election(fields: dict[str, Any], mistakes: list[str]) -> None:
    found = mistakes_of(leaderElection=fields)
    assert found == [f"leaderElection.{mistake}" for mistake in mistakes]


@pytest.mark.parametrize(
    ("fields", "mistakes"),
    [
        pytest.param(
            {"parallelism": 0}, ["parallelism: must be at least 1, not 0"], id="parallelism"
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            ["percentageOfNodesToScore: must be from 0 to 100, not 101"],
            id="percentage-above",
        ),
        pytest.param(
            {"percentageOfNodesToScore": -1},
            ["percentageOfNodesToScore: must be from 0 to 100, not -1"],
            id="percentage-below",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            ["podInitialBackoffSeconds: must be at least 1, not 0"],
            id="no-backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 11},
            ["podMaxBackoffSeconds: must be at least podInitialBackoffSeconds (11), not 10"],
            id="backoff-ends-before-it-starts",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            ["clientConnection.burst: must be at least 0, not -1"],
            id="burst",
        ),
        pytest.param(
            {"clientConnection": {"qps": "50"}},
            ["clientConnection.qps: must be a number, not '50'"],
            id="qps",
        ),
        pytest.param(
            {"healthzBindAddress": "0.0.0.0:10251"},
            ["healthzBindAddress: unknown field: removed in v1; use --bind-address"],
            id="field-of-a-former-version",
        ),
        pytest.param({"profiles": []}, [], id="no-profiles"),
        pytest.param({"profiles": None, "extenders": None}, [], id="nulls"),
        pytest.param({"profiles": [{}]}, [], id="one-profile-without-a-name"),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {}]},
            ["profiles[1].schedulerName: is required where there are several profiles"],
            id="one-of-two-without-a-name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}]},
            ["profiles[2].schedulerName: 'a' is that of profiles[0].schedulerName already"],
            id="a-name-twice",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": 101}]},
            ["profiles[0].percentageOfNodesToScore: must be from 0 to 100, not 101"],
            id="percentage-of-a-profile",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A", "weight": 2**31}]}}}]},
            [
                "profiles[0].plugins.score.enabled[0].weight: must be from -2147483648 to "
                "2147483647, not 2147483648"
            ],
            id="weight-beyond-32-bits",
        ),
    ],
)
def test_the_rest(fields: dict[str, Any], mistakes: list[str]) -> None:
    assert mistakes_of(**fields) == mistakes


@pytest.mark.parametrize(
    ("extender", "mistakes"),
    [
        pytest.param({}, [], id="asked-nothing"),
        pytest.param({"urlPrefix": ""}, ["urlPrefix: is required"], id="no-url"),
        pytest.param({"urlPrefix": None}, ["urlPrefix: is required"], id="null-url"),
        pytest.param(
            {"urlPrefix": "127.0.0.1:80/x"},
            ["urlPrefix: '127.0.0.1:80/x' is no http:// or https:// URL"],
            id="url-without-a-scheme",
        ),
        pytest.param(
            {"urlPrefix": "file:///etc"},
            ["urlPrefix: 'file:///etc' is no http:// or https:// URL"],
            id="file",
        ),
        pytest.param(
            {"urlPrefix": "http:///x"},
            ["urlPrefix: 'http:///x' is no http:// or https:// URL"],
            id="url-without-a-host",
        ),
        pytest.param(
            {"urlPrefix": "http://a:99999"},
            ["urlPrefix: 'http://a:99999' is no URL: Port out of range 0-65535"],
            id="port-out-of-range",
        ),
        pytest.param({"urlPrefix": "https://[::1]:1/x"}, [], id="ipv6"),
        pytest.param(
            {"prioritizeVerb": "p"},
            ["weight: must be more than 0 where there is a prioritizeVerb, not 0"],
            id="scores-without-weight",
        ),
        pytest.param({"prioritizeVerb": "p", "weight": 1}, [], id="scores-with-weight"),
        pytest.param({"httpTimeout": "0s"}, [], id="default-time-out"),
        pytest.param(
            {"httpTimeout": "-1s"},
            ["httpTimeout: must be at least 0s, not -1s"],
            id="negative-time-out",
        ),
        pytest.param(
            {"managedResources": [{"name": "example.com/a"}, {"name": "example.com/a"}]},
            ["managedResources[1].name: 'example.com/a' is managed already"],
            id="resource-twice",
        ),
        pytest.param(
            {"managedResources": [{"name": "cpu"}, {"name": "kubernetes.io/a"}, {"name": "a/b/c"}]},
            [
                "managedResources[0].name: 'cpu' is no extended resource",
                "managedResources[1].name: 'kubernetes.io/a' is no extended resource",
                "managedResources[2].name: 'a/b/c' is no extended resource",
            ],
            id="no-extended-resource",
        ),
        pytest.param(
            {"managedResources": [{"ignoredByScheduler": True}]},
            ["managedResources[0].name: is required"],
            id="resource-without-a-name",
        ),
        pytest.param(
            {"tlsConfig": {"insecure": True, "caFile": "ca.crt"}},
            ["tlsConfig.insecure: must not be set together with a CA"],
            id="insecure-with-a-ca",
        ),
        pytest.param(
            {"tlsConfig": {"certFile": "a", "keyData": "aGk="}}, [], id="certificate-and-key"
        ),
        pytest.param(
            {"tlsConfig": {"certData": "aGk="}},
            ["tlsConfig: a certificate and its key go together; keyFile or keyData is missing"],
            id="certificate-without-key",
        ),
        pytest.param(
            {"tlsConfig": {"keyFile": "a"}},
            ["tlsConfig: a certificate and its key go together; certFile or certData is missing"],
            id="key-without-certificate",
        ),
        pytest.param(
            {"tlsConfig": {"caData": "-----BEGIN"}},
            ["tlsConfig.caData: is not base64"],
            id="pem-instead-of-base64",
        ),
        pytest.param(
            {"enableHttps": True},
            ["enableHttps: unknown field; did you mean enableHTTPS?"],
            id="case-of-https",
        ),
    ],
)
def test_extenders(extender: dict[str, Any], mistakes: list[str]) -> None:
    found = mistakes_of(extenders=[{"urlPrefix": HTTP, **extender}])
    assert found == [f"extenders[0].{mistake}" for mistake in mistakes]


def test_only_one_extender_binds() -> None:
    binding = {"urlPrefix": HTTP, "bindVerb": "bind"}
    assert mistakes_of(extenders=[binding, {"urlPrefix": HTTP}, binding, binding]) == [
        "extenders[2].bindVerb: only one extender can bind, and extenders[0] does",
        "extenders[3].bindVerb: only one extender can bind, and extenders[0] does",
    ]


def test_a_resource_is_managed_by_one_extender() -> None:
    managing = {"urlPrefix": HTTP, "managedResources": [{"name": "example.com/a"}]}
    assert mistakes_of(extenders=[managing, managing]) == [
        "extenders[1].managedResources[0].name: 'example.com/a' is managed already"
    ]


def test_mistakes_of_all_parts_are_found() -> None:
    found = mistakes_of(
        leaderElection={"resourceLock": "x"},
        podMaxBackoffSeconds=0,
        profiles=[
            {
                "plugins": {"bind": {"disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": "InterPodAffinity", "args": {"x": 1}}],
            }
        ],
        extenders=[{"urlPrefix": "x"}],
    )
    assert [line.split(":")[0] for line in found] == [
        "leaderElection.resourceLock",
        "podMaxBackoffSeconds",
        "extenders[0].urlPrefix",
        "profiles[0].pluginConfig[0].args.x",
        "profiles[0].plugins.bind",
    ]

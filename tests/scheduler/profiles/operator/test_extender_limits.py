"""What a SchedulingProfile may not ask of its extenders, though a file may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler.config.extender import DEFAULT_TIMEOUT
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.scheduling_profile import read_version
from tests.scheduler.profiles.operator.objects import profile

if TYPE_CHECKING:
    from scheduler.profiles import ProfileVersion

URL = "https://extenders.example.com:8443/team"
LIMITED = OperatorOptions(extender_urls=("http://other", URL))


def read(spec: dict[str, Any], options: OperatorOptions = LIMITED) -> ProfileVersion:
    return read_version(profile(spec=spec), options)


def mistakes(*extenders: dict[str, Any], options: OperatorOptions = LIMITED) -> list[str]:
    version = read({"schedulerName": "a", "extenders": list(extenders)}, options)
    return [str(each) for each in version.mistakes]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(URL, id="it"),
        pytest.param(f"{URL}/", id="with-a-slash"),
        pytest.param(f"{URL}/gpu/v1", id="below-it"),
        pytest.param("HTTPS://Extenders.example.com:8443/team", id="in-capitals"),
        pytest.param("http://other:80/anything", id="anything-of-a-server"),
    ],
)
def test_an_extender_may_be_where_it_is_allowed(url: str) -> None:
    assert mistakes({"urlPrefix": url}) == []


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://169.254.169.254/latest", id="another-server"),
        pytest.param("http://extenders.example.com:8443/team", id="in-plain-text"),
        pytest.param("https://extenders.example.com/team", id="another-port"),
        pytest.param("https://extenders.example.com:8443/teams", id="another-path"),
        pytest.param(f"{URL}/../admin", id="back-up"),
        pytest.param(f"{URL}/%2e%2E/admin", id="back-up-in-disguise"),
        pytest.param(f"{URL}?a=b", id="with-a-query"),
        pytest.param("https://extenders.example.com:8443@evil/team", id="as-somebody"),
        pytest.param("http://other.evil", id="a-longer-name"),
        pytest.param("http://other\\@evil/", id="two-readings"),
        pytest.param("http://[::1", id="no-url"),
    ],
)
def test_an_extender_may_be_nowhere_else(url: str) -> None:
    (mistake,) = mistakes({"urlPrefix": url})
    assert mistake.startswith("spec.extenders[0].urlPrefix: ")
    assert mistake.endswith("is not allowed; see --scheduling-profiles-extenders")


def test_where_nothing_is_allowed_there_are_no_extenders() -> None:
    (mistake,) = mistakes({"urlPrefix": URL}, options=OperatorOptions())
    assert "see --scheduling-profiles-extenders" in mistake


@pytest.mark.parametrize(
    ("extender", "mistake"),
    [
        pytest.param(
            {"filterVerb": "../../admin"},
            "filterVerb: '../../admin' is not a valid path",
            id="a-verb-that-leads-up",
        ),
        pytest.param(
            {"bindVerb": "%2e%2e/x"}, "bindVerb: '%2e%2e/x' is not a valid path", id="in-disguise"
        ),
        pytest.param(
            {"preemptVerb": "a?b=c"}, "preemptVerb: 'a?b=c' is not a valid path", id="a-query"
        ),
        pytest.param(
            {"httpTimeout": "10.1s"}, "httpTimeout: must be at most 10s, not 10.1s", id="too-long"
        ),
        pytest.param(
            {"tlsConfig": {"caFile": "/etc/passwd"}},
            "tlsConfig.caFile: a SchedulingProfile names no files; use caData",
            id="a-file",
        ),
        pytest.param(
            {"tlsConfig": {"keyFile": "/key", "keyData": "YQ=="}},
            "tlsConfig.keyFile: a SchedulingProfile names no files; use keyData",
            id="a-file-beside-data",
        ),
    ],
)
def test_what_a_file_may_and_a_profile_may_not(extender: dict[str, Any], mistake: str) -> None:
    assert mistakes({"urlPrefix": URL, **extender}) == [f"spec.extenders[0].{mistake}"]


def test_no_time_out_is_the_default_and_not_for_ever() -> None:
    spec = {"schedulerName": "a", "extenders": [{"urlPrefix": URL, "httpTimeout": "0s"}]}
    (extender,) = read(spec).extenders or ()
    assert extender.http_timeout == DEFAULT_TIMEOUT


def test_a_name_that_is_not_listed_is_not_served() -> None:
    options = OperatorOptions(scheduler_names=frozenset({"gpu", "batch"}))
    assert read({"schedulerName": "gpu"}, options).mistakes == ()
    (mistake,) = read({"schedulerName": "web"}, options).mistakes
    assert str(mistake) == (
        "spec.schedulerName: 'web' is not allowed; see --scheduling-profiles-names"
    )

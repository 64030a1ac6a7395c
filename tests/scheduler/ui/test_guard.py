from __future__ import annotations

import pytest

from scheduler.ui.guard import HEADERS, Guard

TOKEN = "t0ken"
OURS = {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"}


def status(method: str, path: str, **headers: str) -> int | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    refused = Guard(8080, TOKEN).refusal(method, path, named)
    return None if refused is None else refused[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"]
)
def test_addresses_of_loopback_are_answered(host: str) -> None:
    assert status("GET", f"/{TOKEN}/", Host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("evil.example:8080", id="rebound name"),
        pytest.param("127.0.0.1", id="no port"),
        pytest.param("127.0.0.1:80", id="another port"),
        pytest.param("127.0.0.1:8080.evil.example", id="address as a prefix"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_name_that_was_pointed_here_is_refused(host: str) -> None:
    assert status("GET", f"/{TOKEN}/", Host=host) == 421


@pytest.mark.parametrize("path", ["/", "", "/pending", "/t0ke/", "/t0ken0/", "//t0ken/", "/T0KEN/"])
def test_without_the_token_there_is_nothing(path: str) -> None:
    assert status("GET", path, Host=OURS["Host"]) == 403


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param(OURS, None, id="our own page"),
        pytest.param({**OURS, "Sec-Fetch-Site": "same-origin"}, None, id="our page, as it says"),
        pytest.param({"Host": OURS["Host"]}, 403, id="no origin"),
        pytest.param({**OURS, "Origin": "null"}, 403, id="a sandboxed page"),
        pytest.param({**OURS, "Origin": "http://evil.example"}, 403, id="another page"),
        pytest.param({**OURS, "Origin": "http://127.0.0.1:9090"}, 403, id="another port"),
        pytest.param({**OURS, "Origin": "https://127.0.0.1:8080"}, 403, id="another scheme"),
        pytest.param({**OURS, "Sec-Fetch-Site": "same-site"}, 403, id="another port of ours"),
    ],
)
def test_a_post_comes_from_our_own_page(headers: dict[str, str], expected: int | None) -> None:
    named = {name.replace("-", "_"): value for name, value in headers.items()}
    assert status("POST", f"/{TOKEN}/what-if", **named) == expected


def test_two_runs_have_two_tokens() -> None:
    assert Guard(1).token != Guard(1).token


def test_no_script_or_style_may_be_inside_a_page() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy

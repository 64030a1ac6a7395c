from __future__ import annotations

import pytest

from scheduler.client.errors import ClientConfigError
from scheduler.client.proxy import environment_proxy

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "no_proxy", "used"),
    [
        pytest.param("https://10.96.0.1:443", "", True, id="nothing-exempt"),
        pytest.param("https://10.96.0.1:443", "10.0.0.0/8,.svc", False, id="in-a-range"),
        pytest.param("https://10.96.0.1:443", "192.168.0.0/16", True, id="in-no-range"),
        pytest.param("https://10.96.0.1:443", "10.96.0.1", False, id="address"),
        pytest.param("https://[fd00::1]:443", "fd00::/8", False, id="ipv6-range"),
        pytest.param("https://[fd00::1]:443", "[fd00::1]", False, id="ipv6-address"),
        pytest.param("https://api.example.org", "example.org", False, id="domain"),
        pytest.param("https://example.org", "example.org", False, id="the-domain-itself"),
        pytest.param("https://api.example.org", ".example.org", False, id="subdomain"),
        pytest.param("https://example.org", ".example.org", True, id="subdomains-only"),
        pytest.param("https://api.example.org", "*.example.org", False, id="star-domain"),
        pytest.param("https://notexample.org", "example.org", True, id="same-ending"),
        pytest.param("https://api.example.org:6443", "api.example.org:6443", False, id="port"),
        pytest.param("https://api.example.org:443", "api.example.org:6443", True, id="other-port"),
        pytest.param("https://api.example.org", "*", False, id="everything"),
        pytest.param("https://api.example.org", "10.0.0.0/99, ,", True, id="nonsense-exempts-none"),
        pytest.param("https://127.0.0.1:6443", "", False, id="loopback"),
        pytest.param("https://[::1]:6443", "", False, id="loopback-ipv6"),
        pytest.param("https://localhost:6443", "", False, id="localhost"),
    ],
)
def test_the_environments_proxy_and_its_exceptions(url: str, no_proxy: str, used: bool) -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert environment_proxy(url, environ) == (PROXY if used else None)


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        pytest.param({"https_proxy": PROXY}, PROXY, id="lower-case"),
        pytest.param({"HTTPS_PROXY": "proxy.example:3128"}, PROXY, id="without-scheme"),
        pytest.param({"HTTP_PROXY": PROXY}, None, id="for-the-other-scheme"),
        pytest.param({"HTTPS_PROXY": ""}, None, id="empty"),
    ],
)
def test_the_proxys_variable(environ: dict[str, str], proxy: str | None) -> None:
    assert environment_proxy("https://api.example.org", environ) == proxy


@pytest.mark.parametrize(
    "value", ["socks5://proxy.example:1080", "https://proxy.example", "http://", "http://[bad"]
)
def test_another_kind_of_proxy_is_refused_in_one_sentence(value: str) -> None:
    with pytest.raises(ClientConfigError, match=r"^\$HTTPS_PROXY is") as caught:
        environment_proxy("https://api.example.org", {"HTTPS_PROXY": value})
    assert "\n" not in str(caught.value)


def test_a_proxys_password_is_not_repeated_in_the_message() -> None:
    with pytest.raises(ClientConfigError) as caught:
        environment_proxy(
            "https://api.example.org", {"HTTPS_PROXY": "socks5://user:secret@proxy.example:1080"}
        )
    assert "secret" not in str(caught.value)

"""Kubeconfig files as people write them, and as they get them wrong."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.errors import ClientConfigError
from tests.scheduler.client.kubeconfigs import config, header_of, load, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scheduler.client.authority import Authority


pytestmark = pytest.mark.usefixtures("no_environment")


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture
def in_a_pod(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Authority, no_environment: None
) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token\n")
    (folder / "ca.crt").write_bytes(authority.ca_file.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return folder


# --- what works -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "header"),
    [
        pytest.param({"token": "abc"}, "Bearer abc", id="token"),
        pytest.param({"token": "abc\n"}, "Bearer abc", id="token-with-line-end"),
        pytest.param({"tokenFile": "token"}, "Bearer from-file", id="token-file-beside-it"),
        pytest.param({"token": "abc", "tokenFile": "token"}, "Bearer from-file", id="both"),
        pytest.param({"username": "u", "password": "p"}, "Basic dTpw", id="password"),
        pytest.param({}, None, id="nobody"),
    ],
)
def test_who_we_are_is_read(tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert header_of(write(tmp_path / "config", config(user=user))) == header


def test_a_null_is_read_as_absent(tmp_path: Path) -> None:
    nothing = {"certificate-authority-data": None, "tls-server-name": None, "proxy-url": None}
    user = {"token": "abc", "exec": None, "tokenFile": None, "client-key-data": None}
    path = write(tmp_path / "config", config(cluster=nothing, user=user))
    assert header_of(path) == "Bearer abc"


def test_a_context_may_do_without_a_user(tmp_path: Path) -> None:
    contexts = [{"name": "here", "context": {"cluster": "c"}}]
    assert header_of(write(tmp_path / "config", config(contexts=contexts))) is None


def test_the_server_is_read(tmp_path: Path) -> None:
    cluster = {"server": "https://api.example/k8s/", "tls-server-name": "other.example"}
    found = load(write(tmp_path / "config", config(cluster=cluster)))
    assert (found.base_url, found.tls_server_name, found.proxy) == (
        "https://api.example/k8s",
        "other.example",
        None,
    )


def test_the_files_proxy_goes_before_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:1")
    cluster = {"server": "https://api.example", "proxy-url": "http://file:2"}
    assert load(write(tmp_path / "with", config(cluster=cluster))).proxy == "http://file:2"
    del cluster["proxy-url"]
    assert (
        load(write(tmp_path / "without", config(cluster=cluster))).proxy == "http://environment:1"
    )


@pytest.mark.parametrize("embedded", [True, False])
def test_certificates_may_be_embedded_or_beside_the_file(
    tmp_path: Path, authority: Authority, embedded: bool
) -> None:
    cert_file, key_file = authority.sign("client")
    if embedded:
        cluster = {"certificate-authority-data": encoded(authority.ca_file)}
        user = {"client-certificate-data": encoded(cert_file), "client-key-data": encoded(key_file)}
    else:
        cluster = {"certificate-authority": authority.ca_file.name}
        user = {"client-certificate": cert_file.name, "client-key": key_file.name}
    found = load(write(tmp_path / "config", config(cluster=cluster, user=user)))
    assert found.ssl_context is not None
    (trusted,) = found.ssl_context.get_ca_certs()
    assert trusted["subject"] == ((("commonName", "authority"),),)


def test_a_certificate_may_be_embedded_and_its_key_beside_the_file(
    tmp_path: Path, authority: Authority
) -> None:
    cert_file, key_file = authority.sign("client")
    user = {"client-certificate-data": encoded(cert_file), "client-key": key_file.name}
    assert load(write(tmp_path / "config", config(user=user))).ssl_context is not None


# The library's own, from Python 3.12 on; outside of tests Python does not show it.
@pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning:kubernetes.aio.config.kube_config"
)
def test_an_auth_provider_is_asked_through_the_client_library(tmp_path: Path) -> None:
    provider = {"access-token": "from-google", "expiry": "2999-01-01T00:00:00Z"}
    user = {"auth-provider": {"name": "gcp", "config": provider}}
    assert header_of(write(tmp_path / "config", config(user=user))) == "Bearer from-google"


def test_the_client_library_is_not_imported_for_anybody_else(
    tmp_path: Path, authority: Authority
) -> None:
    cluster = {"certificate-authority-data": encoded(authority.ca_file)}
    path = write(tmp_path / "config", config(cluster=cluster, user={"token": "abc"}))
    script = (
        "import asyncio, sys, scheduler.cli\n"
        "from scheduler.client.credential_search import load_credentials\n"
        "asyncio.run(load_credentials(sys.argv[1]))\n"
        "print('kubernetes' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(path)]
    ended = subprocess.run(command, capture_output=True, check=True, text=True)
    assert ended.stdout.strip() == "False"


def test_a_server_may_be_trusted_blindly(tmp_path: Path) -> None:
    cluster = {"insecure-skip-tls-verify": True}
    found = load(write(tmp_path / "config", config(cluster=cluster)))
    assert found.ssl_context is not None
    assert found.ssl_context.check_hostname is False


def test_a_server_without_tls_has_no_certificates(tmp_path: Path) -> None:
    cluster = {"server": "http://127.0.0.1:8080"}
    assert load(write(tmp_path / "config", config(cluster=cluster))).ssl_context is None


def test_of_several_files_the_first_to_say_something_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = {"current-context": "here", "contexts": config()["contexts"]}
    first = write(
        tmp_path / "first", {**contexts, "users": [{"name": "u", "user": {"token": "1"}}]}
    )
    second = write(tmp_path / "second", config(user={"token": "2"}, current_context="elsewhere"))
    paths = [tmp_path / "missing", first, second]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    assert header_of(None) == "Bearer 1"


def test_a_path_is_relative_to_the_file_that_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "token").write_text("beside-the-user")
    users = [{"name": "u", "user": {"tokenFile": "token"}}]
    first = write(folder / "users", {"users": users})
    second = write(tmp_path / "config", config(users=[]))
    monkeypatch.setenv("KUBECONFIG", f"{first}{os.pathsep}{second}")
    assert header_of(None) == "Bearer beside-the-user"


# --- which one is taken -----------------------------------------------------------------------


def test_the_given_file_goes_before_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_pod: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "variable", config(user={"token": "b"}))))
    assert header_of(write(tmp_path / "given", config(user={"token": "a"}))) == "Bearer a"


def test_the_variable_goes_before_the_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_pod: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "variable", config(user={"token": "b"}))))
    assert header_of(None) == "Bearer b"


def home_config(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".kube"
    folder.mkdir(parents=True)
    write(folder / "config", config(user={"token": "home"}))


def test_the_service_account_goes_before_the_home_folder(tmp_path: Path, in_a_pod: Path) -> None:
    home_config(tmp_path)
    assert header_of(None) == "Bearer pod-token"


def test_the_home_folder_comes_last(tmp_path: Path) -> None:
    home_config(tmp_path)
    assert header_of(None) == "Bearer home"


def test_a_service_account_brings_server_authority_and_token(in_a_pod: Path) -> None:
    found = load(None)
    assert found.base_url == "https://[fd00::1]:443"
    assert found.ssl_context is not None
    assert len(found.ssl_context.get_ca_certs()) == 1


# --- what people get wrong --------------------------------------------------------------------

MISTAKES = [
    pytest.param("{a: [", r"is not YAML: .* \(line 1, column", id="broken-yaml"),
    pytest.param("", "is empty", id="empty"),
    pytest.param("- a\n", "is not a mapping but a list", id="a-list"),
    pytest.param("just words", "is not a mapping but a str", id="a-sentence"),
    pytest.param(config(current_context=""), r"no current-context.*: here\)", id="no-context"),
    pytest.param(
        config(current_context="x"),
        "current-context 'x', but its contexts are: here",
        id="unknown-context",
    ),
    pytest.param(config(clusters=[]), "cluster 'c', but its clusters are: none", id="no-cluster"),
    pytest.param(config(clusters=None), "its clusters are: none", id="clusters-null"),
    pytest.param(config(clusters={"c": 1}), "clusters is not a list", id="clusters-a-mapping"),
    pytest.param(config(clusters=[{"cluster": {}}]), r"clusters\[0\] has no name", id="no-name"),
    pytest.param(
        config(clusters=[{"name": "c", "cluster": "x"}]),
        r"clusters\[0\].cluster is not a mapping",
        id="cluster-a-string",
    ),
    pytest.param(config(users=[]), "user 'u', but its users are: none", id="no-user"),
    pytest.param(config(cluster={"server": None}), "server is None, not an http", id="no-server"),
    pytest.param(
        config(cluster={"server": "127.0.0.1:6443"}),
        "server is '127.0.0.1:6443', not an http",
        id="server-without-scheme",
    ),
    pytest.param(
        config(cluster={"server": "https://host:port"}), "not an http", id="server-without-port"
    ),
    pytest.param(config(cluster={"server": "https://"}), "not an http", id="server-without-host"),
    pytest.param(
        config(cluster={"certificate-authority": "ca.crt"}),
        "certificate-authority names .*/ca.crt, which is not a file",
        id="authority-missing",
    ),
    pytest.param(
        config(cluster={"certificate-authority-data": "no base64!"}),
        "certificate-authority-data is not base64",
        id="authority-no-base64",
    ),
    pytest.param(
        config(cluster={"certificate-authority-data": base64.b64encode(b"no pem").decode()}),
        "certificate authority .* cannot be used",
        id="authority-no-pem",
    ),
    pytest.param(
        config(user={"client-certificate": "a.crt", "client-key": "a.key"}),
        "client-certificate names .*/a.crt, which is not a file",
        id="certificate-missing",
    ),
    pytest.param(
        config(user={"tokenFile": "t"}), "token file .* cannot be read", id="no-token-file"
    ),
    pytest.param(config(user={"token": "a\nb"}), "characters that no token", id="token-two-lines"),
    pytest.param(config(user={"as": "root"}), r"impersonation \('as'\)", id="impersonation"),
    pytest.param(
        config(cluster={"proxy-url": "socks5://p:1"}),
        "proxy-url is 'socks5://p:1'",
        id="socks",
    ),
    pytest.param(config(user={"exec": [1]}), "exec is not a mapping", id="exec-a-list"),
    pytest.param(
        config(user={"auth-provider": {"name": "oidc"}}), "user 'u': ", id="oidc-without-config"
    ),
]


@pytest.mark.parametrize(("content", "sentence"), MISTAKES)
def test_a_mistake_is_one_clear_sentence(tmp_path: Path, content: Any, sentence: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(ClientConfigError, match=sentence) as caught:
        load(path)
    assert str(caught.value).startswith(f"kubeconfig {path}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError, match=r"/none cannot be read: No such file"):
        load(tmp_path / "none")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError, match=r"cannot be read: Is a directory"):
        load(tmp_path)


def test_a_file_that_is_no_text_is_one_clear_sentence(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClientConfigError, match="is not text in UTF-8"):
        load(path)


def test_certificate_and_key_have_to_match(tmp_path: Path, authority: Authority) -> None:
    cert_file, _ = authority.sign("one")
    _, key_file = authority.sign("two")
    user = {"client-certificate": str(cert_file), "client-key": str(key_file)}
    with pytest.raises(ClientConfigError, match="client certificate cannot be used: key values"):
        load(write(tmp_path / "config", config(user=user)))


def test_nothing_at_all_is_one_clear_sentence() -> None:
    with pytest.raises(ClientConfigError, match=r"no kubeconfig was given, \$KUBECONFIG is not"):
        load(None)


def test_a_variable_that_leads_nowhere_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ClientConfigError, match="none cannot be read"):
        load(None)


def test_a_service_account_without_an_authority_is_one_clear_sentence(in_a_pod: Path) -> None:
    (in_a_pod / "ca.crt").unlink()
    with pytest.raises(ClientConfigError, match=r"^service account in .*certification"):
        load(None)

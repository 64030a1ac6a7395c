"""Programs that a kubeconfig names to obtain credentials."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.errors import ClientConfigError
from scheduler.client.exec_plugin import ExecPlugin
from tests.scheduler.client.kubeconfigs import SERVER, config, header_of, load, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scheduler.client.authority import Authority


pytestmark = pytest.mark.usefixtures("no_environment")


def plugin(tmp_path: Path, code: str, **options: Any) -> Path:
    """Write a kubeconfig whose user is what the Python program `code` prints."""
    script = tmp_path / "plugin.py"
    script.write_text(f"import json, os, sys\n{code}\n")
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "IfAvailable",
            **options,
        }
    }
    return write(tmp_path / "config", config(user=user))


def printed(status: Any, api_version: str = "client.authentication.k8s.io/v1") -> str:
    credential = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(credential))})"


def test_a_program_gives_the_token(tmp_path: Path) -> None:
    assert header_of(plugin(tmp_path, printed({"token": "abc"}))) == "Bearer abc"


def test_a_program_gives_a_certificate(tmp_path: Path, authority: Authority) -> None:
    cert_file, key_file = authority.sign("client")
    status = {
        "clientCertificateData": cert_file.read_text(),
        "clientKeyData": key_file.read_text(),
    }
    found = load(plugin(tmp_path, printed(status)))
    assert found.ssl_context is not None


def test_a_program_is_told_what_it_needs(tmp_path: Path) -> None:
    code = """
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["kind"] == "ExecCredential" and info["spec"]["interactive"] is False
token = os.environ["NAME"] + "," + info["spec"]["cluster"]["server"]
status = {"token": token}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""
    path = plugin(tmp_path, code, env=[{"name": "NAME", "value": "value"}], provideClusterInfo=True)
    assert header_of(path) == f"Bearer value,{SERVER}"


def test_a_program_with_a_path_is_found_beside_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "login"
    program.write_text(f"#!{sys.executable}\n{printed({'token': 'abc'})}\n")
    program.chmod(0o755)
    assert header_of(plugin(tmp_path, "", command="./bin/login", args=[])) == "Bearer abc"


@pytest.mark.parametrize(
    ("code", "options", "sentence"),
    [
        pytest.param(
            "sys.exit('not logged in')", {}, "ended with status 1: not logged in", id="failure"
        ),
        pytest.param("print('hello')", {}, "did not print an ExecCredential", id="no-json"),
        pytest.param("", {}, "did not print an ExecCredential", id="nothing"),
        pytest.param(printed(None), {}, "printed no status", id="no-status"),
        pytest.param(printed({}), {}, "neither a token nor a certificate", id="empty-status"),
        pytest.param(
            printed({"clientCertificateData": "x"}), {}, "without its key", id="certificate-alone"
        ),
        pytest.param(
            printed({"clientCertificateData": "x", "clientKeyData": "y"}),
            {},
            "client certificate cannot be used",
            id="certificate-no-pem",
        ),
        pytest.param(
            printed({"token": "a"}, "client.authentication.k8s.io/v1beta1"),
            {},
            "printed client.authentication.k8s.io/v1beta1 ExecCredential, not",
            id="another-version",
        ),
        pytest.param(
            "",
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "v1alpha1",
            id="old",
        ),
        pytest.param("", {"command": None}, "exec.command is missing", id="no-command"),
        pytest.param(
            "",
            {"command": "no-such-program", "installHint": "get it at https://x.example"},
            "no-such-program was not found: get it at",
            id="program-missing",
        ),
        pytest.param("", {"command": "./config"}, "cannot be run: Permission", id="no-program"),
        pytest.param("", {"interactiveMode": "Always"}, "wants a terminal", id="interactive"),
        pytest.param("", {"env": [1]}, "exec.env", id="env-malformed"),
    ],
)
def test_a_programs_failure_is_one_clear_sentence(
    tmp_path: Path, code: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ClientConfigError, match=sentence) as caught:
        load(plugin(tmp_path, code, **options))
    assert "\n" not in str(caught.value)
    assert "'u'" in str(caught.value)


@pytest.mark.parametrize(
    ("lifetime_s", "fresh_for_s"),
    [
        pytest.param(3600, 3540, id="long: the last minute is for the program"),
        pytest.param(100, 90, id="short: the last tenth is"),
        pytest.param(-5, 0, id="over already"),
    ],
)
def test_a_program_is_run_again_before_its_token_ends(
    tmp_path: Path, lifetime_s: int, fresh_for_s: int
) -> None:
    code = f"""
import datetime as dt
end = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds={lifetime_s})
status = {{"token": "abc", "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ")}}
api_version = "client.authentication.k8s.io/v1"
print(json.dumps({{"apiVersion": api_version, "kind": "ExecCredential", "status": status}}))
"""
    script = tmp_path / "plugin.py"
    script.write_text(f"import json\n{code}")
    plugin_ = ExecPlugin(
        "test", sys.executable, "client.authentication.k8s.io/v1", args=(str(script),)
    )
    grant = asyncio.run(plugin_.obtain())
    # The program rounds to seconds, and a loaded machine takes some to start it.
    assert fresh_for_s - 30 <= grant.fresh_for_s <= fresh_for_s + 1
    assert grant.valid_for_s >= grant.fresh_for_s

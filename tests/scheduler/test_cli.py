from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scheduler import cli, run_command
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import free_ports
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("interpreter_as_it_is")

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: k, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: abc}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
"""


@pytest.fixture(autouse=True)
def logs_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log configuration is the process's: other tests have theirs."""
    monkeypatch.setattr(run_command, "configure_logging", lambda log_format, level: None)


@pytest.fixture
def nobody_there(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.format(port=free_ports(1)[0]))
    return str(path)


def test_version_is_the_distribution_s(capsys):
    assert cli.main(["version"]) == 0
    assert re.fullmatch(r"berth \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_threads_of_a_scheduler_get_the_interpreter_soon(tmp_path):
    assert cli.main(["run", "--config", str(tmp_path / "none.yaml")]) == 1
    assert sys.getswitchinterval() == pytest.approx(0.002)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no command"),
        pytest.param(["fly"], id="no such command"),
        pytest.param(["run", "--bogus"], id="no such flag"),
        pytest.param(["run", "--assumed-pod-ttl", "soon"], id="not a number"),
        pytest.param(["run", "--leader-elect", "perhaps"], id="not a boolean"),
        pytest.param(["check-config"], id="no file"),
    ],
)
def test_wrong_usage_is_told_with_exit_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: berth" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["run", "--config", "/no/such/file"], "/no/such/file", id="no such config"),
        pytest.param(["run", "--kubeconfig", "/no/such/file"], "/no/such/file", id="no kubeconfig"),
        pytest.param(
            ["run", "--config", "x", "--scheduler-name", "y"], "contradicts", id="two names"
        ),
        pytest.param(["run", "--node-selector", "a in b"], "a in b", id="no selector"),
        pytest.param(["run", "--pool", "a"], "--node-selector", id="a pool of all nodes"),
        pytest.param(["check-config", "/no/such/file"], "/no/such/file", id="nothing to check"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(arguments, told, capsys):
    assert cli.main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("berth: ")
    assert told in err
    assert err.count("\n") == 1


def test_an_unreachable_server_is_told_in_one_sentence(nobody_there, capsys):
    assert cli.main(["run", "--kubeconfig", nobody_there, "--log-level", "error"]) == 1
    err = capsys.readouterr().err
    assert "gives no answer" in err
    assert err.count("\n") == 1


def test_check_config_prints_what_a_file_comes_to(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: packer}]\n"
    )
    assert cli.main(["check-config", str(file)]) == 0
    assert "schedulerName: packer" in capsys.readouterr().out


def test_check_config_names_the_path_of_a_mistake(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: packer, pluginConfig: [{name: NodeResourcesFit, "
        "args: {scoringStrategy: {type: Tightest}}}]}]\n"
    )
    assert cli.main(["check-config", str(file)]) == 1
    assert "profiles[0].pluginConfig[0].args.scoringStrategy.type" in capsys.readouterr().err


@pytest.mark.controlplane
def test_denied_permissions_are_told_in_one_sentence(control_plane, capsys):
    kubeconfig = str(control_plane.kubeconfig_of("system:kube-controller-manager"))
    assert cli.main(["run", "--kubeconfig", kubeconfig, "--log-level", "error"]) == 1
    err = capsys.readouterr().err
    assert "create pods/binding in all namespaces" in err
    assert err.count("\n") == 1


@pytest.mark.controlplane
def test_sigterm_settles_what_is_under_way_and_ends_with_0(fresh_control_plane):
    plane = fresh_control_plane
    command = [sys.executable, "-m", "scheduler", "run", "--secure-port", "0"]
    command += ["--leader-elect", "false"]
    command += ["--kubeconfig", str(plane.berth_kubeconfig())]
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node(f"n{i}", cpu="64") for i in range(10)])
        api.create_many([make_pod(f"p{i:04}", cpu="10m") for i in range(1000)])
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            api.run(api.client.wait_bound(50))
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, log
        assert '"unsettled_bindings":0' in log
        bound = [pod for pod in api.pods() if pod["spec"].get("nodeName")]
        scheduled = [
            pod
            for pod in bound
            if {"type": "PodScheduled", "status": "True"}.items()
            <= {k: v for c in pod["status"]["conditions"] for k, v in c.items()}.items()
        ]
        assert len(scheduled) == len(bound) < 1000

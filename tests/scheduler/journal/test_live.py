"""A journal of the program on a real API server."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scheduler.cli import main
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.controlplane
def test_what_a_real_run_recorded_comes_out_equal(
    fresh_control_plane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plane, directory = fresh_control_plane, tmp_path / "journal"
    command = [sys.executable, "-m", "scheduler", "run", "--secure-port", "0"]
    command += ["--leader-elect", "false", "--journal", str(directory)]
    command += ["--kubeconfig", str(plane.berth_kubeconfig())]
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node(f"n{i}", cpu="64") for i in range(10)])
        api.create_many([make_pod(f"p{i:04}", cpu="10m") for i in range(200)])
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            api.run(api.client.wait_bound(200))
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, log
    assert main(["replay", str(directory)]) == 0
    told = capsys.readouterr().out
    assert "200 came out equal" in told
    assert "journal of cluster unknown" not in told

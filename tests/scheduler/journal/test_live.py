"""A journal of the program on a real API server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scheduler.cli import main
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.replicas import LEADS, STANDS_BY, Replica, wait_until

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


@pytest.mark.controlplane
def test_the_journals_of_an_old_and_of_a_new_leader_come_out_equal(
    fresh_control_plane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plane, replicas = fresh_control_plane, []
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node(f"n{i}", cpu="64") for i in range(10)])
        try:
            for number in (1, 2):
                journal = tmp_path / f"journal-{number}"
                replica = Replica(plane, number, flags=["--journal", str(journal)])
                replicas.append(replica)
                ready = LEADS if number == 1 else STANDS_BY
                wait_until(lambda r=replica, e=ready: r.has_said(e), f"{replica} is {ready}")  # type: ignore[misc]
            old, new = replicas
            api.create_many([make_pod(f"p{i:04}", cpu="10m") for i in range(100)])
            # The journal is behind by a tenth of a second; the first pods are in it by then.
            wait_until(lambda: _bytes_of(tmp_path / "journal-1") > 1000, "it has written")
            api.run(api.client.wait_bound(100))
            old.signal(signal.SIGKILL)
            api.create_many([make_pod(f"q{i:04}", cpu="10m") for i in range(100)])
            api.run(api.client.wait_bound(200))
            new.signal(signal.SIGTERM)
            wait_until(lambda: new.exit_status is not None, "the new leader ends")
        finally:
            for replica in replicas:
                replica.end()
    for number in (1, 2):
        assert main(["replay", str(tmp_path / f"journal-{number}"), "-o", "json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["different"] for each in told] == [0, 0]
    assert told[0]["cluster"] == told[1]["cluster"]
    assert told[0]["equal"]
    assert told[1]["equal"] == 100


def _bytes_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*"))

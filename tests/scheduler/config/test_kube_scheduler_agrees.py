"""kube-scheduler itself reads the same files: what it takes we take, and understand alike."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scheduler.config import effective_profiles, load_config
from tests.controlplane.binaries import find_or_build

FILES = Path(__file__).parent / "files"
VALID = sorted((FILES / "valid").iterdir())
BROKEN = sorted((FILES / "broken").iterdir())

ELSEWHERE = "/etc/kubernetes/scheduler.conf"

TAKEN_BY_KUBE_SCHEDULER = {"two-documents.yaml"}
"""Broken files that it does not refuse: it reads the first document and drops the rest."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
"""

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    return find_or_build(["kube-scheduler"])["kube-scheduler"]


def dump_of(kube_scheduler: Path, file: Path, folder: Path) -> Path | None:
    """Let kube-scheduler write what it understands; None if it refuses the file.

    It talks to no API server for that.
    """
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    config = folder / file.name
    config.write_text(file.read_text().replace(ELSEWHERE, str(kubeconfig)))
    dump = folder / "dump.yaml"
    process = subprocess.run(
        [
            kube_scheduler,
            f"--config={config}",
            f"--write-config-to={dump}",
            "--master=http://127.0.0.1:1",
            "--secure-port=0",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if process.returncode == 0:
        return dump
    assert "command failed" in process.stderr, process.stderr
    return None


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in VALID])
def test_it_takes_what_we_take_and_its_own_words_mean_the_same(
    path: Path, kube_scheduler: Path, tmp_path: Path
) -> None:
    dump = dump_of(kube_scheduler, path, tmp_path)
    assert dump is not None
    ours = effective_profiles(load_config(path))
    theirs = effective_profiles(load_config(dump))
    for one, other in zip(ours, theirs, strict=True):
        assert other.points == one.points
        assert other.score_weights == one.score_weights
        assert other.percentage_of_nodes_to_score == one.percentage_of_nodes_to_score


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in BROKEN])
def test_it_refuses_what_we_refuse(path: Path, kube_scheduler: Path, tmp_path: Path) -> None:
    taken = dump_of(kube_scheduler, path, tmp_path) is not None
    assert taken == (path.name in TAKEN_BY_KUBE_SCHEDULER)

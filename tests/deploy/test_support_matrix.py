"""The API servers that the README promises, as kube-apiserver 1.36 emulates the older ones.

Emulation turns features and APIs to what they were; it is the same program all the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.binaries import module_version
from tests.controlplane.control_plane import ControlPlane
from tests.deploy.chart import CHART, ROOT
from tests.deploy.eventful_life import live_on
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY

if TYPE_CHECKING:
    from collections.abc import Sequence

README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("## Supported clusters")[2].partition("\n## ")[0]
VERSIONS = re.findall(r"^\| (1\.\d+) \|", TABLE, re.MULTILINE)
GATES = re.findall(r"^\| `(\w+)` \|", TABLE, re.MULTILINE)


def test_the_newest_is_the_one_that_is_built() -> None:
    newest = module_version("k8s.io/kubernetes").removeprefix("v").rpartition(".")[0]
    assert max(VERSIONS, key=lambda version: int(version[2:])) == newest


def test_the_chart_asks_for_the_oldest() -> None:
    oldest = min(VERSIONS, key=lambda version: int(version[2:]))
    chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    assert f'kubeVersion: ">={oldest}.0-0"' in chart


@pytest.mark.controlplane
@pytest.mark.parametrize(
    "flags",
    [
        *(pytest.param([f"--emulated-version={each}"], id=each) for each in VERSIONS),
        pytest.param(["--feature-gates=AllBeta=false"], id="no-beta-gate"),
    ],
)
def test_berth_lives_on_it(controlplane_binaries: None, flags: Sequence[str]) -> None:
    with ControlPlane(extra_apiserver_args=flags) as plane:
        assert live_on(plane, by_resource=False).refused == ()
        apply = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", DEPLOY)
        assert kubectl(*apply, kubeconfig=plane.admin_kubeconfig)[1] == ""


@pytest.mark.controlplane
def test_the_gates_that_are_told_of_exist(control_plane: ControlPlane) -> None:
    metrics = control_plane.call("GET", "/metrics")["text"]
    known = set(re.findall(r'kubernetes_feature_enabled\{name="(\w+)"', metrics))
    assert set(GATES) <= known

"""``berth explain`` against a real API server, with berth's own rights."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from scheduler.cli import main
from tests.controlplane.objects import make_namespace, make_node, make_pod

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane


def test_a_pod_of_a_running_cluster_is_explained(
    fresh_control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    call = fresh_control_plane.call
    namespace = f"explain-{uuid.uuid4().hex[:8]}"
    call("POST", "/api/v1/namespaces", make_namespace(namespace))
    for name in ("n1", "n2"):
        call("POST", "/api/v1/nodes", make_node(name))
    call("POST", f"/api/v1/namespaces/{namespace}/pods", make_pod("web", namespace=namespace))
    kubeconfig = str(fresh_control_plane.berth_kubeconfig())
    arguments = ["--kubeconfig", kubeconfig, "--pod", f"{namespace}/web", "-o", "json"]
    assert main(["explain", *arguments]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(answer["nodes"]) == ["n1", "n2"]
    assert all("total" in verdict for verdict in answer["nodes"].values())

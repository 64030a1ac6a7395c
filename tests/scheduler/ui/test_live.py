"""``berth ui`` against a real API server, with berth's own rights."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from tests.controlplane.objects import make_namespace, make_node, make_pod

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane


def test_a_running_cluster_is_shown_and_listed_again(fresh_control_plane: ControlPlane) -> None:
    call = fresh_control_plane.call
    namespace = f"ui-{uuid.uuid4().hex[:8]}"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    call("POST", "/api/v1/namespaces", make_namespace(namespace))
    call("POST", "/api/v1/nodes", make_node("n1"))
    call("POST", pods, make_pod("first", namespace=namespace))
    kubeconfig = str(fresh_control_plane.berth_kubeconfig())
    command = [sys.executable, "-m", "scheduler", "ui", "--kubeconfig", kubeconfig, "--refresh=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()

            def shown(path: str) -> str:
                with urlopen(f"{address}{path}") as response:
                    text: str = response.read().decode()
                    return text

            assert "1 of 1 nodes can run it" in shown(f"pods/{namespace}/first")
            assert "listed at" in shown("nodes")
            call("POST", pods, make_pod("second", namespace=namespace))
            deadline = time.monotonic() + 120
            while "second" not in shown("pending"):
                # Each visit lists again once the last list is a second old.
                assert time.monotonic() < deadline
        finally:
            process.terminate()

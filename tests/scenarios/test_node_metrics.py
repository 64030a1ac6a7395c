"""From a measured node to a bound pod: a real Prometheus, a real API server, and LoadAware."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config import with_election
from scheduler.config.load import parse_config
from scheduler.node_metrics import MetricQuery, MetricSource, NodeMetricsConfig
from scheduler.profiles.available_plugins import PluginSupply, SupplyOptions
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth
from tests.scheduler.node_metrics.debian_prometheus import DebianPrometheus, Exporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.controlplane

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: berth
    plugins:
      multiPoint:
        enabled: [{name: LoadAware, weight: 100}]
    pluginConfig:
      - {name: LoadAware, args: {target: 0.4}}
"""
PAGE = 'cpu_utilization{node="measured-well"} 0.3\ncpu_utilization{node="measured-busy"} 0.9\n'


@pytest.fixture(scope="module")
def own_plane(controlplane_binaries) -> Iterator[ControlPlane]:
    """A control plane that only this module uses."""
    with ControlPlane() as plane:
        yield plane


@contextlib.contextmanager
def prometheus(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Give the address of a Prometheus, and what stops the page that it scrapes."""
    with contextlib.ExitStack() as stack:
        exporter = Exporter(PAGE)
        stopping = stack.enter_context(contextlib.ExitStack())
        stopping.callback(exporter.stop)
        server = DebianPrometheus(folder, exporter.address)
        stack.callback(server.stop)
        yield server.url, stopping.close


def home(api: BlockingApi, name: str) -> str:
    """Wait until a pod is bound, and return its node."""

    def found() -> list[str]:
        return [
            pod["spec"]["nodeName"]
            for pod in api.pods()
            if pod["metadata"]["name"] == name and pod["spec"].get("nodeName")
        ]

    api.wait_until(lambda: bool(found()), f"{name} is bound")
    return found()[0]


def test_pods_follow_measurements_and_without_any_requests(own_plane, tmp_path):
    supply = PluginSupply(SupplyOptions(installed=True))
    config = with_election(parse_config(PROFILE, "", supply.plugins()), leader_elect=False)
    with (
        prometheus(tmp_path) as (url, stop_page),
        BlockingApi(own_plane.admin_kubeconfig) as api,
    ):
        metric = MetricQuery("cpu_utilization", "cpu_utilization")
        source = MetricSource(
            url, (metric,), interval=GoDuration(100_000_000), stale_after=duration_of_seconds(60)
        )
        berth = RunningBerth(
            own_plane.berth_kubeconfig(),
            config=config,
            supply=supply,
            node_metrics=NodeMetricsConfig((source,)),
        )

        def known(count: int) -> bool:
            body, _ = berth.app.metrics.render()
            line = f'berth_node_metric_nodes{{metric="cpu_utilization"}} {count}'
            return line in body.decode().splitlines()

        names = ("measured-well", "measured-busy")
        api.create_many([make_node(name, cpu="10") for name in names])
        api.create_many([make_pod("there", cpu="3", nodeName="measured-busy")])
        with berth:
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            api.wait_until(lambda: known(2), "both nodes are measured")
            api.create_many([make_pod("measured", cpu="1")])
            assert home(api, "measured") == "measured-well"
            stop_page()
            api.wait_until(lambda: known(0), "nothing is measured any more")
            api.create_many([make_pod("unmeasured", cpu="1")])
            assert home(api, "unmeasured") == "measured-busy"

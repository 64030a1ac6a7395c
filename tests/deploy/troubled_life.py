"""What a berth with SchedulingProfiles, plugins and node metrics says, well and in trouble.

A life apart from :mod:`tests.deploy.eventful_life`: there what every berth does has to use every
right, without the help of an operator that only some have.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config.load import load_config
from scheduler.node_metrics import NodeMetricsConfig
from scheduler.profiles.available_plugins import PluginSupply, SupplyOptions
from scheduler.profiles.config_reload import ConfigSource
from scheduler.profiles.operator import OperatorOptions
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import SchedulingProfiles
from tests.scenarios.running_berth import RunningBerth
from tests.scheduler.node_metrics.scripted_prometheus import Reply, ScriptedPrometheus, of_nodes

PLUGIN: Final = "Moody"
METRIC: Final = "load"

_PYTHON: Final = """
class Moody:
    def filter_one(self, pod, node):
        if "bad-day" in pod.labels:
            raise ValueError("not today")
        return True
"""
_CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
  - schedulerName: berth
    plugins: {multiPoint: {enabled: [{name: Moody}]}}
"""
_NO_PLUGIN: Final = {"plugins": {"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}}

_KOPF: Final = "berth_kopf_up"
_ACTIVE: Final = 'berth_scheduling_profiles{state="active"}'
_DEGRADED: Final = 'berth_scheduling_profiles{state="degraded"}'
_SWITCHED_OFF: Final = f'berth_plugin_breaker_open{{plugin="{PLUGIN}"}}'
_PASSED_OVER: Final = f'berth_plugin_passed_over_total{{plugin="{PLUGIN}"}}'
_MEASURED: Final = f'berth_node_metric_nodes{{metric="{METRIC}"}}'
_IN_FORCE: Final = "berth_config_last_reload_successful"


@dataclass(frozen=True)
class TroubledLife:
    """What was left behind: all metrics, in Prometheus's format, as they were at three times.

    Attributes
    ----------
    well
        A SchedulingProfile is in force, a plugin has answered, a node is measured.
    troubled
        The SchedulingProfile's new generation cannot be used, nor can the configuration file; the
        plugin is switched off, and what was measured is too old.
    unwatched
        The kind SchedulingProfile is gone besides.
    """

    well: str
    troubled: str
    unwatched: str


def live() -> TroubledLife:
    """Live on a control plane of its own."""
    with (
        ControlPlane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        tempfile.TemporaryDirectory() as folder,
    ):
        prometheus = ScriptedPrometheus({METRIC: lambda: of_nodes(n1=0.5)})
        api.run(prometheus.start())
        try:
            return _live_on(plane, api, prometheus, Path(folder))
        finally:
            api.run(prometheus.stop())


def _live_on(
    plane: ControlPlane, api: BlockingApi, prometheus: ScriptedPrometheus, folder: Path
) -> TroubledLife:
    kubeconfig = plane.berth_kubeconfig()
    profiles = SchedulingProfiles(plane)
    profiles.install()
    profiles.create("followed", {"schedulerName": "followed"})
    api.create_many([make_node("n1")])
    with _berth(kubeconfig, prometheus, folder) as berth:
        api.create_many([make_pod("good", cpu="10m")])
        api.wait_bound(1)
        well = _told(
            api,
            berth,
            {_KOPF: 1, _ACTIVE: 1, _DEGRADED: 0, _SWITCHED_OFF: 0, _MEASURED: 1, _IN_FORCE: 1},
        )
        profiles.patch("followed", _NO_PLUGIN)
        (folder / "berth.yaml").write_text("profiles: none")
        prometheus.script[METRIC] = lambda: Reply(status=500)
        # Their failures are too many; from then on they are placed without the plugin.
        api.create_many([make_pod(f"bad-{i}", cpu="10m", labels={"bad-day": ""}) for i in range(5)])
        api.wait_bound(6)
        troubled = _told(
            api,
            berth,
            {_KOPF: 1, _ACTIVE: 1, _DEGRADED: 1, _SWITCHED_OFF: 1, _MEASURED: 0, _IN_FORCE: 0},
        )
        assert values(troubled)[_PASSED_OVER] > values(well)[_PASSED_OVER]
        profiles.remove_kind()
        return TroubledLife(well, troubled, _told(api, berth, {_KOPF: 0}))


def _berth(kubeconfig: Path, prometheus: ScriptedPrometheus, folder: Path) -> RunningBerth:
    file = folder / "berth.yaml"
    file.write_text(_CONFIG)
    (folder / "plugins").mkdir()
    (folder / "plugins" / "moody.py").write_text(_PYTHON)
    supply = PluginSupply(SupplyOptions(directory=folder / "plugins"))
    source = ConfigSource(lambda: load_config(file, supply.plugins()), file)
    measured = prometheus.source(
        METRIC, interval=GoDuration(100_000_000), stale_after=duration_of_seconds(3)
    )
    return RunningBerth(
        kubeconfig,
        config=source.read(),
        source=source,
        supply=supply,
        operator=OperatorOptions(enabled=True),
        node_metrics=NodeMetricsConfig((measured,)),
    )


def _told(api: BlockingApi, berth: RunningBerth, expected: dict[str, float]) -> str:
    """Wait until berth exposes all of this at once; return everything that it exposes then."""
    text = ""

    def is_told() -> bool:
        nonlocal text
        text = berth.app.metrics.render()[0].decode()
        return expected.items() <= values(text).items()

    api.wait_until(is_told, f"it is told that {expected}", timeout_s=180)
    return text


def values(text: str) -> dict[str, float]:
    """Return the value of each series, by its name and labels as they are exposed."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}

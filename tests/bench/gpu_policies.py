"""The policies that are held against each other, as configuration files say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.examples.gpu_fragmentation import GpuFragmentation
from plugins.examples.tightest_fit import TightestFit
from plugins.policy import adapt
from plugins.registry import PLUGINS
from scheduler.config import effective_profiles, parse_config
from scheduler.plugin_handle import PluginHandle
from scheduler.profile_builder import build_profiles
from scheduler.waiting_pods import WaitingPods
from tests.bench.gpu_trace import GPU, MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from plugins.examples.gpu_fragments import GpuShape
    from scheduler.framework_runner import FrameworkRunner

POLICIES: Final = ("default", "best-fit", "fgd", "fgd-learned")

_ONLY: Final = {"disabled": [{"name": "*"}]}

_TIGHTEST: Final = {"name": "TightestFit", "args": {"resources": {"cpu": 1, GPU: 1}}}


def framework(policy: str, typical: Mapping[GpuShape, float]) -> FrameworkRunner:
    """Return the running profile of a policy; ``typical`` is what ``fgd`` takes the workload for.

    All of them refuse nodes on which no single GPU has enough for a share: without that the
    figures would not be of anything that can run. ``default`` and ``best-fit`` cut a share from
    the tightest GPU of the node that they choose.
    """
    plugins = {**PLUGINS}
    for cls in (GpuFragmentation, TightestFit):
        plugins[cls.__name__] = adapt(cls)
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "berth", **_profile(policy, typical)}],
    }
    config = parse_config(yaml.safe_dump(document), policy, plugins)
    profiles = build_profiles(effective_profiles(config, plugins), plugins, _handle())
    found = profiles.get("berth")
    assert found is not None
    return found


def _profile(policy: str, typical: Mapping[GpuShape, float]) -> dict[str, Any]:
    gpu: dict[str, Any] = {"resource": GPU, "modelLabel": MODEL}
    # Nobody is evicted in these runs: every pod is as important as all others.
    plugins: dict[str, Any] = {
        "filter": {"enabled": [{"name": "GpuFragmentation"}]},
        "postFilter": _ONLY,
    }
    if policy == "default":
        gpu["device"] = "tightest"
        configured = [{"name": "GpuFragmentation", "args": gpu}]
    else:
        plugins["preScore"] = _ONLY
        scoring = [{"name": "TightestFit", "weight": 1}]
        if policy == "best-fit":
            gpu["device"] = "tightest"
        else:
            # A hundred to one: what is left decides among nodes that are as good for others.
            scoring.append({"name": "GpuFragmentation", "weight": 100})
        if policy == "fgd":
            gpu["popularity"] = 1.0
            gpu["typicalPods"] = [
                {
                    "gpuMilli": shape.demand_milli,
                    "cpuMilli": shape.cpu_milli,
                    "weight": weight,
                    "models": sorted(shape.models),
                }
                for shape, weight in typical.items()
            ]
        plugins["score"] = {**_ONLY, "enabled": scoring}
        configured = [{"name": "GpuFragmentation", "args": gpu}, _TIGHTEST]
    return {"plugins": plugins, "pluginConfig": configured}


class _Nobody:
    """Does what is never asked for here: nothing is bound, written or evicted."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} in a simulation")


def _handle() -> PluginHandle:
    nobody = _Nobody()
    return PluginHandle(
        binder=nobody,
        namespaces=Namespaces(),
        workloads=Workloads(),
        disruption_budgets=DisruptionBudgets(),
        storage=Storage(),
        storage_writer=nobody,
        waiting_pods=WaitingPods(),
        live_node=lambda name: None,
    )

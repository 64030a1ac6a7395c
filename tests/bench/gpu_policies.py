"""The policies that are held against each other, as configuration files say them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import yaml

from cache.known import Known
from plugins.authoring import adapt
from plugins.examples.gpu_fragmentation import GpuFragmentation
from plugins.examples.tightest_fit import TightestFit
from plugins.registry import PLUGINS
from scheduler.config import effective_profiles, parse_config
from scheduler.queueing import QueueRules, SchedulingQueue
from scheduler.runtime.known_pods import KnownPods
from scheduler.runtime.plugin_handle import PluginActions, PluginServices
from scheduler.runtime.waiting_pods import WaitingPods
from tests.bench.gpu_trace import GPU, MODEL
from tests.fakes.nobody import Nobody
from tests.fakes.watched import FakeWatched
from tests.profiles import build_profiles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from plugins.examples.gpu_fragments import GpuShape
    from scheduler.runtime.framework_runner import FrameworkRunner

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
    profiles = build_profiles(effective_profiles(config, plugins), plugins, _services())
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


def _services() -> PluginServices:
    nobody, known = Nobody(), Known.nothing()
    rules = QueueRules(nobody, nobody, nobody)
    pods = KnownPods(known.cache, SchedulingQueue(rules, time.monotonic), WaitingPods())
    actions = PluginActions(nobody, nobody, nobody, nobody, nobody)
    return PluginServices(known, FakeWatched(), pods, actions)

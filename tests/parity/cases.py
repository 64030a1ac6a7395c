"""Whole questions: a cluster, a pod, a configuration; of three kinds.

To draw a cluster takes ten times as long as to answer a question about it, so each is asked
about several pods.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from hypothesis import strategies as st

from tests.parity.configurations import configurations
from tests.parity.nodes import nodes
from tests.parity.pod_terms import workloads
from tests.parity.pod_volumes import pod_volumes
from tests.parity.pods import pending_pods, placed_pods, quiet_pods
from tests.parity.storage import storage
from tests.parity.storage_words import BETA_ZONE, EBS_ZONE, ZONES
from tests.parity.tenants import TASTES, budgets, full_nodes, nominated_pods, preemptors
from tests.parity.vocabulary import (
    EVEN,
    LIKELY,
    NAMESPACE_LABELS_STRATEGY,
    NAMESPACES,
    NODE_NAMES,
    SELDOM,
    Json,
    chance,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERS_OF_NODES = st.sampled_from([3, 1, 2, 4, 5, 6, 7, 8, *range(2, 9), 0])


QUESTIONS = 5
"""Questions about one cluster."""


@st.composite
def _asked(draw: st.DrawFn) -> Json:
    config = draw(configurations())
    asked: Json = {"pod": draw(pending_pods())}
    return asked if config is None else {**asked, "config": config}


_ASKED = st.lists(_asked(), min_size=1, max_size=2 * QUESTIONS)


@st.composite
def _namespaces(draw: st.DrawFn) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": draw(NAMESPACE_LABELS_STRATEGY)},
        }
        for name in NAMESPACES
    ]


@st.composite
def _about_everything(draw: st.DrawFn) -> list[Json]:
    names = NODE_NAMES[: draw(_NUMBERS_OF_NODES)]
    objects: list[Json] = draw(_namespaces())
    sound = draw(EVEN)
    objects += [draw(nodes(name, sound=sound)) for name in names]
    objects += draw(workloads())
    if names:
        hosts = draw(st.lists(st.sampled_from(names), min_size=3 if sound else 0, max_size=10))
        objects += [
            draw(placed_pods(f"placed-{index}", host, plain=sound))
            for index, host in enumerate(hosts)
        ]
    return [{"objects": objects, **asked} for asked in draw(_ASKED)]


# --- volumes ------------------------------------------------------------------------------------

_FEW_NODES = st.sampled_from([2, 3, 1, 4, 5, 6])
_FEW_PODS = st.integers(0, 8)
_HOSTS = st.sampled_from(NODE_NAMES[:6])
_ZONE = st.sampled_from(ZONES)
_LOW_PRIORITIES = st.sampled_from([0, 0, 5, -10, 10])
_ASKED_PRIORITIES = st.sampled_from([10, 10, 10, 0])
_OTHER_THINGS = chance(15)
_QUIET = st.lists(quiet_pods("asked"), min_size=1, max_size=2 * QUESTIONS)


@st.composite
def _about_volumes(draw: st.DrawFn) -> list[Json]:
    names = NODE_NAMES[: draw(_FEW_NODES)]
    objects: list[Json] = draw(_namespaces())
    for name in names:
        node = draw(nodes(name, sound=True))
        if draw(SELDOM):
            node["metadata"]["labels"][BETA_ZONE] = draw(_ZONE)
        if draw(SELDOM):
            node["metadata"]["labels"][EBS_ZONE] = draw(_ZONE)
        objects.append(node)
    placed: list[Json] = []
    for index in range(draw(_FEW_PODS)):
        pod = draw(quiet_pods(f"placed-{index}"))
        pod["spec"] |= {"nodeName": draw(_HOSTS), "priority": draw(_LOW_PRIORITIES)}
        pod["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{index * 17 % 60:02}:00Z"}
        if draw(LIKELY):
            pod["spec"]["volumes"] = draw(pod_volumes())
        placed.append(pod)
    objects += [*placed, *draw(storage(names, placed))]
    asked = []
    for pod in draw(_QUIET):
        if draw(_OTHER_THINGS):
            one = draw(_asked())
            one["pod"]["metadata"]["namespace"] = "default"
        else:
            one = {"pod": pod}
        spec = {**one["pod"]["spec"], "priority": draw(_ASKED_PRIORITIES)}
        spec["volumes"] = draw(pod_volumes())
        one["pod"] = {**one["pod"], "spec": spec}
        asked.append({"objects": objects, **one})
    return asked


# --- preemption ---------------------------------------------------------------------------------

_BUDGETS = st.sampled_from([1, 2, 3, 0])
_NOMINATED = st.sampled_from([0, 0, 0, 1, 2])
_CONFIGURED = chance(8)
_NO_PREEMPTION: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}},
        }
    ],
}
_CONFIGURATIONS = st.one_of(st.just(_NO_PREEMPTION), *[configurations()] * 3)


@st.composite
def _about_preemption(draw: st.DrawFn) -> list[Json]:
    names = NODE_NAMES[: draw(_FEW_NODES)]
    taste = draw(TASTES)
    objects: list[Json] = draw(_namespaces())
    objects += draw(full_nodes(names, taste))
    objects += [draw(budgets(f"budget-{index}")) for index in range(draw(_BUDGETS))]
    objects += [
        draw(nominated_pods(f"nominated-{index}", names, taste))
        for index in range(draw(_NOMINATED))
    ]
    if taste.volumes:
        objects += draw(storage(names, [each for each in objects if each["kind"] == "Pod"]))
    asked = []
    for pod in draw(st.lists(preemptors(names, taste), min_size=1, max_size=2 * QUESTIONS)):
        config = draw(_CONFIGURATIONS) if draw(_CONFIGURED) else None
        question: Json = {"objects": objects, "pod": pod}
        asked.append(question if config is None else {**question, "config": config})
    return asked


Questions: TypeAlias = st.SearchStrategy[list[Json]]

QUESTIONS_OF: Final[Mapping[str, Questions]] = MappingProxyType(
    {
        "verdicts": _about_everything(),
        "volumes": _about_volumes(),
        "preemption": _about_preemption(),
    }
)
"""Questions about one cluster, as the oracle and ``berth explain --batch`` read them, by kind."""

DEVICES: Final = "devices"
"""The kind of questions that :mod:`tests.parity.device_pods` draws."""

"""What the page of GpuFragmentation shows: a table that comes out so, a profile that is taken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plugins.authoring import adapt
from plugins.examples.gpu_fragmentation import GpuFragmentation
from plugins.examples.tightest_fit import TightestFit
from plugins.registry import PLUGINS
from scheduler.config.load import parse_config
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked

GPU = "scheduling.berth.dev/gpu-milli"
DEVICES = "scheduling.berth.dev/gpu-devices"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "gpu-fragmentation.md"


def rows():
    example = PAGE.read_text().split("## A worked example", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"^\|(.*)\|$", example, re.MULTILINE)
    cells = [[cell.strip(" `") for cell in line.split(" | ")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def with_left(row):
    """Return a node of two GPUs, and the pods that leave so much of each."""
    name = row["node"]
    left = [int(each) for each in row["left of its GPUs"].split(" and ")]
    pods = [
        pod(f"{name}-{at}").request({GPU: str(1000 - each)})._meta(annotations={DEVICES: str(at)})
        for at, each in enumerate(left)
        if each < 1000
    ]
    return node(name).capacity({GPU: "2000"}), [each.on(name) for each in pods]


@pytest.fixture
def asked():
    worlds = [with_left(row) for row in rows()]
    workload = [{"gpuMilli": 500, "cpuMilli": 1000}]
    made = Asked(GpuFragmentation, *(host for host, _ in worlds), typicalPods=workload)
    made.place(*(each for _, pods in worlds for each in pods))
    return made


def test_the_scores_of_the_worked_example(asked):
    scores = asked.scores(pod("new").request({GPU: "300"}))
    assert scores == {row["node"]: int(row["score"]) for row in rows()}


def test_what_grows_is_the_difference():
    for row in rows():
        grown = int(row["fragment after"]) - int(row["fragment before"])
        assert grown == int(row["grows by"])


def test_the_profile_is_taken():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    plugins = {**PLUGINS, **{cls.__name__: adapt(cls) for cls in (GpuFragmentation, TightestFit)}}
    assert parse_config(text, "", plugins).profiles

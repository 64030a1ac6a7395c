"""What the examples' pages show: tables that come out so, configurations that are taken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from plugins.authoring import adapt
from plugins.examples.headroom import Headroom
from plugins.examples.load_aware import LoadAware
from plugins.examples.node_cost import NodeCost
from plugins.examples.rack_spread import RackSpread
from plugins.registry import PLUGINS
from scheduler.config.load import parse_config
from scheduler.node_metrics.configuration import parse_node_metrics
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked, Measured

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [
    *(DOCS / "examples" / f"{name}.md" for name in ("rack-spread", "node-cost", "load-aware")),
    DOCS / "examples" / "headroom.md",
    DOCS / "node-metrics.md",
]
CLASSES = (Headroom, LoadAware, NodeCost, RackSpread)


def rows_of(page: str) -> list[dict[str, str]]:
    """Return the rows of a page's worked example, by the headings of its table."""
    example = (DOCS / "examples" / page).read_text().split("## A worked example", 1)[1]
    lines = re.findall(r"^\|(.*)\|$", example.split("\n## ", 1)[0], re.MULTILINE)
    cells = [[cell.strip(" `") for cell in line.split(" | ")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def column(rows: list[dict[str, str]], heading: str) -> dict[str, int]:
    return {row["node"]: int(row[heading]) for row in rows}


def blocks(kind: str) -> list[Any]:
    found = [
        (page, block)
        for page in PAGES
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
        if f"kind: {kind}" in block
    ]
    return [pytest.param(block, id=page.stem) for page, block in found]


@pytest.mark.parametrize("text", blocks("KubeSchedulerConfiguration"))
def test_a_profile_that_a_page_shows_is_taken(text):
    plugins = {**PLUGINS, **{cls.__name__: adapt(cls) for cls in CLASSES}}
    assert parse_config(text, "", plugins).profiles


@pytest.mark.parametrize("text", blocks("NodeMetricsConfiguration"))
def test_sources_that_a_page_shows_are_taken(text):
    assert parse_node_metrics(text, "").sources


def test_rack_spread():
    rows = rows_of("rack-spread.md")
    racked = [node(row["node"]).label("topology.kubernetes.io/rack", row["rack"]) for row in rows]
    asked = Asked(RackSpread, *racked)
    web = pod("new").label("app.kubernetes.io/name", "web")
    hosts = enumerate(["node-1", "node-1", "node-3"])
    asked.place(*(web.uid(f"uid-{number}").on(host) for number, host in hosts))
    assert asked.scores(web) == column(rows, "score")


@pytest.mark.parametrize("per", ["node", "cpu"])
def test_node_cost(per):
    rows = rows_of("node-cost.md")
    priced = [
        node(row["node"])
        .capacity(cpu=row["CPUs"])
        .label("example.com/cost-per-hour", row["cost per hour"])
        for row in rows
    ]
    expected = column(rows, f"score with `per: {per}")
    assert Asked(NodeCost, *priced, per=per).scores(pod()) == expected


def test_load_aware():
    rows = rows_of("load-aware.md")
    measured = {row["node"]: float(row["measured"]) for row in rows if row["measured"] != "unknown"}
    ten = [node(row["node"]).capacity(cpu="10") for row in rows]
    asked = Asked(LoadAware, *ten, handle=Measured(measured), target=0.4)
    for row in rows:
        there = pod(f"on-{row['node']}").request(cpu=row["requested"].removesuffix(" CPUs"))
        asked.place(there.on(row["node"]))
    assert asked.scores(pod("new").request(cpu="1")) == column(rows, "score")


@pytest.mark.parametrize(
    ("heading", "newcomer"),
    [
        pytest.param("another pod of 1 CPU", pod("new").request(cpu="1"), id="1 CPU"),
        pytest.param("another pod of 2 CPUs", pod("new").request(cpu="2"), id="2 CPUs"),
        pytest.param(
            "a critical pod of 2 CPUs",
            pod("new").request(cpu="2").label("example.com/workload-class", "critical"),
            id="critical",
        ),
    ],
)
def test_headroom(heading, newcomer):
    rows = rows_of("headroom.md")
    ten = [node(row["node"]).capacity(cpu="10") for row in rows]
    asked = Asked(Headroom, *ten, share={"cpu": 0.2})
    for row in rows:
        name = row["node"]
        asked.place(pod(f"other-{name}").request(cpu=row["CPUs of others"]).on(name))
        critical = pod(f"critical-{name}").request(cpu=row["CPUs of critical pods"])
        asked.place(critical.label("example.com/workload-class", "critical").on(name))
    refused = asked.refused(newcomer)
    told = {row["node"]: row[heading] for row in rows}
    assert {name: "no" if name in refused else "yes" for name in told} == told

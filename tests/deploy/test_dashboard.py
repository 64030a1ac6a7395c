"""The dashboard: every query is one that Prometheus takes and berth has an answer to."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.deploy.chart import CHART, only, rendered
from tests.deploy.promtool import promtool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.deploy.queries import Exposed

DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}

each_panel = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


@pytest.mark.parametrize(("query", "legend"), QUERIES)
def test_berth_has_what_it_asks_for(query: str, legend: str, exposed: Exposed) -> None:
    assert exposed.faults(query, legend) == []


@pytest.mark.parametrize(("query", "legend"), QUERIES)
def test_it_asks_for_the_chosen_job_and_no_other(query: str, legend: str) -> None:
    chosen = 'job=~"$job",namespace=~"$namespace",instance=~"$instance"'
    assert all(each.startswith(chosen) for each in re.findall(r"\{([^}]*)\}", query))


def test_prometheus_takes_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": each.values[0].replace("$__rate_interval", "5m")}
        for number, each in enumerate(QUERIES)
        if isinstance(each.values[0], str)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(QUERIES)} rules found" in promtool("check", "rules", file)


@pytest.mark.parametrize("name", ["job", "namespace", "instance"])
def test_what_can_be_chosen_comes_from_berths_metrics(name: str, exposed: Exposed) -> None:
    match = re.fullmatch(r"label_values\((\w+)(\{.*\})?, (\w+)\)", VARIABLES[name]["definition"])
    assert match is not None
    assert match[3] == name
    assert exposed.faults(f"{match[1]}{match[2] or '{}'}") == []


def test_the_preset_job_is_the_one_that_the_monitors_give() -> None:
    manifests = rendered({"metrics": {"serviceMonitor": {"enabled": True}}})
    label = only(manifests, "ServiceMonitor")["spec"]["jobLabel"]
    job = only(manifests, "Service")["metadata"]["labels"][label]
    assert VARIABLES["job"]["current"]["value"] == job


@each_panel
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


def test_no_panel_covers_another() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(place["x"] + place["w"] <= 24 for place in places)


def test_panels_are_told_apart() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_the_chart_ships_this_dashboard() -> None:
    manifests = rendered({"metrics": {"grafanaDashboard": {"enabled": True}}})
    (shipped,) = (
        each["data"]["berth.json"]
        for each in manifests
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].endswith("-dashboard")
    )
    assert json.loads(shipped) == DASHBOARD


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("up{}", id="up"),
        pytest.param("scheduler_schedule_attempts_total{result=x, profile=x}", id="rate"),
        pytest.param("scheduler_pending_pods{queue=x}", id="pending"),
        pytest.param(
            "scheduler_scheduling_attempt_duration_seconds_bucket{result=x, le=x}", id="attempts"
        ),
        pytest.param(
            "scheduler_scheduling_algorithm_duration_seconds_bucket{le=x}", id="decisions"
        ),
        pytest.param("scheduler_pod_scheduling_sli_duration_seconds_bucket{le=x}", id="bindings"),
        pytest.param("scheduler_framework_extension_point_duration_seconds_sum{}", id="points"),
        pytest.param("scheduler_plugin_execution_duration_seconds_count{plugin=x}", id="plugins"),
        pytest.param("scheduler_queue_incoming_pods_total{event=x, queue=x}", id="incoming"),
        pytest.param("rest_client_requests_total{code=x, method=x, host=x}", id="requests"),
        pytest.param(
            "rest_client_request_duration_seconds_bucket{verb=x, host=x, le=x}", id="latency"
        ),
        pytest.param("leader_election_master_status{name=x}", id="leader"),
        pytest.param("process_resident_memory_bytes{}", id="memory"),
        pytest.param("process_cpu_seconds_total{}", id="cpu"),
    ],
)
def test_dashboards_made_for_kube_scheduler_find_their_series(query: str, exposed: Exposed) -> None:
    assert exposed.faults(query) == []

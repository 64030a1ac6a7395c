"""The alerts: sound, tested one by one, each with its page and with metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.deploy.chart import CHART, ROOT, only, rendered
from tests.deploy.promtool import promtool
from tests.deploy.troubled_life import METRIC, PLUGIN, values

if TYPE_CHECKING:
    from tests.deploy.queries import Exposed
    from tests.deploy.troubled_life import TroubledLife

CASES = Path(__file__).parent / "alert_tests.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
ALERTS = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]

each_alert = pytest.mark.parametrize("alert", ALERTS)


def rules(**values: Any) -> dict[str, Any]:
    manifests = rendered({"metrics": {"prometheusRule": {"enabled": True}}, **values})
    spec = only(manifests, "PrometheusRule")["spec"]
    assert isinstance(spec, dict)
    return spec


def alerts_in(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for group in spec["groups"] for rule in group["rules"]]


def expectations(alert: str) -> list[bool]:
    """Return whether it is to fire, for each time that the tests look at it."""
    return [
        bool(expected.get("exp_alerts"))
        for case in yaml.safe_load(CASES.read_text())["tests"]
        for expected in case["alert_rule_test"]
        if expected["alertname"] == alert
    ]


@pytest.fixture(scope="module")
def rules_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(yaml.safe_dump(rules()))
    return path


@pytest.fixture(scope="module")
def bare_rules(rules_file: Path) -> Path:
    """The rules without their texts: what counts is who is told of what, and when."""
    bare = yaml.safe_load(rules_file.read_text())
    for rule in alerts_in(bare):
        del rule["annotations"]
    path = rules_file.with_name("bare.yaml")
    path.write_text(yaml.safe_dump(bare))
    return path


def test_prometheus_takes_the_rules(rules_file: Path) -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", rules_file)


def test_each_fires_and_is_silent_when_it_should(bare_rules: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.read_text().replace("[RULES]", f"[{bare_rules}]"))
    promtool("test", "rules", cases)


@each_alert
def test_its_firing_and_its_silence_are_tested(alert: str) -> None:
    assert set(expectations(alert)) == {True, False}


@each_alert
def test_it_has_a_page(alert: str) -> None:
    page = (RUNBOOKS / f"{alert}.md").read_text()
    assert page.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Meaning", "Diagnosis", "Mitigation"]


def test_no_page_is_about_nothing() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == set(ALERTS)


@each_alert
def test_it_says_what_is_wrong(alert: str) -> None:
    (rule,) = (each for each in alerts_in(rules()) if each["alert"] == alert)
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_each_leads_to_its_page_where_there_is_a_place_for_pages() -> None:
    spec = rules(metrics={"prometheusRule": {"enabled": True, "runbookUrl": "https://a.example/b"}})
    pages = [rule["annotations"]["runbook_url"] for rule in alerts_in(spec)]
    assert pages == [f"https://a.example/b/{alert}.md" for alert in ALERTS]


def test_without_an_election_nobody_misses_a_leader() -> None:
    names = {rule["alert"] for rule in alerts_in(rules(leaderElection={"enabled": False}))}
    assert set(ALERTS) - names == {"BerthNoLeader", "BerthSeveralLeaders"}


def test_only_series_of_this_release_count() -> None:
    for rule in alerts_in(rules()):
        selectors = re.findall(r"\{([^}]*)\}", rule["expr"])
        assert selectors
        assert all('job="berth",namespace="berth-system"' in each for each in selectors)


def test_another_selector_can_be_given() -> None:
    spec = rules(metrics={"prometheusRule": {"enabled": True, "selector": 'job="mine"'}})
    assert all('{job="mine"' in rule["expr"] for rule in alerts_in(spec))


@each_alert
def test_berth_has_what_it_asks_for(alert: str, exposed: Exposed) -> None:
    (rule,) = (each for each in alerts_in(rules()) if each["alert"] == alert)
    assert exposed.faults(rule["expr"]) == []


# --- held against a berth in trouble -----------------------------------------------------------


def going_on(before: str, now: str) -> list[dict[str, str]]:
    """Return an hour of series: states stay as they are, what has grown goes on growing."""
    earlier, found = values(before), []
    for series, value in values(now).items():
        name, _, labels = series.partition("{")
        if not name.startswith("berth_"):
            continue
        step = value - earlier.get(series, 0.0) if name.endswith("_total") else 0.0
        target = 'job="berth",namespace="berth-system",instance="a"'
        full = f"{name}{{{target},{labels}" if labels else f"{name}{{{target}}}"
        found.append({"series": full, "values": f"{value:f}+{step:f}x60"})
    return found


def look(rules: Path, folder: Path, series: list[dict[str, str]], *alerts: dict[str, Any]) -> None:
    """Have promtool say whether these alerts come of these series."""
    case = {"interval": "1m", "input_series": series, "alert_rule_test": list(alerts)}
    file = folder / "case.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [case]})
    )
    promtool("test", "rules", file)


SET_OFF: dict[str, dict[str, str]] = {
    "BerthConfigRefused": {"instance": "a"},
    "BerthProfileWatchDown": {"instance": "a"},
    "BerthProfileDegraded": {},
    "BerthPluginSwitchedOff": {"plugin": PLUGIN},
    "BerthNodeMetricStale": {"instance": "a", "metric": METRIC},
}
"""Alerts of what not every berth has, and what they name besides the job."""


def test_all_about_policies_are_held_against_it() -> None:
    (group,) = (each for each in RULES["groups"] if each["name"] == "berth-policies")
    assert [rule["alert"] for rule in group["rules"]] == list(SET_OFF)


@pytest.mark.parametrize("alert", SET_OFF)
def test_a_berth_in_trouble_sets_it_off(
    alert: str, troubled_life: TroubledLife, bare_rules: Path, tmp_path: Path
) -> None:
    life = troubled_life
    now = life.unwatched if alert == "BerthProfileWatchDown" else life.troubled
    job = {"severity": "warning", "job": "berth", "namespace": "berth-system"}
    expected = {"exp_labels": job | SET_OFF[alert]}
    firing = {"alertname": alert, "eval_time": "30m", "exp_alerts": [expected]}
    look(bare_rules, tmp_path, going_on(life.well, now), firing)


def test_a_berth_that_is_well_sets_none_of_them_off(
    troubled_life: TroubledLife, bare_rules: Path, tmp_path: Path
) -> None:
    silent = [{"alertname": alert, "eval_time": "30m"} for alert in SET_OFF]
    series = going_on("", troubled_life.well)
    look(bare_rules, tmp_path, series, *silent)

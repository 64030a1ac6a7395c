"""The file that says which node metrics are wanted."""

from __future__ import annotations

import pytest

from plugins.framework.go_duration import duration_of_seconds
from scheduler.config import ConfigError
from scheduler.node_metrics import load_node_metrics
from scheduler.node_metrics.configuration import parse_node_metrics

HEAD = "apiVersion: scheduling.berth.dev/v1alpha1\nkind: NodeMetricsConfiguration\n"
LOAD = "{name: load, query: node_load1}"


def source(**fields: str) -> str:
    given = {"url": "http://prometheus:9090", "metrics": f"[{LOAD}]", **fields}
    return HEAD + "sources: [{" + ", ".join(f"{k}: {v}" for k, v in given.items()) + "}]"


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_node_metrics(text, "metrics.yaml")
    return [str(each) for each in caught.value.mistakes]


def test_a_source_needs_a_url_and_metrics():
    config = parse_node_metrics(source(), "")
    (read,) = config.sources
    assert (read.url, read.metrics[0].query) == ("http://prometheus:9090", "node_load1")


def test_what_holds_where_nothing_is_said():
    (read,) = parse_node_metrics(source(), "").sources
    lengths = (read.interval, read.timeout, read.stale_after)
    assert [each.seconds for each in lengths] == [30, 10, 180]


def test_durations_are_go_durations():
    (read,) = parse_node_metrics(source(interval="1m30s", staleAfter="1h"), "").sources
    assert read.interval == duration_of_seconds(90)


def test_a_file_is_read(tmp_path):
    file = tmp_path / "metrics.yaml"
    file.write_text(source())
    assert load_node_metrics(file).sources[0].metrics[0].name == "load"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_node_metrics(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param(
            source(url="prometheus:9090"), "sources[0].url: 'prometheus:9090' is no", id="no scheme"
        ),
        pytest.param(source(url="'http://p?x=1'"), "sources[0].url: 'http://p?x=1'", id="a query"),
        pytest.param(
            source(url="http://me:secret@p"), "sources[0].url: must not hold a", id="a password"
        ),
        pytest.param(
            source(interval="100ms"), "sources[0].interval: must be at least 1s", id="too often"
        ),
        pytest.param(source(timeout="0s"), "sources[0].timeout: must be more", id="no time"),
        pytest.param(
            source(staleAfter="30s"),
            "sources[0].staleAfter: must be more than interval (30s)",
            id="stale at once",
        ),
        pytest.param(source(metrics="[]"), "sources[0].metrics: must name", id="no metric"),
        pytest.param(
            source(metrics="[{name: load, query: ' '}]"),
            "sources[0].metrics[0].query: must not be empty",
            id="no query",
        ),
        pytest.param(
            source(metrics=f"[{LOAD}, {LOAD}]"),
            "sources[0].metrics[1].name: 'load' is that of sources[0].metrics[0] already",
            id="one name twice",
        ),
        pytest.param(
            source(metrics="[{name: load}]"), "sources[0].metrics[0].query: is required", id="none"
        ),
        pytest.param(source(intervall="30s"), "sources[0].intervall: unknown field", id="misspelt"),
        pytest.param(
            source(tlsConfig="{certFile: /c}"),
            "sources[0].tlsConfig: a certificate and its key",
            id="half a pair",
        ),
        pytest.param("kind: Pod\nsources: []", "kind: must be NodeMetricsConfiguration", id="kind"),
        pytest.param(
            "apiVersion: v1\nsources: []", "apiVersion: must be scheduling.berth.dev", id="version"
        ),
        pytest.param("sources: [", "is not YAML", id="no YAML"),
    ],
)
def test_a_mistake_is_told_with_its_path(text, mistake):
    assert any(each.startswith(mistake) for each in mistakes(text))


def test_all_mistakes_are_told_at_once():
    assert len(mistakes(source(url="x", interval="1ms", timeout="0s"))) == 3

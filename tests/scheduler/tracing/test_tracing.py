from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from scheduler.config import ConfigError
from scheduler.metrics import Metrics
from scheduler.process import log_setup
from scheduler.tracing import tracing as tracing_module
from scheduler.tracing.log_trace_ids import trace_id_field
from scheduler.tracing.options import TracingOptions, add_tracing_flags, tracing_options
from scheduler.tracing.trace_ids import Sampler, trace_id_of, trace_id_text
from scheduler.tracing.tracing import Tracing, TracingError
from tests.builders import pod
from tests.fakes.ports import FakeExecutor

UID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"


def options(*arguments: str) -> TracingOptions:
    parser = argparse.ArgumentParser()
    add_tracing_flags(parser)
    return tracing_options(parser.parse_args(arguments))


def test_nothing_is_traced_by_default() -> None:
    assert options() == TracingOptions(ratio=0.0, endpoint="")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector/", "https://collector/v1/traces"),
        ("http://collector:4318/custom", "http://collector:4318/custom"),
    ],
)
def test_an_endpoint_without_a_path_gets_the_usual_one(given: str, used: str) -> None:
    assert options("--trace-endpoint", given).endpoint == used


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--trace-sampling-ratio=1.5",), id="more than all"),
        pytest.param(("--trace-sampling-ratio=-0.1",), id="less than none"),
        pytest.param(("--trace-sampling-ratio=nan",), id="no number"),
        pytest.param(("--trace-endpoint=collector:4318",), id="no scheme"),
        pytest.param(("--trace-endpoint=http://",), id="no host"),
        pytest.param(("--trace-endpoint=http://a:port",), id="no port"),
    ],
)
def test_an_impossible_flag_is_named(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=arguments[0].partition("=")[0]):
        options(*arguments)


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_module, "is_installed", lambda: False)
    with pytest.raises(TracingError, match=r"needs the extra berth\[otel\]"):
        Tracing(TracingOptions(1.0), "replica-1", FakeExecutor(), Metrics())


def test_berth_imports_nothing_for_traces_but_its_flags() -> None:
    code = (
        "import sys, scheduler.run_command\n"
        "there = {name for name in sys.modules if name.startswith(('opentelemetry', "
        "'scheduler.tracing'))}\n"
        "sys.exit(there != {'scheduler.tracing', 'scheduler.tracing.options'})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- log lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "ratio", "is_added"),
    [
        pytest.param("default/a", 1.0, True, id="traced"),
        pytest.param("default/a", 1e-9, False, id="not sampled"),
        pytest.param("default/b", 1.0, False, id="gone"),
        pytest.param(None, 1.0, False, id="about no pod"),
        pytest.param(7, 1.0, False, id="no key"),
    ],
)
def test_a_log_line_about_a_traced_pod_has_its_trace_id(
    key: object, ratio: float, is_added: bool
) -> None:
    live = {("default", "a"): pod("a").uid(UID).build()}
    add = trace_id_field(
        Sampler(ratio).sampled, lambda namespace, name: live.get((namespace, name))
    )
    line = {"event": "pod bound"} if key is None else {"event": "pod bound", "pod": key}
    add(line)
    assert line.get("trace_id") == (trace_id_text(trace_id_of(UID)) if is_added else None)


def test_fields_are_added_while_wanted() -> None:
    with log_setup.more_fields(lambda line: line.update(more=1)):
        assert log_setup._add_fields(None, "", {"event": "x"}) == {"event": "x", "more": 1}
    assert log_setup._add_fields(None, "", {"event": "x"}) == {"event": "x"}

"""What the trial's process is spared, and what is said of code that it was not."""

from __future__ import annotations

import warnings
from textwrap import dedent

import pytest

from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.plugin_trial import TrialLimits, try_source
from scheduler.user_plugins.plugin_trial.trial import MAX_NODES, copy_of
from tests.builders import node, pod

LIMITS = TrialLimits(wall_s=60.0, cpu_s=30)

HEAD = """
import ctypes, os, signal, time
import numpy as np
"""
METHOD = """
class Cheap:
    def filter(self, pod, nodes):
        {}
        return nodes.free("cpu") >= 0
"""


def source(body: str, *, head: str = HEAD) -> PluginSource:
    return PluginSource.of_text("directory", "/plugins/cheap.py", head + body)


def method(statement: str) -> PluginSource:
    return source(METHOD.format(statement))


def test_good_code_is_accepted_with_its_plugins():
    report = try_source(method("pass"), LIMITS)
    assert report.accepted, report.problems
    assert report.plugins == ("Cheap",)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        pytest.param(
            "return [True]",
            "filter returned list, it must return an array of bool",
            id="answers nonsense",
        ),
        pytest.param(
            "1 / 0", "ZeroDivisionError: division by zero (cheap.py, line 7)", id="raises"
        ),
        pytest.param(
            "nodes.allocatable('cpu')[:] = 0", "read-only (cheap.py, line 7)", id="mutates"
        ),
        pytest.param(
            "kept = [bytearray(1 << 20) for _ in iter(int, 1)]",
            "it allocates more memory than a call may (cheap.py, line 7)",
            id="allocates without end",
        ),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "it crashed with SIGSEGV (Cheap.filter",
            id="crashes",
        ),
        pytest.param(
            "os._exit(0)", "it ended the process with status 0 (Cheap.filter", id="ends the process"
        ),
        pytest.param(
            "raise SystemExit(2)", "SystemExit: 2 (cheap.py, line 7)", id="wants to end it"
        ),
    ],
)
def test_bad_code_is_refused_and_told_why(statement, told):
    report = try_source(method(statement), LIMITS)
    assert not report.accepted
    assert told in "\n".join(report.problems)


@pytest.mark.parametrize(
    ("limits", "statement", "told"),
    [
        pytest.param(
            TrialLimits(wall_s=8.0),
            "time.sleep(3600)",
            "it did not come back within 8 s (Cheap.filter with 1 generated node)",
            id="sleeps",
        ),
        pytest.param(
            TrialLimits(wall_s=120.0, cpu_s=1),
            "while True: pass",
            "it used more than 1 s of processor time (Cheap.filter with 1 generated node)",
            id="loops",
        ),
    ],
)
def test_code_that_does_not_come_back_is_refused(limits, statement, told):
    assert told in try_source(method(statement), limits).problems


def test_code_that_hangs_while_it_is_loaded_is_refused():
    report = try_source(source("time.sleep(3600)"), TrialLimits(wall_s=8.0))
    assert report.problems == ("it did not come back within 8 s (loading its code)",)


def test_code_that_cannot_be_loaded_is_refused_with_its_line():
    report = try_source(source("class Cheap\n", head=""), LIMITS)
    assert report.problems == ("/plugins/cheap.py, line 1: expected ':'",)


def test_a_plugin_that_must_be_told_something_is_not_asked():
    body = dedent(
        """
        from berth import Args

        class Cheap:
            class Args(Args):
                label: str

            def __init__(self, args):
                self.args = args

            def score(self, pod, nodes):
                return nodes.label_number(self.args.label, 0.0)
        """
    )
    assert try_source(source(body), LIMITS).accepted


@pytest.fixture
def buffered_prints(monkeypatch):
    """The environment says nothing of buffers, as the image's does not."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


@pytest.mark.usefixtures("buffered_prints")
def test_what_it_prints_is_kept_apart():
    report = try_source(method("print('looking at', pod.name)"), LIMITS)
    assert report.accepted, report.problems
    assert "looking at asks-for-nothing" in report.printed


@pytest.mark.usefixtures("buffered_prints")
@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_what_it_printed_before_it_ended_the_process_is_kept(end):
    report = try_source(method(f"print('looking at', pod.name, end=''); {end}"), LIMITS)
    assert not report.accepted
    assert report.printed == "looking at asks-for-nothing"


def test_the_environment_keeps_its_secrets(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    report = try_source(method("assert 'KUBERNETES_SERVICE_HOST' not in os.environ"), LIMITS)
    assert report.accepted, report.problems


def test_it_is_asked_about_a_copy_of_the_cluster():
    copy = copy_of([node("mine").label("odd", "x").build()], [pod("p").on("mine").build()])
    report = try_source(
        method("assert not nodes.label('odd').exists().any(), nodes.names[0]"), LIMITS, cluster=copy
    )
    assert report.problems[0].endswith(
        "AssertionError: mine (cheap.py, line 7); with a copy of the cluster"
    )


def test_a_copy_is_part_of_a_large_cluster():
    nodes = [node(f"node-{number}").build() for number in range(MAX_NODES + 5)]
    pods = [pod("kept").on("node-0").build(), pod("far").on(f"node-{MAX_NODES}").build()]
    copy = copy_of(nodes, pods)
    assert (len(copy.nodes), len(copy.pods)) == (MAX_NODES, 1)


def test_costs_are_measured_for_each_method():
    report = try_source(method("pass"), LIMITS, suite="bench", sizes=(50,))
    assert [(each.point, each.num_nodes) for each in report.costs] == [("filter", 50)]
    assert report.costs[0].median_s > 0


def test_a_trial_without_any_time_leaves_nothing_open():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = try_source(source("pass"), TrialLimits(wall_s=0.0))
    assert report.problems == ("no trial was possible within 0 s",)
    assert not [each for each in told if issubclass(each.category, ResourceWarning)]

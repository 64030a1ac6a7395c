from __future__ import annotations

import os
import time

from tests.bench.records import START_PHASES
from tests.bench.sample_results import a_start
from tests.bench.start import PHASES, CpuCurve, bindings, phases_of, summary

_LOG = """\
{"timestamp":"2026-01-01T00:00:01Z","level":"info","event":"scheduling"}
not a line of ours
{"timestamp":"2026-01-01T00:00:10Z","level":"info","event":"starting"}
{"timestamp":"2026-01-01T00:00:10.5Z","level":"info","event":"connected","server_version":"v1"}
{"timestamp":"2026-01-01T00:00:11Z","level":"info","event":"a pod"}
{"level":"info","event":"scheduling"}
{"timestamp":"2026-01-01T00:00:12Z","level":"info","event":"scheduling"}
{"timestamp":"2026-01-01T00:00:13Z","level":"info","event":"scheduling"}
"""


def test_phases_are_those_of_the_last_start() -> None:
    since_s = 1767225609.0  # 2026-01-01T00:00:09Z
    found = phases_of(_LOG.splitlines(), since_s)
    assert {name: at_s - since_s for name, at_s in found.items()} == {
        "imported": 1.0,
        "connected": 1.5,
        "scheduling": 3.0,
    }


def test_cpu_is_that_until_the_moment() -> None:
    curve = CpuCurve(os.getpid(), [(1.0, 0.1), (2.0, 0.3), (3.0, 0.6)])
    assert [curve.at(moment_s) for moment_s in (0.5, 1.5, 2.0, 9.0)] == [0.0, 0.1, 0.3, 0.6]


def test_a_process_is_followed() -> None:
    curve = CpuCurve(os.getpid())
    curve.start()
    while not curve.at(time.time()):
        pass
    curve.stop()


def test_moments_of_bindings_are_the_first_the_200th_and_the_last() -> None:
    assert bindings([float(number) for number in range(1, 301)], 0.5) == {
        "first bind": 1.5,
        "200 bound": 200.5,
        "last bind": 300.5,
    }


def test_with_fewer_bindings_there_is_no_200th() -> None:
    assert bindings([1.0, 2.0]) == {"first bind": 1.0, "last bind": 2.0}


def test_phases_of_the_log_come_before_those_of_the_watch() -> None:
    assert (*PHASES.values(), *bindings([0.0] * 200)) == START_PHASES


def test_the_summary_has_the_medians_of_each_contender() -> None:
    starts = [
        a_start(
            wall_s={"first bind": wall_s}, cpu_s={"first bind": wall_s / 2}, rss_mib=100 * wall_s
        )
        for wall_s in (1.0, 3.0, 2.0)
    ]
    line = "berth             first bind  2.00 (1.00)  servers  2.00  RSS 200 MiB"
    assert list(summary(starts)) == [line]

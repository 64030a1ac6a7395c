"""One deployment for all tests here: they are the chapters of one story, in the file's order."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.devices import DeviceDriver
from tests.e2e.images import build_images
from tests.e2e.prometheus import Prometheus
from tests.e2e.release import Release
from tests.e2e.report import Report
from tests.e2e.sandbox import FOLDER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORT = pytest.StashKey[Report]()

# Outside of the sandbox there is no machine for these tests.
collect_ignore_glob = [] if FOLDER_VARIABLE in os.environ else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORT] = Report(sys.__stdout__ or sys.stdout)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = list(config.stash[_REPORT].table())
    if lines:
        terminalreporter.section("what was seen")
    for line in lines:
        terminalreporter.line(line)


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    return request.config.stash[_REPORT]


@pytest.fixture(scope="session")
def cluster(report: Report) -> Iterator[Cluster]:
    """A running cluster, without berth."""
    report.heading("a cluster: etcd, API server, controllers, kube-scheduler, two real nodes")
    with Cluster(Path(os.environ[FOLDER_VARIABLE]), build_images()) as running:
        yield running


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Release:
    """The chart; the first test installs it."""
    return Release(cluster)


@pytest.fixture(scope="session")
def prometheus(cluster: Cluster, release: Release) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the installed release."""
    running = Prometheus(cluster, release)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def drivers(cluster: Cluster) -> Iterator[dict[str, DeviceDriver]]:
    """A device driver on each real node, by the node's name."""
    running = {
        name: DeviceDriver(node, cluster.control_plane) for name, node in cluster.nodes.items()
    }
    yield running
    for driver in running.values():
        driver.stop()

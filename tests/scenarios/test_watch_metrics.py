"""Every watch can be seen by an alert: what a scrape of a berth on a real API server shows."""

from __future__ import annotations

import re
import urllib.request
from typing import TYPE_CHECKING

import pytest

from scheduler.config import parse_config
from scheduler.kinds import WATCHED
from tests.controlplane.blocking_api import BlockingApi
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

WITH_EXTENDER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: berth}]
extenders:
  - {urlPrefix: "http://127.0.0.1:1", filterVerb: filter, nodeCacheCapable: false, ignorable: true}
"""


@pytest.fixture
def api(fresh_control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield api


def scraped(berth: RunningBerth, metric: str) -> dict[str, float]:
    """Return the values of a metric by resource."""
    with urllib.request.urlopen(f"http://{berth.app.server.address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    lines = re.findall(rf'^{metric}{{resource="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {resource: float(value) for resource, value in lines}


def test_the_watches_of_all_kinds_are_in_the_metrics(
    fresh_control_plane: ControlPlane, api: BlockingApi
) -> None:
    with RunningBerth(fresh_control_plane.berth_kubeconfig()) as berth:
        api.wait_until(lambda: berth.is_ready, "berth is ready")
        stale_s = scraped(berth, "berth_watch_staleness_seconds")
        assert set(stale_s) == {kind.name for kind in WATCHED if not kind.can_appear}
        assert all(value < 300 for value in stale_s.values())
        assert scraped(berth, "berth_watch_relists_total") == dict.fromkeys(stale_s, 0.0)


def test_the_watch_that_only_extenders_need_is_in_the_metrics(
    fresh_control_plane: ControlPlane, api: BlockingApi
) -> None:
    config = parse_config(WITH_EXTENDER, "the test")
    with RunningBerth(fresh_control_plane.berth_kubeconfig(), config=config) as berth:
        api.wait_until(lambda: berth.is_ready, "berth is ready")
        (whole_nodes,) = berth.app.whole_objects.all
        berth.on_loop(whole_nodes.expect_restore)
        api.wait_until(
            lambda: scraped(berth, "berth_watch_relists_total")["nodes"] == 1.0,
            "its second list is counted",
        )

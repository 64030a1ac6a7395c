from __future__ import annotations

import asyncio
import json
import logging

import aiohttp
import pytest
import structlog

from scheduler.debug.cache_debugger import CacheDebugger
from scheduler.debug.table_sizes import table_sizes
from scheduler.process.log_setup import configure_logging, current_level
from scheduler.serving.options import ServingOptions
from scheduler.serving.pages import pages
from tests.builders import node, pod
from tests.fakes.ports import FakeExecutor
from tests.fakes.watched import FakeWatched
from tests.scheduler.parts import Parts
from tests.scheduler.serving.served import OwnServer

PLAIN = ServingOptions(secure_port=None, insecure_bind_address="127.0.0.1:0")
RUNNING = pod("runs").request(cpu="1").on("n1")
WAITING = pod("waits").scheduler("berth").gate("example.com/later")


class Cluster:
    """A node with a pod, and a pod that a gate keeps out."""

    def __init__(self) -> None:
        self.parts = Parts()
        self.nodes = [node("n1").capacity(cpu="4").build()]
        self.parts.cache.add_node(self.nodes[0])
        self.parts.cache.add_pod(RUNNING.info())
        self.parts.queue.add(WAITING.info())

    def debugger(self, *pods) -> CacheDebugger:
        parts = self.parts
        return CacheDebugger(
            FakeExecutor(),
            parts.clock,
            parts.pods,
            FakeWatched(self.nodes, pods),
            lambda: ("default/tried", 12.5),
        )


def ask(method: str, path: str, *, body: str | None = None, debugger=None):
    """Return status and text of one request."""
    cluster = Cluster()

    async def visit() -> tuple[int, str]:
        known = debugger or cluster.debugger(RUNNING.build(), WAITING.build())
        served = pages(
            lambda: "kind: KubeSchedulerConfiguration\n",
            known,
            lambda: [RUNNING.build()],
            lambda: table_sizes(cluster.parts.cache),
        )
        server = OwnServer(PLAIN, cluster.parts.metrics, pages=served)
        await server.start()
        try:
            async with (
                aiohttp.ClientSession() as client,
                client.request(method, f"{server.addresses[0]}{path}", data=body) as answer,
            ):
                return answer.status, await answer.text()
        finally:
            await server.stop()

    return asyncio.run(visit())


@pytest.fixture
def logging_as_usual():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging("json", "info")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def test_the_configuration_is_served():
    assert ask("GET", "/configz") == (200, "kind: KubeSchedulerConfiguration\n")


def test_what_pods_request_is_served():
    status, text = ask("GET", "/metrics/resources")
    assert status == 200
    assert 'kube_pod_resource_request{namespace="default",pod="runs",node="n1"' in text


def test_cache_and_queue_are_written_out():
    status, text = ask("GET", "/debug/cache")
    report = json.loads(text)
    assert status == 200
    assert [(each["name"], each["pods"]) for each in report["cache"]["nodes"]] == [("n1", 1)]
    assert report["queue"]["gated"]["pods"][0]["gated_by"] == "SchedulingGates"
    assert report["comparison"] == {"count": 0, "mismatches": []}
    assert report["cycle"] == {"pod": "default/tried", "under_way_s": 12.5}


def test_a_cache_that_is_wrong_is_told_and_counted():
    debugger = Cluster().debugger()
    report = asyncio.run(debugger.report())
    assert report["comparison"]["count"] == debugger.mismatches > 0
    assert any(each.startswith("node n1: pods is") for each in report["comparison"]["mismatches"])


def test_the_report_goes_into_the_log():
    async def tell() -> None:
        debugger = Cluster().debugger()
        debugger.tell()
        await asyncio.gather(*debugger._tasks)

    with structlog.testing.capture_logs() as lines:
        asyncio.run(tell())
    assert [line["event"] for line in lines] == [
        "cached node",
        "cycle under way",
        *["queued pods"] * 5,
        "cache compared",
    ]


@pytest.mark.parametrize(
    ("wanted", "status", "level"),
    [
        pytest.param("debug", 200, "debug", id="by name"),
        pytest.param("5", 200, "debug", id="as for klog"),
        pytest.param("2", 200, "info", id="a low number"),
        pytest.param("error\n", 200, "error", id="with a line's end"),
        pytest.param("loud", 400, "info", id="no level"),
        pytest.param("x" * 5_000, 413, "info", id="too much"),
    ],
)
@pytest.mark.usefixtures("logging_as_usual")
def test_the_log_level_is_set(wanted, status, level):
    assert ask("PUT", "/debug/flags/v", body=wanted)[0] == status
    assert current_level() == level


@pytest.mark.usefixtures("logging_as_usual")
def test_the_log_level_is_told():
    assert ask("GET", "/debug/flags/v") == (200, "info\n")


@pytest.mark.usefixtures("logging_as_usual")
def test_a_logger_that_was_used_before_follows_the_level(capsys):
    log = structlog.get_logger("early")
    log.debug("unheard")
    ask("PUT", "/debug/flags/v", body="debug")
    log.debug("heard")
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["heard"]


def test_the_sizes_of_tables_are_served() -> None:
    status, text = ask("GET", "/debug/cache?tables")
    assert status == 200
    sizes = json.loads(text)
    assert sizes["cache.scheduler_cache.SchedulerCache._pods"]["items"] == 1

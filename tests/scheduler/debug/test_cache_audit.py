from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from scheduler.debug.cache_audit import CacheAudit
from tests.builders import node, pod
from tests.scheduler.client.virtual_loop import run_in_virtual_time
from tests.scheduler.parts import Parts

RUNNING = pod("a").request(cpu="1").on("n1")


class Scene:
    """A node with a pod, known to cache and watches, and an audit that tells this scene."""

    def __init__(self, *, period_s: float = 300.0) -> None:
        self.cache = Parts().cache
        self.nodes = [node("n1").capacity(cpu="4").build()]
        self.pods = [RUNNING.build()]
        self.cache.add_node(self.nodes[0])
        self.cache.add_pod(RUNNING.info())
        self.found: list[tuple[float, int]] = []
        self.busy_until = 0.0
        self.mends = False
        self.audit = CacheAudit(
            self.cache,
            lambda: self.nodes,
            lambda: self.pods,
            self.at_rest,
            self.tell,
            period_s=period_s,
        )

    def at_rest(self) -> bool:
        return asyncio.get_running_loop().time() >= self.busy_until

    def tell(self, mismatches: int) -> None:
        self.found.append((round(asyncio.get_running_loop().time(), 1), mismatches))
        if mismatches and self.mends:
            self.cache.add_pod(RUNNING.info())

    def run(self, seconds: float) -> None:
        """Let so much time pass."""

        async def passing() -> None:
            self.audit.start()
            await asyncio.sleep(seconds)
            await self.audit.stop()

        run_in_virtual_time(passing())

    def forget(self) -> None:
        """Let the cache lose the pod."""
        self.cache.remove_pod(RUNNING.info())


def test_it_compares_every_period():
    scene = Scene()
    scene.run(700)
    assert scene.found == [(300, 0), (600, 0)]
    assert scene.audit.rounds == 2


def test_a_period_of_zero_is_never():
    scene = Scene(period_s=0)
    scene.run(10_000)
    assert scene.found == []


def test_what_was_found_is_looked_at_again_soon():
    scene = Scene()
    scene.forget()
    with capture_logs() as lines:
        scene.run(340)
    assert scene.found == [(300, 3), (330, 3)]
    told = [line for line in lines if line["log_level"] == "error"]
    assert told[0]["mismatches"] == 3
    assert any(each.startswith("node n1: pods is") for each in told[0]["found"])


def test_what_was_found_and_is_right_by_now_is_taken_back():
    scene = Scene()
    scene.mends = True
    scene.forget()
    scene.run(640)
    assert scene.found == [(300, 3), (330, 0), (630.1, 0)]


def test_it_waits_for_rest():
    scene = Scene()
    scene.busy_until = 300.2
    scene.run(310)
    assert scene.found == [(300.2, 0)]


def test_without_any_rest_it_compares_all_the_same():
    scene = Scene()
    scene.busy_until = 1e9
    scene.run(310)
    assert [mismatches for _, mismatches in scene.found] == [0]


def test_a_comparison_that_fails_is_not_the_last():
    scene = Scene()
    scene.pods = None
    with capture_logs() as lines:
        scene.run(310)
        scene.pods = [RUNNING.build()]
        scene.run(310)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == [
        "cache cannot be compared"
    ]
    assert [mismatches for _, mismatches in scene.found] == [0]

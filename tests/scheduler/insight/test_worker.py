"""The worker as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from msgspec.structs import replace

from scheduler.config import default_config, running_profiles
from scheduler.config.extender import Extender, ManagedResource
from scheduler.insight import worker as worker_module
from scheduler.insight.refused import RefusedError
from scheduler.insight.worker import InsightWorker, WorkerSources
from scheduler.user_plugins.for_commands import known_plugins
from scheduler.user_plugins.profile_of_directory import with_plugins
from tests.builders import node, pod
from tests.scheduler.insight.informed import Informed

PROFILES = running_profiles(default_config("berth"))


class Asked:
    """A worker over two nodes, one of which is full, and a pod that waits."""

    def __init__(self) -> None:
        self.stores = Informed()
        for name in ("node-1", "node-2"):
            self.stores.put(self.stores.nodes, node(name).capacity(cpu="4", pods="9").build())
        self.put(pod("runs").request(cpu="4").on("node-1").build())
        self.put(pod("waits").request(cpu="8").scheduler("berth").build())
        self.assumed: dict[str, str] = {}
        self.profiles = PROFILES
        self.worker = InsightWorker(
            WorkerSources(
                lambda: self.stores.all,
                lambda: self.assumed,
                lambda: self.profiles,
            )
        )

    def put(self, made) -> None:
        self.stores.put(self.stores.pods, made)

    async def why(self, name: str = "waits", limit_s: float = 60.0, **rights):
        shown = {"shows_nodes": True, "shows_pods": True, **rights}
        uid = f"uid-default-{name}"
        return json.loads(
            await self.worker.ask("why", limit_s, pod=f"default/{name}", uid=uid, **shown)
        )


@pytest.fixture(scope="module")
def shared():
    """One worker for the tests of this file, and the loop that it belongs to: starting one takes
    a second."""
    with asyncio.Runner() as runner:
        asked = runner.run(make())
        yield runner, asked
        runner.run(asked.worker.stop())


async def make() -> Asked:
    return Asked()


@pytest.fixture
def play(shared):
    """Run a scene with the shared worker."""
    runner, asked = shared

    async def limited(scene):
        async with asyncio.timeout(120):
            return await scene(asked)

    return lambda scene: runner.run(limited(scene))


def test_a_pod_is_tried_on_the_copy_as_it_is_by_now(play, monkeypatch):
    monkeypatch.setattr(worker_module, "SYNC_EVERY_S", 0.0)

    async def scene(asked: Asked):
        first = await asked.why()
        asked.put(pod("small").request(cpu="1").scheduler("berth").build())
        second = await asked.why("small")
        asked.assumed = {"uid-default-small": "node-2"}
        asked.put(pod("other").request(cpu="4").scheduler("berth").build())
        return first, second, await asked.why("other")

    first, second, third = play(scene)
    assert first["now"]["nodes"]["node-2"]["reasons"] == ["Insufficient cpu"]
    assert first["text"].startswith("Pod default/waits: 0 of 2 nodes can run it\n")
    assert "total" in second["now"]["nodes"]["node-2"]
    assert third["now"]["nodes"]["node-2"]["reasons"] == ["Insufficient cpu"]


def test_the_text_alone_is_the_same_text(play):
    async def scene(asked: Asked):
        return [await asked.why(only_text=only_text) for only_text in (False, True)]

    both, text = play(scene)
    assert text == {**both, "now": None}


def test_a_user_who_may_not_see_nodes_gets_counts(play):
    answer = play(lambda asked: asked.why(shows_nodes=False, shows_pods=False))
    assert answer["now"]["counts"]["rejected"][0]["nodes"] == 2
    assert "node-1" not in json.dumps(answer)
    assert "node-2" not in json.dumps(answer)


def test_a_pod_that_is_gone_by_then_has_no_trial(play):
    assert play(lambda asked: asked.why("nobody"))["now"] is None


def test_an_extender_that_was_not_asked_is_in_the_notes(play, monkeypatch):
    monkeypatch.setattr(worker_module, "SYNC_EVERY_S", 0.0)

    async def scene(asked: Asked):
        fpga = Extender("http://extender", managed_resources=(ManagedResource("example.com/fpga"),))
        for extenders in ((fpga,), (fpga, Extender("http://extender"))):
            asked.profiles = [replace(each, extenders=extenders) for each in PROFILES]
            yield (await asked.why())["notes"]

    async def notes(asked: Asked):
        found = [each async for each in scene(asked)]
        asked.profiles = PROFILES
        return found

    none, one = play(notes)
    assert none == []
    assert one == [
        "An extender of this profile was not asked: the scheduler asks, and may refuse or rank "
        "nodes by the answer."
    ]


def test_metrics_of_nodes_that_were_not_known_are_in_the_notes(play, monkeypatch):
    monkeypatch.setattr(worker_module, "SYNC_EVERY_S", 0.0)
    config = with_plugins(default_config("berth"), ["LoadAware"])
    profiles = running_profiles(config, known_plugins(None))

    async def notes(asked: Asked):
        asked.put(pod("small").request(cpu="1").scheduler("berth").build())
        asked.profiles = profiles
        found = await asked.why("small")
        asked.profiles = PROFILES
        return found["notes"]

    (note,) = play(notes)
    assert note == "Metrics of nodes were not known: a plugin would have used cpu_utilization."


def test_a_worker_that_is_killed_is_replaced(play):
    async def scene(asked: Asked):
        await asked.why()
        process = asked.worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        return await asked.why()

    assert play(scene)["now"]["pod"] == "default/waits"


def test_an_answer_that_takes_too_long_is_ended(play):
    async def scene(asked: Asked):
        with pytest.raises(RefusedError, match="longer than 0 s") as refused:
            await asked.why(limit_s=0.0, shows_pods=False)  # a question that was not asked before
        return refused.value.status, await asked.why()

    status, later = play(scene)
    assert status == 504
    assert later["now"]["pod"] == "default/waits"


def test_fifty_askers_at_once_are_all_answered_and_more_are_refused(play, monkeypatch):
    monkeypatch.setattr(worker_module, "MAX_WAITING", 50)

    async def scene(asked: Asked):
        asking = [asyncio.create_task(asked.why()) for _ in range(60)]
        return await asyncio.gather(*asking, return_exceptions=True)

    answers = play(scene)
    refused = [each for each in answers if isinstance(each, RefusedError)]
    assert [(each.status, each.retry_after_s) for each in refused] == [(503, 2.0)] * 10
    assert sum(isinstance(each, dict) for each in answers) == 50


def test_a_pod_with_forty_thousand_selector_keys_is_answered_or_refused_in_time(play):
    async def scene(asked: Asked):
        keys = {f"key-{number}": "value" for number in range(40_000)}
        made = pod("large").scheduler("berth").build()
        spec = replace(made.spec, node_selector=keys)
        asked.put(replace(made, spec=spec))
        return await asked.why("large")

    assert play(scene)["now"]["nodes"]["node-1"]["rejected"] == "NodeAffinity"


def test_a_worker_that_nobody_asks_ends(play, monkeypatch):
    monkeypatch.setattr(worker_module, "IDLE_S", 0.01)

    async def scene(asked: Asked):
        await asked.why()
        process = asked.worker._process
        if process is not None:
            await process.wait()
        return asked.worker._changes._is_active

    assert play(scene) is False

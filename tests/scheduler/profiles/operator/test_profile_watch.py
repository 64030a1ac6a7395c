"""kopf, as the watch of SchedulingProfiles: what it hands over, and what ends a run of it."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.credentials import Credentials
from scheduler.client.transport import Transport
from scheduler.profiles.operator import OperatorOptions, profile_watch
from scheduler.profiles.operator.profile_watch import ProfileWatch
from scheduler.profiles.operator.reconciler import ProfileReconciler
from tests.fakes.api_server import FakeApiServer
from tests.scheduler.informers.harness import run, until
from tests.scheduler.profiles.compiling import Compiling
from tests.scheduler.profiles.operator.objects import raw

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping


KIND = "schedulingprofiles"


class World:
    """A server, the watch, and policies that take over what it hands over."""

    def __init__(self, server: FakeApiServer, transport: Transport) -> None:
        self.server = server
        self.policies = Compiling().policies
        loop = asyncio.get_running_loop()
        reconciler = ProfileReconciler(
            self.policies, OperatorOptions(enabled=True), self._no_config_map
        )

        async def load_credentials() -> Credentials:
            return Credentials(server.url)

        self.watch = ProfileWatch(
            transport,
            load_credentials,
            reconciler,
            lambda job: loop.call_soon_threadsafe(job) and None,
            random.Random(7),
        )

    def _no_config_map(self, name: str) -> Mapping[str, str] | None:
        raise AssertionError("nobody names one")

    def generations(self) -> dict[str, int | None]:
        """Return which generation of each SchedulingProfile decides."""
        statuses = self.policies.statuses()
        return {name: each.active_generation for name, each in statuses.items()}

    def percentage(self, scheduler_name: str) -> int | None:
        """Return what the profile that decides says, None where there is none."""
        found = {each.profile_name: each for each in self.policies.frameworks()}
        framework = found.get(scheduler_name)
        return None if framework is None else framework.percentage_of_nodes_to_score

    def verbs(self) -> list[str]:
        """Return what was asked of the kind."""
        return [each.verb for each in self.server.requests_of(resource=KIND)]

    async def until_restarted(self) -> None:
        await until(lambda: self.watch.restarts == 1 and self.watch.kopf_is_up)


@asynccontextmanager
async def watched(server: FakeApiServer) -> AsyncIterator[World]:
    """Watch until the end of the block."""
    transport = Transport(Credentials(server.url), user_agent="test")
    world = World(server, transport)
    world.watch.start()
    try:
        yield world
    finally:
        await world.watch.stop()
        await transport.close()


def test_a_list_and_a_watch_bring_everything() -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("listed"))
            async with watched(server) as world:
                await world.watch.first_list.wait()
                assert world.watch.kopf_is_up
                assert world.generations() == {"listed": 1}
                server.create(KIND, raw("new"))
                await until(lambda: world.generations() == {"listed": 1, "new": 1})
                change = {"metadata": {"generation": 2}, "spec": {"percentageOfNodesToScore": 7}}
                server.patch(KIND, "new", change)
                await until(lambda: world.percentage("new") == 7)
                server.delete(KIND, "listed")
                await until(lambda: world.generations() == {"new": 2})
                # The first is the question whether there is anything to watch.
                assert world.verbs() == ["list", "list", "watch"]

    run(main)


def test_a_user_without_a_name_may_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr("getpass.getuser", look_up)

    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("listed"))
            async with watched(server) as world:
                await until(lambda: world.generations() == {"listed": 1})

    run(main)


def test_a_watch_that_the_server_ends_is_opened_again_without_a_list() -> None:
    async def main() -> None:
        async with FakeApiServer() as server, watched(server) as world:
            await until(lambda: server.open_watches(KIND) == 1)
            server.end_watches(KIND)
            await until(lambda: world.verbs() == ["list", "list", "watch", "watch"])
            server.create(KIND, raw("new"))
            await until(lambda: world.generations() == {"new": 1})
            assert world.watch.restarts == 0

    run(main)


def expired(server: FakeApiServer) -> None:
    server.faults.error_event(KIND, 410)


def failed(server: FakeApiServer) -> None:
    server.faults.error_event(KIND, 500)


def refused(server: FakeApiServer) -> None:
    server.faults.refuse(KIND, "watch", 403)
    server.end_watches(KIND)


def unauthorized(server: FakeApiServer) -> None:
    server.faults.refuse(KIND, "watch", 401)
    server.end_watches(KIND)


def cut_off(server: FakeApiServer) -> None:
    server.faults.lose_answer(KIND, "watch", carried_out=False)
    server.end_watches(KIND)


@pytest.mark.parametrize("strike", [expired, failed, refused, unauthorized, cut_off])
def test_a_run_ends_with_its_first_failure_and_the_next_one_lists(
    strike: Callable[[FakeApiServer], None],
) -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("kept"))
            server.create(KIND, raw("lost"))
            async with watched(server) as world:
                await until(lambda: server.open_watches(KIND) == 1)
                server.faults.drop_event(KIND, "DELETED")
                server.delete(KIND, "lost")
                strike(server)
                await world.until_restarted()
                await until(lambda: world.generations() == {"kept": 1})
                assert world.verbs().count("list") == 4

    run(main)


def test_while_there_is_no_api_server_what_is_known_stays() -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("kept"))
            async with watched(server) as world:
                await until(lambda: world.generations() == {"kept": 1})
                await until(lambda: server.open_watches(KIND) == 1)
                await server.__aexit__()
                await until(lambda: world.watch.restarts == 1)
                server.create(KIND, raw("new"))
                assert world.generations() == {"kept": 1}
                async with server:
                    await until(lambda: world.generations() == {"kept": 1, "new": 1})

    run(main)


def test_a_restore_of_etcd_is_recognised_though_the_generation_is_the_same() -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("gpu"))
            before = server.version
            async with watched(server) as world:
                change: dict[str, Any] = {
                    "metadata": {"generation": 2},
                    "spec": {"percentageOfNodesToScore": 7},
                }
                await until(lambda: server.open_watches(KIND) == 1)
                server.patch(KIND, "gpu", change)
                await until(lambda: world.percentage("gpu") == 7)
                # An API server is down while etcd is restored.
                server.faults.refuse(KIND, "watch", 503)
                server.rewind(before)
                change["spec"]["percentageOfNodesToScore"] = 9
                server.patch(KIND, "gpu", change)
                await until(lambda: world.percentage("gpu") == 9)

    run(main)


def test_what_others_leave_in_an_object_costs_nothing_and_nothing_is_written() -> None:
    async def main() -> None:
        async with FakeApiServer() as server:
            marked = raw("marked")
            annotations = {"kopf.zalando.org/last-handled-configuration": "{"}
            marked["metadata"]["annotations"] = annotations
            marked["metadata"]["finalizers"] = ["kopf.zalando.org/KopfFinalizerMarker"]
            server.create(KIND, marked)
            async with watched(server) as world:
                await until(lambda: world.generations() == {"marked": 1})
                server.patch(KIND, "marked", {"metadata": {"generation": 2}, "spec": {"mode": 7}})
                await until(lambda: world.policies.statuses()["marked"].degraded.status)
                accepted = world.policies.statuses()["marked"].accepted
                assert accepted.message.startswith("spec.mode: ")
                assert world.verbs() == ["list", "list", "watch"]

    run(main)


def test_one_that_is_nested_too_deeply_is_told_so_and_stops_nothing() -> None:
    args: dict[str, Any] = {}
    for _ in range(300):
        args = {"a": args}
    deep = {"schedulerName": "deep", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}

    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("deep", spec=deep))
            server.create(KIND, raw("other"))
            async with watched(server) as world:
                await until(lambda: world.generations() == {"deep": None, "other": 1})
                message = world.policies.statuses()["deep"].accepted.message
                assert message.startswith("spec.pluginConfig[0].args.a.a.a")

    run(main)


def test_a_run_that_hands_over_no_list_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_watch, "LIST_S", 1.0)

    async def main() -> None:
        async with FakeApiServer() as server:
            question = server.faults.hold(KIND, "list")
            async with watched(server) as world:
                await question.arrived.wait()
                silence = server.faults.hold(KIND, "list")
                question.release()
                await silence.arrived.wait()
                await until(lambda: world.watch.restarts == 1)
                silence.release()
                await until(lambda: world.watch.kopf_is_up)

    run(main)


def test_a_kind_that_comes_late_is_watched_and_one_that_goes_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profile_watch, "ABSENT_S", 0.01)

    async def main() -> None:
        async with FakeApiServer() as server:
            server.create(KIND, raw("late"))
            server.faults.refuse(KIND, None, 404, times=3)
            async with watched(server) as world:
                await world.watch.first_list.wait()
                assert world.watch.kopf is None
                await until(lambda: world.generations() == {"late": 1})
                server.faults.refuse(KIND, None, 404, times=None)
                server.end_watches(KIND)
                await until(lambda: world.generations() == {})
                assert not world.watch.is_installed

    run(main)

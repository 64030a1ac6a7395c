"""Who writes a status, when, and what becomes of a refusal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from scheduler.client.errors import ApiError
from scheduler.profiles.operator.history import GOOD, digest_of
from scheduler.profiles.operator.status_writer import Pace, ProfileStatusWriter
from tests.scheduler.profiles.operator.objects import profile
from tests.scheduler.profiles.operator.test_status_patch import policy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from scheduler.profiles import ProfileObject, ProfileStatus


class ApiServer:
    """Takes statuses, or refuses some."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Mapping[str, Any]]] = []
        """Statuses, by name of their object."""
        self.annotated: list[tuple[str, Mapping[str, Any]]] = []
        self.refusals: list[ApiError] = []
        self.no_annotations: ApiError | None = None

    async def write(self, name: str, subresource: str, patch: Mapping[str, Any]) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        if self.no_annotations and not subresource:
            raise self.no_annotations
        (self.written if subresource == "status" else self.annotated).append((name, patch))


class World:
    def __init__(self) -> None:
        self.api = ApiServer()
        self.leads = True
        self.statuses: dict[str, ProfileStatus] = {}
        self.report: dict[str, object] | None = None
        self.writer = ProfileStatusWriter(
            self.api.write,
            self.statuses.get,
            lambda: self.leads,
            lambda _: self.report,
            Pace(pause_s=0.001, standby_s=0.001, shadow_s=0.001),
        )

    def take(self, found: ProfileObject, **fields: Any) -> None:
        """Let a version be known."""
        self.statuses[found.name] = policy(found, **fields)
        self.writer.changed(frozenset({found.name}))

    def drop(self, name: str) -> None:
        """Let an object be gone."""
        del self.statuses[name]
        self.writer.changed(frozenset({name}))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
                await asyncio.sleep(0.001)


def play(scene: Callable[[World], Coroutine[Any, Any, None]]) -> World:
    async def run() -> World:
        world = World()
        try:
            await scene(world)
        finally:
            await world.writer.stop()
        return world

    return asyncio.run(run())


def taken(**fields: Any) -> ProfileObject:
    return profile(generation=2, **fields)


def test_a_version_that_was_taken_in_gets_its_status() -> None:
    async def scene(world: World) -> None:
        world.take(taken())
        await world.until(lambda: bool(world.api.written))

    ((name, patch),) = play(scene).api.written
    assert (name, patch["metadata"]) == ("gpu", {"uid": "uid-gpu"})
    assert patch["status"]["activeGeneration"] == 2


def test_a_good_generation_is_vouched_for_where_a_status_cannot_reach() -> None:
    async def scene(world: World) -> None:
        world.take(taken())
        await world.until(lambda: bool(world.api.annotated))

    api = play(scene).api
    ((name, patch),) = api.annotated
    (entry,) = api.written[0][1]["status"]["history"]
    assert name == "gpu"
    assert patch == {"metadata": {"uid": "uid-gpu", "annotations": {GOOD: digest_of(entry)}}}


def test_a_history_that_was_tampered_with_is_put_right_and_not_vouched_for() -> None:
    forged = {"generation": 1, "activeSince": "", "spec": {"schedulerName": "evil"}}

    async def scene(world: World) -> None:
        world.take(taken())
        await world.until(lambda: bool(world.api.annotated))
        status = world.api.written[0][1]["status"]
        history = [forged, *status["history"]]
        world.take(
            taken(version=2, status={**status, "history": history}, sealed=status["history"])
        )
        await world.until(lambda: len(world.api.written) == 2)

    api = play(scene).api
    assert api.written[1][1]["status"] == {"history": api.written[0][1]["status"]["history"]}
    assert len(api.annotated) == 1


def test_what_it_has_written_is_not_written_again() -> None:
    async def scene(world: World) -> None:
        world.take(taken())
        await world.until(lambda: bool(world.api.written))
        status = world.api.written[0][1]["status"]
        world.take(taken(version=2, status=status))
        world.take(profile("other", generation=2))
        await world.until(lambda: world.api.written[-1][0] == "other")

    assert [name for name, _ in play(scene).api.written] == ["gpu", "other"]


def test_when_the_policies_say_something_else_it_is_written() -> None:
    async def scene(world: World) -> None:
        found = taken()
        world.take(found)
        await world.until(lambda: len(world.api.written) == 1)
        world.writer.changed(frozenset({"unknown"}))
        world.take(found, active_generation=1)
        await world.until(lambda: len(world.api.written) == 2)

    assert play(scene).api.written[1][1]["status"] == {"activeGeneration": 1}


def test_a_standby_writes_nothing_until_it_leads() -> None:
    async def scene(world: World) -> None:
        world.leads = False
        world.take(taken())
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert world.api.written == []
        world.leads = True
        await world.until(lambda: bool(world.api.written))

    play(scene)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(None, "Unreachable", "nobody"), id="unreachable"),
        pytest.param(ApiError(None, "Timeout", "who knows", ambiguous=True), id="nobody-knows"),
        pytest.param(ApiError(403, "Forbidden", "no"), id="not-allowed-yet"),
        pytest.param(ApiError(None, "Fenced", "not now"), id="fenced"),
    ],
)
def test_what_may_succeed_later_is_tried_again(error: ApiError) -> None:
    async def scene(world: World) -> None:
        world.api.refusals = [error]
        world.take(taken())
        await world.until(lambda: bool(world.api.written))

    world = play(scene)
    assert (world.writer.failed, world.writer.written) == (1, 1)


def test_without_the_right_to_annotate_statuses_are_written_and_the_right_is_named() -> None:
    async def scene(world: World) -> None:
        world.api.no_annotations = ApiError(403, "Forbidden", "no")
        world.take(taken())
        await world.until(lambda: world.writer.failed > 1)
        world.take(profile("other", generation=2))
        await world.until(lambda: "other" in dict(world.api.written))

    with capture_logs() as lines:
        world = play(scene)
    assert {"gpu", "other"} == set(dict(world.api.written))
    (warning,) = (line for line in lines if line["log_level"] == "warning")
    assert warning["event"] == "annotation of a scheduling profile not written"
    assert "patch schedulingprofiles.scheduling.berth.dev" in warning["consequence"]


def test_one_that_is_gone_is_given_up() -> None:
    async def scene(world: World) -> None:
        world.api.refusals = [ApiError(404, "NotFound", "gone")]
        world.take(taken())
        await world.until(lambda: not world.api.refusals)
        world.take(profile("other", generation=2))
        await world.until(lambda: bool(world.api.written))

    assert [name for name, _ in play(scene).api.written] == ["other"]


def test_of_what_was_deleted_nothing_is_written() -> None:
    async def scene(world: World) -> None:
        world.leads = False
        world.take(taken())
        world.drop("gpu")
        world.leads = True
        world.take(profile("other", generation=2))
        await world.until(lambda: bool(world.api.written))

    assert [name for name, _ in play(scene).api.written] == ["other"]


def test_while_only_the_last_good_version_is_known_nothing_is_written() -> None:
    async def scene(world: World) -> None:
        known = policy(taken())
        world.statuses["gpu"] = replace(known, version=replace(known.version, object=None))
        world.writer.changed(frozenset({"gpu"}))
        world.take(profile("other", generation=2))
        await world.until(lambda: bool(world.api.written))

    assert [name for name, _ in play(scene).api.written] == ["other"]


def test_the_report_of_a_shadow_is_written_while_it_grows() -> None:
    async def scene(world: World) -> None:
        world.report = {"compared": 1}
        world.take(taken())
        await world.until(lambda: len(world.api.written) == 1)
        world.report = {"compared": 2}
        await world.until(lambda: len(world.api.written) == 2)

    assert play(scene).api.written[1][1]["status"] == {"shadow": {"compared": 2}}

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from plugins.framework.status import SUCCESS
from scheduler.config import ConfigError, Extender, ExtenderTLS, default_config
from scheduler.config.file_profile import Profile
from scheduler.profiles import Mode, extender_chains
from scheduler.profiles.extender_chains import ExtenderChains
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.profile_compiler import ProfileCompiler
from tests.builders import pod
from tests.scheduler.extenders.scripted_extender import Reply, ScriptedExtender
from tests.scheduler.parts import NoBinding
from tests.scheduler.profiles.compiling import KNOWN, enabled, spec

if TYPE_CHECKING:
    from plugins.framework.handle import Handle
    from plugins.framework.status import Status
    from scheduler.extenders import ExtenderChain

NEAR = Extender(url_prefix="http://127.0.0.1:1", filter_verb="filter", node_cache_capable=True)
FAR = msgspec.structs.replace(NEAR, url_prefix="http://127.0.0.1:2")


class NoNodes:
    """Stands for the watch of whole nodes, and counts who has asked for it."""

    def __init__(self) -> None:
        self.asked = 0

    def informer(self, kind, *, transform):
        self.asked += 1
        return self

    async def wait_synced(self) -> None:
        return


def on_loop(test):
    """Run a test on an event loop."""

    @functools.wraps(test)
    def run():
        return asyncio.run(test())

    return run


class CountingChains(ExtenderChains):
    """Knows which chains were made and not released."""

    def __init__(self, nodes: NoNodes) -> None:
        super().__init__(asyncio.get_running_loop(), None, nodes, settle=None)
        self.held: list[ExtenderChain] = []

    def make(self, extenders, path):
        chain = super().make(extenders, path)
        if chain is not None:
            self.held.append(chain)
        return chain

    def release(self, chain):
        if chain is not None:
            self.held.remove(chain)
        super().release(chain)


def chains(nodes: NoNodes | None = None) -> CountingChains:
    return CountingChains(nodes or NoNodes())


def policies(made: ExtenderChains) -> KnownProfiles:
    compiler = ProfileCompiler(lambda: KNOWN, cast("Handle", NoBinding()), made)
    found = KnownProfiles(compiler)
    config = msgspec.structs.replace(
        default_config("berth"), profiles=(Profile("berth"),), extenders=(NEAR,)
    )
    assert not found.set_file(config)
    return found


@on_loop
async def test_without_extenders_there_is_no_chain():
    assert chains().make((), "extenders") is None


@on_loop
async def test_a_certificate_that_cannot_be_read_is_told_with_its_path():
    tls = ExtenderTLS(ca_file="/no/such/file")
    broken = msgspec.structs.replace(NEAR, url_prefix="https://127.0.0.1:1", tls_config=tls)
    with pytest.raises(ConfigError) as raised:
        chains().make((broken,), "spec.extenders")
    assert raised.value.path == "spec.extenders"


@pytest.mark.parametrize(
    ("capable", "asked"), [pytest.param(True, 0, id="cached"), pytest.param(False, 1, id="whole")]
)
def test_whole_nodes_are_watched_for_those_who_want_them(capable, asked):
    async def scene() -> int:
        nodes = NoNodes()
        made = chains(nodes)
        extender = msgspec.structs.replace(NEAR, node_cache_capable=capable)
        await asyncio.to_thread(made.make, (extender,), "extenders")
        await made.close()
        return nodes.asked

    assert asyncio.run(scene()) == asked


@on_loop
async def test_a_scheduling_profile_has_the_files_extenders():
    made = chains()
    found = policies(made)
    found.put(spec())
    assert all(framework.extenders is not None for framework in found.frameworks())
    await made.close()


@on_loop
async def test_it_may_have_none():
    made = chains()
    found = policies(made)
    found.put(spec(extenders=()))
    of_file, of_resource = found.frameworks()
    assert (of_file.extenders is None, of_resource.extenders is None) == (False, True)
    await made.close()


@on_loop
async def test_its_own_change_nothing_for_others():
    made = chains()
    found = policies(made)
    (of_file,) = found.frameworks()
    found.put(spec(extenders=(FAR,)))
    assert found.frameworks()[0] is of_file
    await made.close()


@on_loop
async def test_a_mistake_in_its_extenders_is_told_with_its_path():
    made = chains()
    nowhere = msgspec.structs.replace(NEAR, url_prefix="")
    (mistake,) = policies(made).put(spec(extenders=(nowhere,))).mistakes
    assert mistake.path == "spec.extenders[0].urlPrefix"
    await made.close()


@on_loop
async def test_each_change_lets_go_of_the_chain_before_it():
    made = chains()
    found = policies(made)
    of_file = list(made.held)
    for generation, extender in enumerate((NEAR, FAR, NEAR), start=1):
        found.put(spec(generation=generation, extenders=(extender,)))
    (framework,) = (each for each in found.frameworks() if each.profile_name == "gpu")
    assert made.held == [*of_file, framework.extenders]
    found.remove("gpu")
    assert made.held == of_file
    await made.close()


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        pytest.param(Mode.SHADOW, "gpu", id="shadow"),
        pytest.param(Mode.ACTIVE, "younger", id="in-the-way-of-an-older-one"),
    ],
)
def test_so_does_each_change_of_one_that_does_not_decide(mode, name):
    async def scene() -> None:
        made = chains()
        found = policies(made)
        found.put(spec("older", profile=enabled(), extenders=(NEAR,)))
        before = list(made.held)
        for generation in (1, 2, 3):
            found.put(
                spec(
                    name,
                    generation,
                    mode=mode,
                    extenders=(FAR,),
                    created="2026-01-02T00:00:00Z",
                )
            )
        assert len(made.held) == len(before) + 1
        found.remove(name)
        assert made.held == before
        await made.close()

    asyncio.run(scene())


@on_loop
async def test_a_file_that_fails_half_way_keeps_no_chain():
    made = chains()
    found = policies(made)
    before = list(made.held)
    profiles = (Profile("another"), enabled("Breaks", scheduler_name="berth"))
    assert found.set_file(msgspec.structs.replace(found.config, profiles=profiles))
    assert made.held == before
    await made.close()


def test_one_that_no_policy_has_is_closed(monkeypatch):
    monkeypatch.setattr(extender_chains, "CLOSE_AFTER_S", 0.0)

    async def scene() -> list[str]:
        made = chains()
        chain = made.make((NEAR,), "extenders")
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def close() -> None:
            closed.set_result(None)

        monkeypatch.setattr(chain, "close", close)
        made.release(chain)
        await asyncio.wait_for(closed, 60)
        return ["closed"]

    assert asyncio.run(scene()) == ["closed"]


def test_one_that_is_being_asked_is_closed_when_it_has_answered(monkeypatch):
    monkeypatch.setattr(extender_chains, "CLOSE_AFTER_S", 0.0)

    async def scene() -> Status | None:
        came = asyncio.Event()

        def bind(asked) -> Reply:
            came.set()
            return Reply(b"{}", holds=True)

        thinking = ScriptedExtender({"bind": bind})
        await thinking.start()
        made = chains()
        chain = made.make((Extender(url_prefix=thinking.url, bind_verb="bind"),), "extenders")
        closed = asyncio.Event()
        really_close = chain.close

        async def close() -> None:
            await really_close()
            closed.set()

        monkeypatch.setattr(chain, "close", close)
        binding = asyncio.ensure_future(chain.bind(pod("p").info(), "n0"))
        await came.wait()
        made.release(chain)
        for _ in range(10):  # rounds of the loop, in one of which it is looked after
            await asyncio.sleep(0)
        assert not closed.is_set()
        await thinking.release()
        status = await binding
        await asyncio.wait_for(closed.wait(), 60)
        await thinking.stop()
        return status

    assert asyncio.run(scene()) is SUCCESS

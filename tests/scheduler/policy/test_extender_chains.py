from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from scheduler.config import ConfigError, Extender, ExtenderTLS, default_config
from scheduler.config.file_profile import Profile
from scheduler.policy import extender_chains
from scheduler.policy.extender_chains import ExtenderChains
from scheduler.policy.policies import Policies
from scheduler.policy.profile_compiler import ProfileCompiler
from tests.scheduler.parts import NoBinding
from tests.scheduler.policy.compiling import KNOWN, spec

if TYPE_CHECKING:
    from plugins.framework.handle import Handle

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


def chains(nodes: NoNodes | None = None) -> ExtenderChains:
    made = nodes or NoNodes()
    return ExtenderChains(asyncio.get_running_loop(), None, made, settle=None)


def policies(made: ExtenderChains) -> Policies:
    compiler = ProfileCompiler(lambda: KNOWN, cast("Handle", NoBinding()), made)
    found = Policies(compiler)
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

"""A folder with code that cannot be used: berth starts, and tells of it where one looks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from scheduler.config import default_config
from scheduler.metrics import Metrics
from scheduler.profiles.available_plugins import PluginSupply, SupplyOptions
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.live_profiles import LiveProfiles
from scheduler.profiles.profile_compiler import ProfileCompiler
from tests.scheduler.parts import NoBinding
from tests.scheduler.profiles.test_live_profiles import NoChains, a_swap
from tests.scheduler.user_plugins.sources import good

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plugins.framework.handle import Services
    from scheduler.profiles.extender_chains import ExtenderChains


@pytest.fixture
def supply(tmp_path: Path) -> Iterator[PluginSupply]:
    (tmp_path / "a.py").write_text(good("A"))
    (tmp_path / "broken.py").write_text("x = (\n")
    made = PluginSupply(SupplyOptions(directory=tmp_path))
    yield made
    made.stop()


def test_it_is_told_beside_the_configuration_in_force(supply: PluginSupply) -> None:
    config = supply.enabled_in(default_config("berth"))
    services, chains = cast("Services", NoBinding()), cast("ExtenderChains", NoChains())

    async def made() -> LiveProfiles:
        compiler = ProfileCompiler(supply.plugins, services, chains, supply.load_python)
        return LiveProfiles(config, KnownProfiles(compiler), a_swap(), Metrics(), supply)

    described = asyncio.run(made()).describe()
    assert "# plugin code is not used: " in described
    assert "broken.py" in described
    assert "name: A\n" in described

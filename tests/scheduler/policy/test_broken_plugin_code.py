"""A folder with code that cannot be used: berth starts, and tells of it where one looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from scheduler.config import default_config
from scheduler.metrics import Metrics
from scheduler.policy.live_policies import LivePolicies
from scheduler.policy.plugin_supply import PluginSupply, SupplyOptions
from tests.scheduler.policy.test_live_policies import NoChains
from tests.scheduler.user_plugins.sources import good

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plugins.framework.handle import Handle
    from scheduler.policy.extender_chains import ExtenderChains


@pytest.fixture
def supply(tmp_path: Path) -> Iterator[PluginSupply]:
    (tmp_path / "a.py").write_text(good("A"))
    (tmp_path / "broken.py").write_text("x = (\n")
    made = PluginSupply(SupplyOptions(directory=tmp_path))
    yield made
    made.stop()


def test_it_is_told_beside_the_configuration_in_force(supply: PluginSupply) -> None:
    config = supply.enabled_in(default_config("berth"))
    chains = cast("ExtenderChains", NoChains())
    policies = LivePolicies(config, cast("Handle", object()), chains, Metrics(), supply=supply)
    described = policies.describe()
    assert "# plugin code is not used: " in described
    assert "broken.py" in described
    assert "name: A\n" in described

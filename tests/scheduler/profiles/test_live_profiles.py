from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from plugins.registry import PLUGINS
from scheduler.config import ConfigError, default_config, load_config
from scheduler.metrics import Metrics
from scheduler.profiles import live_profiles
from scheduler.profiles.config_reload import ConfigSource
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.live_profiles import LiveProfiles
from scheduler.profiles.profile_compiler import ProfileCompiler
from scheduler.profiles.profile_swap import ProfileSwap
from scheduler.runtime.profile_map import Profiles
from tests.fakes.ports import FakeExecutor
from tests.scheduler.parts import NoBinding, Parts
from tests.scheduler.profiles.compiling import KNOWN, enabled
from tests.scheduler.profiles.test_config_reload import BROKEN, ONE, RETRY, TWO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plugins.framework.handle import Services
    from scheduler.profiles.extender_chains import ExtenderChains

PATIENCE_S = 60.0


class NoChains:
    """Makes no extenders."""

    def make(self, extenders, path):
        return None

    def release(self, chain):
        return


def a_compiler() -> ProfileCompiler:
    return ProfileCompiler(
        lambda: PLUGINS, cast("Services", NoBinding()), cast("ExtenderChains", NoChains())
    )


def a_swap() -> ProfileSwap:
    parts = Parts()
    return ProfileSwap(FakeExecutor(), Profiles(), parts.queue, parts.handlers, lambda: ())


def change(
    tmp_path: Path, text: str, until: Callable[[LiveProfiles], bool]
) -> tuple[LiveProfiles, Metrics]:
    """Write a file over another one while it is followed, and wait until something holds."""
    path = tmp_path / "berth.yaml"
    path.write_text(ONE)
    metrics = Metrics()

    async def scene() -> LiveProfiles:
        source = ConfigSource(lambda: load_config(path, KNOWN), path)
        policies = LiveProfiles(
            source.read(), KnownProfiles(a_compiler()), a_swap(), metrics, source=source
        )
        policies.start()
        try:
            path.write_text(text)
            async with asyncio.timeout(PATIENCE_S):
                while not until(policies):  # noqa: ASYNC110 - another thread changes it
                    await asyncio.sleep(0.01)
        finally:
            await asyncio.to_thread(policies.stop)
        return policies

    return asyncio.run(scene()), metrics


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(live_profiles, "LOOK_EVERY_S", 0.01)


def test_a_changed_file_changes_the_profiles_that_decide(tmp_path):
    policies, metrics = change(tmp_path, TWO, lambda live: "b" in live.profiles.names())
    assert policies.profiles.names() == {"a", "b"}
    assert 'berth_config_reloads_total{result="applied"} 1' in metrics.render()[0].decode()


def test_it_is_told_which_policy_decides(tmp_path):
    policies, _ = change(tmp_path, TWO, lambda live: "b" in live.profiles.names())
    assert "# policy of b: file@2\n" in policies.describe()


def test_it_is_told_that_a_broken_file_is_not_in_force(tmp_path):
    policies, _ = change(tmp_path, BROKEN, lambda live: "not in force" in live.describe())
    assert "schedulerNam" in policies.describe()
    assert policies.profiles.names() == {"a"}


IN_FORCE = "\nberth_config_last_reload_successful {}\n"


@pytest.mark.parametrize(
    ("text", "told", "in_force"),
    [
        pytest.param(TWO, "policy of b: file@2", 1, id="good"),
        pytest.param(BROKEN, "not in force", 0, id="broken"),
    ],
)
def test_whether_the_file_is_in_force_is_exposed(tmp_path, text, told, in_force):
    _, metrics = change(tmp_path, text, lambda live: told in live.describe())
    assert IN_FORCE.format(in_force) in metrics.render()[0].decode()


def test_what_it_was_started_with_is_in_force(tmp_path):
    _, metrics = change(tmp_path, ONE, lambda live: True)
    assert IN_FORCE.format(1) in metrics.render()[0].decode()


def test_it_is_told_what_wants_a_restart(tmp_path):
    policies, _ = change(tmp_path, RETRY, lambda live: "restart" in live.describe())
    assert "leaderElection.retryPeriod" in policies.describe()


def test_a_configuration_that_cannot_be_used_is_refused_at_the_start():
    config = msgspec.structs.replace(default_config("berth"), profiles=(enabled("NoSuch"),))
    with pytest.raises(ConfigError, match="NoSuch"):
        LiveProfiles(config, KnownProfiles(a_compiler()), a_swap(), Metrics())


def test_it_is_told_which_plugins_fail(tmp_path):
    policies, _ = change(tmp_path, TWO, lambda live: "b" in live.profiles.names())
    policies.known.plugin_trouble({"Dial": "fails: ValueError\nin line 3"})
    assert "# plugin Dial fails: ValueError in line 3\n" in policies.describe()

from __future__ import annotations

import pytest

from scheduler.config import ConfigError
from scheduler.profiles import PythonSource
from scheduler.profiles.available_plugins import PythonProfiles
from scheduler.user_plugins.catalogue import PluginCatalogue
from tests.scheduler.user_plugins.sources import good


def profiles(allowed: bool = True) -> PythonProfiles:
    return PythonProfiles(PluginCatalogue(), allowed=allowed, namespace="berth-system")


def config_map(text: str | None, namespace: str = "berth-system") -> PythonSource:
    return PythonSource("config-map", f"{namespace}/plugins/a.py", text)


def test_a_config_map_brings_plugins() -> None:
    assert set(profiles()(config_map(good("A")))) == {"A"}


@pytest.mark.parametrize(
    ("allowed", "source", "told"),
    [
        pytest.param(
            False,
            config_map(good()),
            r"^configMap: code from the cluster is not run.*--allow-python-profiles",
            id="not allowed",
        ),
        pytest.param(
            True,
            config_map(good(), "default"),
            r"^configMap: must be in namespace berth-system",
            id="another namespace",
        ),
        pytest.param(
            True,
            config_map(good(), "berth-system-2"),
            r"^configMap: must be in namespace berth-system",
            id="a namespace that begins alike",
        ),
        pytest.param(
            True, config_map(None), r"^configMap: there is no such ConfigMap", id="missing"
        ),
        pytest.param(True, config_map("x = ("), r"^configMap: .*a.py>, line 1", id="broken code"),
        pytest.param(
            True,
            config_map(good("NodeName")),
            r"^configMap: .*there is a plugin named NodeName already",
            id="a plugin of ours",
        ),
        pytest.param(
            True,
            PythonSource("entry-point", "NoSuchPlugin"),
            r"^entryPoint: .*no such entry point is installed",
            id="not installed",
        ),
    ],
)
def test_what_is_not_run_is_told(allowed: bool, source: PythonSource, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        profiles(allowed)(source)


def test_code_that_is_not_allowed_is_not_run() -> None:
    with pytest.raises(ConfigError):
        profiles(allowed=False)(config_map("raise SystemExit"))

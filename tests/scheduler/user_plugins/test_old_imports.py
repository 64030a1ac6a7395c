"""Plugins that import from where users imported before there was ``berth``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

import pytest
from structlog.testing import capture_logs

from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.finding import Found, entry_points, files_of
from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.plugin_trial.trial import TrialLimits, try_source
from tests.scheduler.user_plugins.sources import good

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scheduler.user_plugins.plugin_source import SourceKind

Brought: TypeAlias = "Callable[[str], PluginSource]"

NEW = good()
OLD = NEW.replace("from berth import", "from plugins.policy import")
OLDER = NEW.replace("from berth import", "from plugins.policy.args import")

pytestmark = pytest.mark.filterwarnings("ignore:plugins.policy:DeprecationWarning")


@pytest.fixture(params=["directory", "config-map", "entry-point"])
def brought(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Brought]:
    """Return what makes a source of a text, in each way in which users bring theirs."""
    kind: SourceKind = request.param

    def by(text: str) -> PluginSource:
        if kind == "config-map":
            return PluginSource.of_text(kind, "NS/plugins/cheap.py", text)
        (tmp_path / "cheap_plugin.py").write_text(text)
        if kind == "directory":
            (found,) = files_of(tmp_path).sources
            return found
        about = tmp_path / "cheap-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cheap\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[berth.plugins]\nCheap = cheap_plugin:Cheap\n")
        monkeypatch.syspath_prepend(tmp_path)
        (found,) = (each for each in entry_points() if each.name == "Cheap")
        return found

    yield by
    sys.modules.pop("cheap_plugin", None)


def used(source: PluginSource) -> list[str]:
    """Take a source into use, look at it once more; return the warnings as plugin and advice."""
    catalogue = PluginCatalogue()
    with capture_logs() as lines:
        for _ in range(2):
            if source.kind == "config-map":
                plugins = catalogue.load([source])
            else:
                catalogue.replace(source.kind, Found((source,)))
                plugins = catalogue.plugins
            assert "Cheap" in plugins
    return [
        f"{line['plugin']}, line {line['line']}: {line['event']}"
        for line in lines
        if line["log_level"] == "warning"
    ]


def test_a_new_import_is_fine(brought: Brought) -> None:
    assert used(brought(NEW)) == []


@pytest.mark.parametrize(
    "text", [pytest.param(OLD, id="package"), pytest.param(OLDER, id="module")]
)
def test_an_old_import_works_and_is_logged_once(brought: Brought, text: str) -> None:
    advice = "plugin imports plugins.policy, write `from berth import ...`"
    assert used(brought(text)) == [f"Cheap, line 2: {advice}"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param(NEW, "", id="new"),
        pytest.param(OLD, "DeprecationWarning: plugins.policy.Args will be removed", id="old"),
    ],
)
@pytest.mark.parametrize("asked", ["", "error"], ids=["warnings as usual", "warnings are errors"])
def test_a_trial_accepts_both_and_tells_its_author(
    brought: Brought, text: str, printed: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", asked)
    report = try_source(brought(text), TrialLimits(wall_s=60.0), sizes=(1,))
    assert report.accepted, report.problems
    assert printed in report.printed
    assert bool(report.printed) == bool(printed)

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.directory_watch import DirectoryWatch
from tests.scheduler.user_plugins.sources import good

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Watched:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.catalogue = PluginCatalogue()
        self.watch = DirectoryWatch(directory, self.catalogue, interval_s=0.01)

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, "the change was never seen"
            time.sleep(0.005)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    made.watch.look()
    made.watch.start()
    yield made
    made.watch.stop()


def test_a_file_that_comes_is_loaded(watched: Watched) -> None:
    (watched.directory / "a.py").write_text(good("A"))
    watched.until(lambda: "A" in watched.catalogue.plugins)


def test_a_file_that_changes_is_loaded_anew(watched: Watched) -> None:
    path = watched.directory / "a.py"
    path.write_text(good("A"))
    watched.until(lambda: "A" in watched.catalogue.plugins)
    path.write_text(good("B"))
    watched.until(lambda: "B" in watched.catalogue.plugins and "A" not in watched.catalogue.plugins)


def test_a_file_that_goes_takes_its_plugin_along(watched: Watched) -> None:
    path = watched.directory / "a.py"
    path.write_text(good("A"))
    watched.until(lambda: "A" in watched.catalogue.plugins)
    path.unlink()
    watched.until(lambda: "A" not in watched.catalogue.plugins)


def test_a_mounted_config_map_is_followed_through_its_symlinks(watched: Watched) -> None:
    folder = watched.directory
    for version in ("one", "two"):
        (folder / f"..{version}").mkdir()
        (folder / f"..{version}" / "a.py").write_text(good(version.title()))
    (folder / "..data").symlink_to("..one")
    (folder / "a.py").symlink_to("..data/a.py")
    watched.until(lambda: "One" in watched.catalogue.plugins)
    (folder / "..swap").symlink_to("..two")
    os.replace(folder / "..swap", folder / "..data")  # noqa: PTH105 - the kubelet's rename(2)
    watched.until(lambda: "Two" in watched.catalogue.plugins)


def test_a_look_without_a_change_reads_nothing(tmp_path: Path) -> None:
    watch = DirectoryWatch(tmp_path, PluginCatalogue())
    assert [watch.look(), watch.look()] == [True, False]

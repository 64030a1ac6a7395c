from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.e2e import images

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def commit(content: str, folder: Path) -> None:
    """Make an image of one layer, always under the same name."""
    source = folder / "content"
    source.write_text(content)
    environment = images.buildah_environment()

    def buildah(*arguments: str) -> str:
        done = subprocess.run(
            ["buildah", *arguments], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(source), "/content")
    buildah("commit", "--quiet", "--rm", container, "localhost/named")


def test_images_without_a_name_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.configure_storage()
    for content in ("one", "two", "three"):
        commit(content, tmp_path)
    assert len(images.dangling_images()) == 2
    images.remove_dangling_images()
    assert images.dangling_images() == []
    named = images.image_ids("localhost/named")
    assert len(named) == 1


def test_what_is_in_the_way_of_that_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.configure_storage()
    (images.images_folder() / "storage.conf").write_text("driver = [")
    images.remove_dangling_images()
    assert "storage.conf" in capfd.readouterr().err

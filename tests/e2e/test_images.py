from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e import images

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_images_without_a_name_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.configure_storage()
    for content in ("one", "two", "three"):
        (tmp_path / "content").write_text(content)
        images.from_scratch("localhost/named", {str(tmp_path / "content"): "/content"})
    assert len(images.dangling_images()) == 2
    images.remove_dangling_images()
    assert images.dangling_images() == []
    assert len(images.image_ids("localhost/named")) == 1


def test_what_is_in_the_way_of_that_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    images.configure_storage()
    (images.images_folder() / "storage.conf").write_text("driver = [")
    images.remove_dangling_images()
    assert "storage.conf" in capfd.readouterr().err

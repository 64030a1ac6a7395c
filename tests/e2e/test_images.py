from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e import images

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.report import Report

WHAT_IS_THERE = """
import importlib.metadata, json, re, sys
there = {re.sub("[-_.]+", "-", each.metadata["Name"]).lower(): each.version
         for each in importlib.metadata.distributions()}
bom = json.load(open("/opt/berth/sbom.cdx.json"))
print(json.dumps({"python": sys.version_info[:2], "there": there, "bom": bom}))
"""
PYTHONS = {images.VERSION: [3, 11], images.NEXT_VERSION: [3, 13]}


@pytest.mark.parametrize("version", PYTHONS)
def test_an_image_lists_what_is_installed_in_it(version: str, report: Report) -> None:
    command = ["/opt/berth/bin/python", "-c", WHAT_IS_THERE]
    found = json.loads(images.run_in(f"{images.REPOSITORY}:{version}", command))
    bom, there = found["bom"], found["there"]
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    berth = bom["metadata"]["component"]
    listed = {each["name"]: each["version"] for each in bom["components"]}
    assert listed.pop("cpython").startswith("3.")
    assert {berth["name"]: berth["version"], **listed} == there
    assert there["berth"] == version
    hashed = [each for each in bom["components"] if each["type"] == "library"]
    for each in hashed:
        assert any(reference["hashes"] for reference in each["externalReferences"]), each["name"]
    assert found["python"] == PYTHONS[version]
    python = ".".join(map(str, found["python"]))
    report.fact(f"image {version}", f"Python {python}, {len(hashed)} packages in its SBOM")


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

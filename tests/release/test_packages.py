"""Two builds of one source are the same bytes, wherever, whenever and by whom they are made."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.release.archives import checksums, files_in, write_archive
from tests.release.packages import build_chart, build_sdist, build_wheel
from tests.release.source import ROOT, VERSION, ReleaseError, run, source_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIME = 1_700_000_000
FOLDERS = ("berth", "cache", "plugins", "scheduler", "docs", "deploy")
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two copies of the source: other folders, times, modes and orders of files."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    ignored = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, first / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, first / name)
    for file in sorted(first.rglob("*"), reverse=True):
        if file.is_file():
            target = second / file.relative_to(first)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            target.chmod(0o600 | (0o100 if os.access(file, os.X_OK) else 0))
            os.utime(target, (1_000_000_000, 1_000_000_000))
    return first, second


@pytest.fixture
def other_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another umask, time zone, language and seed of hashes."""
    for name, value in (("TZ", "Asia/Tokyo"), ("LC_ALL", "C"), ("PYTHONHASHSEED", "7")):
        monkeypatch.setenv(name, value)
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def targets(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    return tmp_path / "one", tmp_path / "other"


@pytest.mark.usefixtures("other_surroundings")
@pytest.mark.parametrize("build", [build_wheel, build_sdist], ids=["wheel", "sdist"])
def test_two_builds_give_the_same_package(
    build, sources: tuple[Path, Path], targets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = build(sources[0], targets[0], TIME)
    monkeypatch.setenv("PYTHONHASHSEED", "8")
    os.umask(0o022)
    other = build(sources[1], targets[1], TIME)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.controlplane
@pytest.mark.usefixtures("other_surroundings")
def test_two_builds_give_the_same_chart(
    sources: tuple[Path, Path], targets: tuple[Path, Path], controlplane_binaries: None
) -> None:
    one = build_chart(sources[0], targets[0], TIME)
    os.umask(0o022)
    assert one.read_bytes() == build_chart(sources[1], targets[1], TIME).read_bytes()


def test_a_wheel_has_the_time_of_its_source(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(sources[0], tmp_path, TIME)) as wheel:
        assert {entry.date_time for entry in wheel.infolist()} == {(2023, 11, 14, 22, 13, 20)}


@pytest.mark.controlplane
def test_a_chart_carries_the_version_of_the_project(
    sources: tuple[Path, Path], tmp_path: Path, controlplane_binaries: None
) -> None:
    files = {name: text for name, text, _ in files_in(build_chart(sources[0], tmp_path, TIME))}
    assert f"appVersion: {VERSION}\n" in files["berth/Chart.yaml"].decode()


def test_an_archive_does_not_depend_on_the_order_of_its_files(tmp_path: Path) -> None:
    files = [("b", b"2", False), ("a", b"1", True), ("c/d", b"3", False)]
    write_archive(tmp_path / "one", files, TIME)
    write_archive(tmp_path / "other", reversed(files), TIME)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_an_archive_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = [("a", b"1", True), ("b/c", b"", False)]
    write_archive(tmp_path / "archive", files, TIME)
    assert files_in(tmp_path / "archive") == files
    with tarfile.open(tmp_path / "archive") as archive:
        assert {(entry.uid, entry.uname, entry.mtime) for entry in archive} == {(0, "", TIME)}


def test_checksums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(checksums([tmp_path / "b", tmp_path / "a"]))
    assert run(["sha256sum", "--check", "SHA256SUMS"], folder=tmp_path) == b"a: OK\nb: OK\n"


def test_the_time_of_the_source_is_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "12")
    assert source_time() == 12


def test_a_time_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(ReleaseError, match="SOURCE_DATE_EPOCH: 'today' is not a number"):
        source_time()

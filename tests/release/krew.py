"""The krew plugin ``kubectl-berth``: an archive for each platform, and the manifest of all.

An archive contains the locked packages as pip would install them:

    kubectl-berth       the program: chooses a Python, see deploy/krew
    python              starts its child processes
    lib/any             packages that suit every Python
    lib/cp311, ...      packages that suit one, such as numpy
    LICENSE

krew extracts it and links the program; it runs nothing and asks no package index.
"""

from __future__ import annotations

import csv
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.release.archives import sha256_of, write_archive
from tests.release.krew_rules import problems
from tests.release.source import VERSION, ReleaseError, run, uv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PYTHONS: Final = ("3.11", "3.12", "3.13")
ARCHITECTURES: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64"}
"""Go's name of an architecture, which krew uses, and Python's."""
PLATFORM: Final = "manylinux_2_28"
"""The oldest glibc for which google-re2 has a wheel."""
PROGRAM: Final = "kubectl-berth"

_FOLDER: Final = Path("deploy", "krew")
_UNUSED: Final = {"uvloop"}
"""Berth runs without it, and kubectl's users do not run the scheduler."""
_PURE: Final = frozenset({"none", "abi3"})
_OF_INSTALLATION: Final = frozenset({"RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})


@dataclass(frozen=True)
class Parts:
    """What an archive is made from.

    Parameters
    ----------
    source
        The folder of the source.
    wheel
        Berth's own wheel, built from it.
    time
        Of all files, in seconds since 1970.
    pythons
        For which there shall be packages.
    level
        How hard gzip tries.
    """

    source: Path
    wheel: Path
    time: int
    pythons: Sequence[str] = PYTHONS
    level: int = 6


def archive_name(architecture: str) -> str:
    """Return the file name of the archive for an architecture."""
    return f"{PROGRAM}-v{VERSION}-linux-{architecture}.tar.gz"


def build_archive(parts: Parts, target: Path, architecture: str) -> Path:
    """Build the archive for an architecture; only wheels with locked hashes are used.

    *Cost*: fetches 60 MB for each Python unless uv has cached them.
    """
    archive = target / archive_name(architecture)
    with TemporaryDirectory(prefix="krew-") as scratch:
        folder = Path(scratch)
        locked = _locked(parts.source, folder)
        for version in parts.pythons:
            library = folder / "lib" / tag_of(version)
            _install(parts, locked, library, version, architecture)
        _share([folder / "lib" / tag_of(each) for each in parts.pythons], folder / "lib" / "any")
        files = [*_program_files(parts.source), *_files_below(folder, "lib")]
        write_archive(archive, files, parts.time, parts.level)
    return archive


def tag_of(version: str) -> str:
    """Return the tag of a Python: ``cp311`` of ``3.11``."""
    return f"cp{version.replace('.', '')}"


def _locked(source: Path, folder: Path) -> Path:
    """Write the locked requirements, with hashes."""
    file = folder / "requirements.txt"
    unused = [f"--no-emit-package={name}" for name in sorted(_UNUSED)]
    export = [uv(), "export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", *unused]
    file.write_bytes(run(export, folder=source))
    return file


def _install(parts: Parts, locked: Path, library: Path, version: str, architecture: str) -> None:
    install = [
        uv(), "pip", "install", "--quiet", "--target", library, "--no-deps",
        f"--python-version={version}",
        f"--python-platform={ARCHITECTURES[architecture]}-{PLATFORM}",
    ]  # fmt: skip
    run([*install, "--only-binary=:all:", "--require-hashes", "--requirement", locked])
    # The wheel that was just built has no hash in the lock file.
    run([*install, parts.wheel])
    shutil.rmtree(library / "bin", ignore_errors=True)
    for tests in [*library.glob("numpy/**/tests"), *library.glob("websocket/tests")]:
        shutil.rmtree(tests)


def _share(libraries: Sequence[Path], shared: Path) -> None:
    """Move the packages that are the same for every Python to a folder of their own."""
    same = set.intersection(*({*_pure(library)} for library in libraries))
    for library in libraries:
        for name, _ in sorted(same):
            for file in _files_of(library, name):
                target = shared / file.relative_to(library)
                if target.exists():
                    # uv links files of its cache, and renaming one link to another does nothing.
                    file.unlink()
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)


def _pure(library: Path) -> Iterator[tuple[str, str]]:
    """Yield name and tags of the packages that are not compiled for one Python."""
    for information in library.glob("*.dist-info"):
        tags = re.findall(r"^Tag: (.*)$", (information / "WHEEL").read_text(), re.MULTILINE)
        if all(tag.split("-")[1] in _PURE for tag in tags):
            yield information.name, " ".join(sorted(tags))


def _files_of(library: Path, information: str) -> list[Path]:
    """Return the files of a package, as its record lists them, that are there."""
    with (library / information / "RECORD").open(encoding="utf-8", newline="") as record:
        files = [library / row[0] for row in csv.reader(record) if row]
    return [file for file in files if file.is_file()]


def _program_files(source: Path) -> Iterator[tuple[str, bytes, bool]]:
    for name in (PROGRAM, "python"):
        yield name, (source / _FOLDER / name).read_bytes(), True
    yield "LICENSE", (source / "LICENSE").read_bytes(), False


def _files_below(folder: Path, name: str) -> Iterator[tuple[str, bytes, bool]]:
    for file in (folder / name).rglob("*"):
        # Records of the installation name the folder and the time of the build.
        if file.is_file() and file.name not in _OF_INSTALLATION:
            yield file.relative_to(folder).as_posix(), file.read_bytes(), False


def manifest(source: Path, archives: Mapping[str, Path], downloads: str) -> dict[str, Any]:
    """Return the manifest of a release.

    Parameters
    ----------
    archives
        By architecture.
    downloads
        The address below which the files of a release will be.
    """
    found: dict[str, Any] = yaml.safe_load((source / _FOLDER / "berth.yaml").read_text())
    return {
        **found,
        "spec": {
            "version": f"v{VERSION}",
            "homepage": downloads,
            **found["spec"],
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
                    "uri": f"{downloads}/{archive.name}",
                    "sha256": sha256_of(archive),
                    "bin": PROGRAM,
                }
                for architecture, archive in sorted(archives.items())
            ],
        },
    }


def write_manifest(target: Path, content: Mapping[str, Any]) -> Path:
    """Write the manifest; its file is named after the plugin.

    Raises
    ------
    ReleaseError
        krew would refuse it; with all reasons.
    """
    file = target / f"{content['metadata']['name']}.yaml"
    found = problems(content, file.stem)
    if found:
        raise ReleaseError("krew would refuse the manifest:\n" + "\n".join(found))
    file.write_text(yaml.dump(dict(content), Dumper=_Dumper, sort_keys=False))
    return file


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are in the source."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

"""The images that run on the real nodes, built here and kept as archives; no registry is asked.

``berth`` is what ``make image`` builds from the Dockerfile, over bases that debootstrap made: as
the version that the source is over Debian 12, with Python 3.11, and as the next one over Debian 13,
with Python 3.13. So whatever runs both versions runs both Pythons.
``busybox`` is Debian's static busybox on nothing: the workload, and the pause image of every pod.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import ControlPlaneError, cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
REPOSITORY: Final = "localhost/berth"
VERSION: Final[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NEXT_VERSION: Final = f"{int(VERSION.split('.')[0]) + 1}.0.0"
"""The source is the same; chart, image and program say another number."""
BUSYBOX: Final = "localhost/busybox:e2e"

BEFORE_VARIABLE: Final = "BERTH_E2E_BEFORE"


def source_of(version: str) -> Path:
    """Return the checkout that image and chart of a version are made from.

    It is this one, but for the older version when :data:`BEFORE_VARIABLE` names another checkout:
    then what is upgraded is the program that stands there, and the rollback returns to it.
    """
    before = os.environ.get(BEFORE_VARIABLE)
    return Path(before).resolve() if before and version == VERSION else ROOT


SUITES: Final[Mapping[str, str]] = {VERSION: "bookworm", NEXT_VERSION: "trixie"}
"""Which Debian is below which version."""

_MAX_DANGLING: Final = 20
"""Images without a name are what builds are resumed from; each takes some 400 MB."""
_SOURCES: Final = (
    "Dockerfile",
    "Makefile",
    "pyproject.toml",
    "uv.lock",
    "README.md",
    "LICENSE",
)
_SOURCE_FOLDERS: Final = ("berth", "cache", "plugins", "scheduler", "image")
_HOST_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_USELESS: Final = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
)
_PIP_CONF: Final = f"[global]\ncert = {_HOST_AUTHORITIES}\n"


def images_folder() -> Path:
    """Return the folder outside the checkout where archives and buildah's storage are kept."""
    return cache_folder().parent / "e2e"


def build_images() -> dict[str, Path]:
    """Return an archive for each image, by its name; builds those whose source has changed.

    Raises
    ------
    ControlPlaneError
        debootstrap or buildah failed (with the end of its output).

    Cost
    ----
    About five minutes the first time (the bases, 90 s of it), a minute and a half when berth's
    source has changed, nothing otherwise.
    """
    configure_storage()
    folder = images_folder()
    berth = {
        version: folder / f"berth-{version}-{_berth_digest(source_of(version))}.tar"
        for version in (VERSION, NEXT_VERSION)
    }
    if not all(archive.exists() for archive in berth.values()):
        for old in folder.glob("berth-*.tar"):
            if old not in berth.values():
                old.unlink()
        if len(dangling_images()) > _MAX_DANGLING:
            remove_dangling_images()
        for version, archive in berth.items():
            if not archive.exists():
                _build_berth(version, build_base(SUITES[version]), archive)
    busybox = folder / f"busybox-{_digest([Path('/bin/busybox')])}.tar"
    if not busybox.exists():
        _build_busybox(busybox)
    return {
        **{f"{REPOSITORY}:{version}": archive for version, archive in berth.items()},
        BUSYBOX: busybox,
    }


def buildah_environment() -> dict[str, str]:
    """Return the environment in which buildah works without a daemon, overlayfs or user service."""
    return {
        **os.environ,
        "BUILDAH_ISOLATION": "chroot",
        "STORAGE_DRIVER": "vfs",
        "CONTAINERS_STORAGE_CONF": str(images_folder() / "storage.conf"),
    }


def configure_storage() -> None:
    """Tell buildah to keep what it makes in :func:`images_folder`."""
    folder = images_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
    )


def image_ids(name: str) -> list[str]:
    """Return the ids of the images of that name: one, or none."""
    return _buildah(["images", "--quiet", "--filter", f"reference={name}"]).split()


def dangling_images() -> list[str]:
    """Return the ids of the images that have no name."""
    return _buildah(["images", "--quiet", "--filter", "dangling=true"]).split()


def remove_dangling_images() -> None:
    """Remove the images that have no name; what is in the way of that is told and left."""
    try:
        # ``buildah prune`` would say the same, but is younger than Debian 12.
        _buildah(["rmi", "--prune", "--force"])
    except ControlPlaneError as error:
        sys.stderr.write(f"{error}\n")


def build_base(suite: str) -> str:
    """Make the base image of a Debian, unless buildah has it; return its name."""
    base, folder = f"localhost/berth-base:{suite}", images_folder()
    if image_ids(base):
        return base
    with tempfile.TemporaryDirectory(prefix="base-", dir=folder) as scratch:
        root = Path(scratch, "root")
        _run(
            [
                "debootstrap",
                "--variant=minbase",
                "--include=python3,python3-venv,ca-certificates",
                suite,
                str(root),
            ]
        )
        # Behind a proxy that signs for others, what the machine trusts the build must trust.
        shutil.copyfile(_HOST_AUTHORITIES, root / _HOST_AUTHORITIES.relative_to("/"))
        (root / "etc/pip.conf").write_text(_PIP_CONF)
        for useless in _USELESS:
            shutil.rmtree(root / useless, ignore_errors=True)
        from_scratch(base, {str(root): "/"})
    return base


def _build_berth(version: str, base: str, archive: Path) -> None:
    image = f"{REPOSITORY}:{version}"
    _run(
        ["make", "--no-print-directory", "image", "BUILDER=buildah", f"BASE={base}",
         f"IMAGE={image}", f"VERSION={version}", "BUILD_ARGS=--pull-never --layers"],
        cwd=source_of(version),
    )  # fmt: skip
    _push(image, archive)


def _build_busybox(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="busybox-") as scratch:
        root = Path(scratch, "root")
        (root / "bin").mkdir(parents=True)
        shutil.copy2("/bin/busybox", root / "bin/busybox")
        for applet in ("sh", "sleep", "true", "wget", "cat", "echo", "date", "ls", "id"):
            (root / "bin" / applet).symlink_to("busybox")
        from_scratch(
            BUSYBOX, {str(root): "/"}, ["--entrypoint", '["/bin/sleep", "1000000"]', "--cmd", ""]
        )
        _push(BUSYBOX, archive)


def from_scratch(name: str, added: Mapping[str, str], settings: Sequence[str] = ()) -> None:
    """Make an image of one layer: what is added, from here to where, and what is configured."""
    container = _buildah(["from", "scratch"]).strip()
    try:
        for source, target in added.items():
            _buildah(["add", "--quiet", container, source, target])
        if settings:
            _buildah(["config", *settings, container])
        _buildah(["commit", "--quiet", container, name])
    finally:
        _buildah(["rm", container])


def _push(name: str, archive: Path) -> None:
    """Write the archive whole or not at all."""
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    _buildah(["push", "--quiet", name, f"docker-archive:{partial}:{name}"])
    partial.replace(archive)


def run_in(
    image: str,
    command: Sequence[str],
    added: Mapping[str, str] | None = None,
    *,
    shown: bool = False,
) -> str:
    """Run a command in a container of an image, with the host's network; return what it says.

    Parameters
    ----------
    added
        What is copied into it before, from here to where.
    shown
        What it says is written to our own output as it says it, and nothing is returned.

    Raises
    ------
    ControlPlaneError
        It failed.
    """
    container = _buildah(["from", "--pull-never", image]).strip()
    try:
        for source, target in (added or {}).items():
            _buildah(["add", "--quiet", container, source, target])
        return _buildah(["run", "--user", "0", container, "--", *command], shown=shown)
    finally:
        _buildah(["rm", container])


def _buildah(arguments: Sequence[str], *, shown: bool = False) -> str:
    return _run(["buildah", *arguments], shown=shown)


def _run(command: Sequence[str], *, cwd: Path | None = None, shown: bool = False) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=buildah_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=not shown,
        text=True,
        check=False,
    )
    output = done.stdout or ""
    if done.returncode != 0:
        tail = "\n".join((output + (done.stderr or "")).rstrip().splitlines()[-25:])
        raise ControlPlaneError(f"{' '.join(command)} failed:\n{tail}")
    return output


def _berth_digest(root: Path) -> str:
    files = [Path(__file__), *(root / name for name in _SOURCES)]
    for folder in _SOURCE_FOLDERS:
        files += sorted(
            path
            for path in (root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
    return _digest(files)


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        digest.update(f"{name}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]

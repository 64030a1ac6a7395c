"""The image as an archive for each architecture that the builder can run."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.release.krew import ARCHITECTURES
from tests.release.source import VERSION, ReleaseError, run

if TYPE_CHECKING:
    from collections.abc import Sequence

_BINFMT: Final = Path("/proc/sys/fs/binfmt_misc")
_BILL: Final = "/opt/berth/sbom.cdx.json"


def find_builder() -> str | None:
    """Return docker if its daemon answers, else podman or buildah, or None."""
    for name in ("docker", "podman", "buildah"):
        if shutil.which(name) is None:
            continue
        if name != "docker":
            return name
        try:
            run(["docker", "info"])
        except ReleaseError:
            continue
        return name
    return None


def why_not(architecture: str, binfmt: Path = _BINFMT) -> str | None:
    """Return why this machine cannot build for an architecture; None if it can.

    The Dockerfile runs programs of the image, so the kernel has to run them: its own, or others'
    with an interpreter that is registered with binfmt_misc.
    """
    machine = ARCHITECTURES[architecture]
    if platform.machine() == machine:
        return None
    for entry in binfmt.glob("*"):
        if entry.name in ("register", "status"):
            continue
        text = entry.read_text(errors="replace")
        if entry.name.endswith(machine) and text.startswith("enabled"):
            return None
    return (
        f"this {platform.machine()} machine cannot run {machine} programs: "
        f"no interpreter such as qemu-{machine} is registered in {binfmt}"
    )


def build_image(
    builder: str, architecture: str, source: Path, target: Path, arguments: Sequence[str]
) -> list[Path]:
    """Build the image for an architecture; return its archive and its bill of materials.

    Parameters
    ----------
    arguments
        Of ``make image``, such as ``BASE=...``.

    *Cost*: about two minutes.
    """
    name = f"localhost/berth:{VERSION}-{architecture}"
    given = dict(each.partition("=")[::2] for each in arguments)
    options = f"--platform=linux/{architecture} {given.pop('BUILD_ARGS', '')}".strip()
    run(
        ["make", "--no-print-directory", "image", f"BUILDER={builder}", f"IMAGE={name}",
         f"BUILD_ARGS={options}", *(f"{key}={value}" for key, value in given.items())],
        folder=source,
    )  # fmt: skip
    stem = f"berth-{VERSION}-image-linux-{architecture}"
    archive, bill = target / f"{stem}.tar", target / f"{stem}.cdx.json"
    archive.unlink(missing_ok=True)
    if builder == "buildah":
        run(["buildah", "push", "--quiet", name, f"docker-archive:{archive}:berth:{VERSION}"])
    else:
        run([builder, "tag", name, f"berth:{VERSION}"])
        run([builder, "save", "--output", archive, f"berth:{VERSION}"])
    bill.write_bytes(_bill_in(builder, name))
    return [archive, bill]


def _bill_in(builder: str, name: str) -> bytes:
    """Return the bill of materials that is in an image."""
    create = ["from", "--pull-never"] if builder == "buildah" else ["create"]
    container = run([builder, *create, name]).decode().strip()
    try:
        if builder == "buildah":
            return run(["buildah", "run", "--user=0", container, "--", "cat", _BILL])
        with TemporaryDirectory(prefix="bill-") as folder:
            run([builder, "cp", f"{container}:{_BILL}", folder])
            return (Path(folder) / Path(_BILL).name).read_bytes()
    finally:
        run([builder, "rm", container])

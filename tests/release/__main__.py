"""``make release``: everything that a release consists of, in dist/.

    berth-V-py3-none-any.whl, berth-V.tar.gz     wheel and source distribution
    berth-V.tgz                                  the chart
    berth-V.cdx.json                             the bill of materials of the Python package
    kubectl-berth-vV-linux-ARCH.tar.gz           the kubectl plugin, for krew
    berth.yaml                                   its krew manifest
    berth-V-image-linux-ARCH.tar, .cdx.json      the image as an archive, and what is in it
    RELEASE_NOTES.md, SHA256SUMS                 what changed, and the checksums of all others

All but the images are the same bytes from each build of a commit.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import ControlPlaneError
from tests.release.archives import checksums
from tests.release.bill import build_bill
from tests.release.images import build_image, find_builder, why_not
from tests.release.krew import ARCHITECTURES, Parts, build_archive, manifest, write_manifest
from tests.release.notes import release_notes
from tests.release.packages import build_chart, build_sdist, build_wheel
from tests.release.source import ROOT, VERSION, ReleaseError, source_time, unpack_source

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACE: Final = "https://berth.example"
"""There is no published place yet."""


def main(arguments: Sequence[str]) -> int:
    """Build a release; return 0 if all of it was built."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--place", default=PLACE, help="the address of the project")
    parser.add_argument("--no-images", action="store_true", help="build all else")
    parser.add_argument("image", nargs="*", help="arguments of make image, such as BASE=...")
    options = parser.parse_args(arguments)
    try:
        _release(options)
    except (ReleaseError, ControlPlaneError) as error:
        sys.stderr.write(f"make release: {error}\n")
        return 1
    return 0


def _release(options: argparse.Namespace) -> None:
    target: Path = options.target.resolve()
    target.mkdir(parents=True, exist_ok=True)
    made, at = [], source_time()
    with TemporaryDirectory(prefix="release-") as folder:
        source = Path(folder, "berth")
        unpack_source(source)
        wheel = build_wheel(source, target, at)
        made += [wheel, build_sdist(source, target, at), build_chart(source, target, at)]
        made.append(build_bill(source, target, at))
        parts = Parts(source, wheel, at)
        plugins = {each: build_archive(parts, target, each) for each in ARCHITECTURES}
        downloads = f"{options.place}/releases/v{VERSION}"
        made += [*plugins.values(), write_manifest(target, manifest(source, plugins, downloads))]
        images, missing = ([], []) if options.no_images else _images(source, target, options.image)
        made += images
        changelog = (source / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = target / "RELEASE_NOTES.md"
    facts = "\n".join(f"There is {each}." for each in missing)
    notes.write_text(release_notes(changelog, VERSION, f"{options.place}/source/v{VERSION}", facts))
    made.append(notes)
    (target / "SHA256SUMS").write_text(checksums(made))
    for file in made:
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.name}")
    print(f"{target}/SHA256SUMS, times of {time.strftime('%F %T', time.gmtime(at))} UTC")
    for each in missing:
        print(each)


def _images(source: Path, target: Path, arguments: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the files of the images, and what is said of those that cannot be built."""
    builder = find_builder()
    if builder is None:
        raise ReleaseError("images need docker, podman or buildah; --no-images builds all else")
    made, missing = [], []
    for architecture in ARCHITECTURES:
        why = why_not(architecture)
        if why is None:
            made += build_image(builder, architecture, source, target, arguments)
        else:
            missing.append(f"no image for {architecture}: {why}")
    return made, missing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

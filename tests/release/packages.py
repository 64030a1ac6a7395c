"""The wheel, the source distribution and the chart's package: the same bytes from each build."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.controlplane.binaries import find_or_build
from tests.deploy.discovery_cache import without_traces
from tests.release.archives import files_in, write_archive
from tests.release.source import VERSION, run

CHART = Path("deploy", "charts", "berth")


def build_wheel(source: Path, target: Path, time: int) -> Path:
    """Build the wheel of a source folder."""
    return _build(source, target, time, "wheel", f"berth-{VERSION}-py3-none-any.whl")


def build_sdist(source: Path, target: Path, time: int) -> Path:
    """Build the source distribution of a source folder."""
    return _build(source, target, time, "sdist", f"berth-{VERSION}.tar.gz")


def _build(source: Path, target: Path, time: int, kind: str, name: str) -> Path:
    # hatchling takes times from the variable, sorts files and sets their modes.
    run(
        [sys.executable, "-P", "-m", "hatchling", "build", "--target", kind, "-d", target],
        folder=source,
        environment={"SOURCE_DATE_EPOCH": str(time)},
    )
    return target / name


def build_chart(source: Path, target: Path, time: int) -> Path:
    """Build the package of the chart, with the version and app version of Berth.

    helm checks the chart and chooses its files; the archive is then written again, because helm
    gives each file the time of the build.
    """
    helm = find_or_build(["helm"])["helm"]
    versions = [f"--version={VERSION}", f"--app-version={VERSION}"]
    environment = without_traces()
    run([helm, "lint", "--strict", source / CHART], environment=environment)
    package_it = [helm, "package", source / CHART, "--destination", target, *versions]
    run(package_it, environment=environment)
    package = target / f"berth-{VERSION}.tgz"
    write_archive(package, files_in(package), time)
    return package

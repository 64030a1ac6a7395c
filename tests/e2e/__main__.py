"""``make e2e``: prepares what a real cluster needs, then runs the tests of this folder in it.

Root only: containers, namespaces and network devices are made. Everything runs in a sandbox and is
gone afterwards; what is kept is the cache (programs, images) and the Debian packages.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.controlplane.binaries import CONTAINERD, ControlPlaneError, find_or_build
from tests.e2e.images import BEFORE_VARIABLE, build_images
from tests.e2e.load import RATE_VARIABLE
from tests.e2e.packages import install_packages
from tests.e2e.sandbox import run_inside

_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubectl",
    "helm",
    *CONTAINERD,
    "driver",
)


def main() -> int:
    """Return pytest's exit status, or 1 when the machine cannot be made ready."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e")
    parser.add_argument("--keep", action="store_true", help="leave logs and audit log behind")
    parser.add_argument(
        "--before", metavar="CHECKOUT", help="upgrade from the image and chart of this checkout"
    )
    parser.add_argument(
        "--rate", type=float, metavar="PODS", help="pods created a second while versions change"
    )
    options, pytest_arguments = parser.parse_known_args()
    if options.before:
        os.environ[BEFORE_VARIABLE] = str(Path(options.before).resolve())
    if options.rate:
        os.environ[RATE_VARIABLE] = str(options.rate)
    if os.geteuid() != 0:
        sys.stderr.write("a real node makes containers and network devices: run this as root\n")
        return 1
    started = time.monotonic()
    try:
        installed = install_packages()
        _say(f"Debian packages: {', '.join(installed) or 'all there'}", started)
        find_or_build(_PROGRAMS)
        _say(f"programs: {', '.join(_PROGRAMS)}", started)
        _say("images: minutes the first time, a minute when the source has changed", started)
        images = build_images()
        sizes = ", ".join(
            f"{name} {path.stat().st_size / 1e6:.0f} MB" for name, path in images.items()
        )
        _say(f"images: {sizes}", started)
    except ControlPlaneError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return run_inside(
        [
            sys.executable, "-m", "pytest", str(Path(__file__).parent), "--exitfirst", "-q",
            "--capture=no", "-p", "no:cacheprovider", *pytest_arguments,
        ],
        keep=options.keep,
    )  # fmt: skip


def _say(what: str, started: float) -> None:
    print(f"{time.monotonic() - started:5.0f} s  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The Debian packages that a real node needs, installed without starting a single service.

Packages bring services that start when they are installed; ``/usr/sbin/policy-rc.d`` is Debian's
own way to forbid that. One that is there already is left alone, whatever it says.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import ControlPlaneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A program (or file) by which one knows that the package is there.
PACKAGES: Final[Mapping[str, str]] = {
    "runc": "runc",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "iproute2": "ip",
    "util-linux": "unshare",
    "busybox-static": "/bin/busybox",
    "prometheus": "prometheus",
}
_POLICY: Final = Path("/usr/sbin/policy-rc.d")


def install_packages(wanted: Mapping[str, str] = PACKAGES) -> list[str]:
    """Install those packages that are missing; their names.

    Raises
    ------
    ControlPlaneError
        Something is missing and this is no Debian or not root, or apt-get failed.
    """
    missing = [name for name, sign in wanted.items() if not _is_there(sign)]
    if not missing:
        return []
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ControlPlaneError(
            f"this needs {', '.join(missing)}: install them, or run this as root on Debian"
        )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _no_service_starts():
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-qy", "--no-install-recommends", *missing],
        ):
            done = subprocess.run(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                tail = "\n".join(done.stdout.rstrip().splitlines()[-15:])
                raise ControlPlaneError(f"{' '.join(command)} failed:\n{tail}")
    return missing


def _is_there(sign: str) -> bool:
    return Path(sign).exists() if sign.startswith("/") else shutil.which(sign) is not None


@contextlib.contextmanager
def _no_service_starts() -> Iterator[None]:
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()

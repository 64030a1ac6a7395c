"""Prometheus and its tool for rules: on ``$PATH``, or out of Debian's package, kept in the cache.

The package is unpacked, not installed: that takes no root and starts no service.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.binaries import ControlPlaneError, cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence


def promtool(*arguments: str | Path) -> str:
    """Return what promtool prints.

    Raises
    ------
    AssertionError
        It failed; with what it printed.
    """
    answer = _run([find_promtool(), *arguments])
    assert answer.returncode == 0, answer.stdout
    return answer.stdout


def find_promtool() -> Path:
    """Return the program, fetching it once where it is missing.

    Raises
    ------
    ControlPlaneError
        It is missing, and this is no Debian or the package cannot be had.
    """
    return _find("promtool")


def find_prometheus() -> Path:
    """Return the server, as :func:`find_promtool` the tool."""
    return _find("prometheus")


def _find(program: str) -> Path:
    if on_path := shutil.which(program):
        return Path(on_path)
    kept = cache_folder() / "promtool" / program
    if not kept.exists():
        _fetch(kept)
    return kept


def _fetch(kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        download = ["apt-get", "download", "-q", "prometheus"]
        answer = _run(download, folder)
        if answer.returncode != 0 and os.geteuid() == 0:
            _run(["apt-get", "update", "-q"])
            answer = _run(download, folder)
        packages = list(Path(folder).glob("prometheus_*.deb"))
        if not packages:
            raise ControlPlaneError(
                f"{kept.name} is needed: install prometheus (apt-get could not download it):\n"
                + answer.stdout
            )
        unpacked = _run(["dpkg-deb", "-x", packages[0], "."], folder)
        if unpacked.returncode != 0:
            raise ControlPlaneError(f"the package cannot be unpacked:\n{unpacked.stdout}")
        (Path(folder) / "usr" / "bin" / kept.name).replace(kept)


def _run(
    command: Sequence[str | Path], folder: str | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ControlPlaneError(f"prometheus is needed, and there is no {command[0]}") from error

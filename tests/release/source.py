"""What releases are made of: the committed source, its version and its time."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
VERSION: Final[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


class ReleaseError(Exception):
    """Something was not built; the message says what, and what the program said."""


def run(
    command: Sequence[str | Path],
    *,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Return what a program prints.

    Raises
    ------
    ReleaseError
        It failed; with the end of its output.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").rstrip().splitlines()
        called = " ".join(map(str, command[:4]))
        raise ReleaseError(f"{called} ... failed:\n" + "\n".join(said[-25:]))
    return done.stdout


def source_time() -> int:
    """Return the time that files of a release carry: $SOURCE_DATE_EPOCH, else the commit's.

    *Source*: https://reproducible-builds.org/specs/source-date-epoch
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        if not given.isdecimal():
            raise ReleaseError(f"SOURCE_DATE_EPOCH: {given!r} is not a number of seconds")
        return int(given)
    return int(run(["git", "log", "-1", "--format=%ct"]))


def unpack_source(folder: Path) -> None:
    """Unpack the committed source; files that are not committed are not released.

    Prints a warning if there are any.
    """
    if run(["git", "status", "--porcelain"]):
        sys.stderr.write("make release: changes that are not committed are not in the release\n")
    tar = run(["git", "archive", "--format=tar", "HEAD"])
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        archive.extractall(folder, filter="data")


def uv() -> str:
    """Return the uv program."""
    import shutil

    return shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")

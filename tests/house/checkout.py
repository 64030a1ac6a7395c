"""A checkout to be measured: a folder, or a git revision that is unpacked for the time being."""

from __future__ import annotations

import io
import subprocess
import tarfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.house.source import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterator


class CheckoutError(Exception):
    """There is no such checkout; the message says why in a sentence."""


@contextmanager
def checked_out(name: str, repository: Path) -> Iterator[Path]:
    """Return the folder of a checkout.

    Parameters
    ----------
    name
        A folder with the three packages, or else a revision of the repository.

    Raises
    ------
    CheckoutError
        When it is neither.
    """
    if Path(name).is_dir():
        yield _checked(Path(name).resolve(), name)
        return
    with TemporaryDirectory(prefix="house-") as folder:
        _unpack(name, repository, Path(folder))
        yield _checked(Path(folder).resolve(), name)


def _unpack(revision: str, repository: Path, folder: Path) -> None:
    command = ["git", "archive", "--format=tar", revision, "--", *PACKAGES, "tests"]
    done = subprocess.run(command, cwd=repository, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise CheckoutError(f"{revision!r} is neither a folder nor a revision: {why}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _checked(folder: Path, name: str) -> Path:
    missing = [package for package in PACKAGES if not (folder / package).is_dir()]
    if missing:
        raise CheckoutError(f"{name!r} has no folder {', '.join(missing)}")
    return folder

"""Archives whose bytes depend on nothing but names, modes and contents of their files."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LEVEL: Final = 6


def write_archive(
    target: Path, files: Iterable[tuple[str, bytes, bool]], time: int, level: int = _LEVEL
) -> None:
    """Write a ``.tar.gz`` of regular files: sorted, of nobody, with one time.

    Parameters
    ----------
    files
        Name, content, and whether it is a program.
    time
        In seconds since 1970.
    level
        How hard gzip tries.
    """
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name, content, is_program in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), time
            entry.mode = 0o755 if is_program else 0o644
            archive.addfile(entry, io.BytesIO(content))


def files_in(archive: Path) -> list[tuple[str, bytes, bool]]:
    """Return the regular files of an archive: name, content, and whether it is a program."""
    found = []
    with tarfile.open(archive) as opened:
        for entry in opened:
            content = opened.extractfile(entry) if entry.isreg() else None
            if content is not None:
                found.append((entry.name, content.read(), bool(entry.mode & 0o100)))
    return found


def sha256_of(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def checksums(files: Iterable[Path]) -> str:
    """Return the checksums of files as ``sha256sum --check`` reads them."""
    return "".join(f"{sha256_of(file)}  {file.name}\n" for file in sorted(files))

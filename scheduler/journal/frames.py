"""The files of a journal: a magic number, then frames with their length and checksum.

    file   = magic, frame of the header, frames of records
    frame  = length (4 bytes), CRC-32 (4 bytes), that many bytes: MessagePack, deflated

A file that was cut, or that the process did not finish, ends at its last complete frame. A frame
whose checksum does not match ends it as well.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.process.expected_error import ExpectedError
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

MAGIC: Final = b"BERTHJNL"
FORMAT: Final = 1
READABLE: Final = frozenset({1})
"""The formats that this version reads. A version that changes the format keeps reading the one
before."""

MAX_FRAME_BYTES: Final = 256 << 20
"""A longer frame is taken for damage."""

MAX_INFLATED_BYTES: Final = 1 << 30

_PREFIX: Final = struct.Struct(">II")
_NAME: Final = re.compile(r"(\d{13})-(\d{6})\.berth-journal")
_LEVEL: Final = 1
"""The quickest; records of one workload are alike, and shrink to an eighth all the same."""

encode: Final = msgspec.msgpack.Encoder().encode
decode: Final = msgspec.msgpack.Decoder().decode


class JournalError(ExpectedError, ValueError):
    """A journal cannot be read; the message is one sentence that names the file."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first frame of a file.

    Attributes
    ----------
    format
        The version of the format.
    berth
        The version that wrote it.
    cluster
        The UID of the namespace ``kube-system``; empty while it is not known.
    run, segment
        The process that wrote it, and the number of the file among those of the process.
    began_s
        Seconds since the epoch.
    lost
        How many records are missing between the file before and this one.
    redacted
        Whether names were replaced.
    """

    format: int
    berth: str = ""
    cluster: str = ""
    run: str = ""
    segment: int = 0
    began_s: float = 0.0
    lost: int = 0
    redacted: bool = False


def header_frame(header: Header) -> bytes:
    """Return what a file begins with."""
    return MAGIC + frame(encode(header))


def frame(payload: bytes) -> bytes:
    """Return one frame."""
    packed = zlib.compress(payload, _LEVEL)
    return _PREFIX.pack(len(packed), zlib.crc32(packed)) + packed


def file_name(header: Header) -> str:
    """Return the name of a file; the names sort by time."""
    return f"{int(header.began_s * 1000):013d}-{header.segment:06d}.berth-journal"


def files_of(directory: Path) -> list[Path]:
    """Return the files of a journal, the oldest first.

    Raises
    ------
    JournalError
        When the directory cannot be read.
    """
    try:
        found = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except OSError as error:
        raise JournalError(f"{directory} cannot be read: {error.strerror}") from error
    return sorted(found, key=lambda path: path.name)


def read_header(path: Path) -> Header | None:
    """Return the header of a file; None when the file was cut within it.

    Raises
    ------
    JournalError
        When the file is no journal, or of a format that this version does not read.
    """
    with _opened(path) as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC[: len(magic)]:
            raise JournalError(f"{path} is not a file of a journal")
        payload = _next_frame(file)
    if payload is None:
        return None
    try:
        told = decode(payload)
        version = told.get("format") if isinstance(told, dict) else None
        if isinstance(version, int) and version not in READABLE:
            which = "an older" if version < min(READABLE) else "a newer"
            raise JournalError(
                f"{path} has format {version}, of {which} version of berth "
                f"({told.get('berth') or 'unknown'}); this is berth {VERSION}, which reads "
                f"{', '.join(map(str, sorted(READABLE)))}"
            )
        return msgspec.convert(told, Header)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise JournalError(f"{path}: the header cannot be read: {error}") from error


def read_frames(path: Path) -> Iterator[list[Any]]:
    """Yield the records of each complete frame after the header.

    Raises
    ------
    JournalError
        When a complete frame with a right checksum does not hold records.
    """
    with _opened(path) as file:
        file.seek(len(MAGIC))
        _next_frame(file)
        number = 1
        while (payload := _next_frame(file)) is not None:
            try:
                records = decode(payload)
            except msgspec.DecodeError as error:
                raise JournalError(f"{path}: frame {number} cannot be read: {error}") from error
            if not isinstance(records, list):
                raise JournalError(f"{path}: frame {number} holds no records")
            yield records
            number += 1


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error


def _next_frame(file: Any) -> bytes | None:
    """Return the content of the next frame; None at the end, or where the file is damaged."""
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        return None
    length, checksum = _PREFIX.unpack(prefix)
    if length > MAX_FRAME_BYTES:
        return None
    packed = file.read(length)
    if len(packed) < length or zlib.crc32(packed) != checksum:
        return None
    inflater = zlib.decompressobj()
    try:
        payload = inflater.decompress(packed, MAX_INFLATED_BYTES)
    except zlib.error:
        return None
    return payload if inflater.eof else None


def take_each(frames: Iterable[list[Any]], take: Callable[[list[Any]], object]) -> None:
    """Pass on the records of a file one after another.

    Raises
    ------
    JournalError
        When a record makes no sense.
    """
    for records in frames:
        for record in records:
            try:
                take(record)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                why = f"{type(error).__name__}: {error}"
                raise JournalError(f"a record of kind {record[0]!r}: {why}") from error

"""Write a journal: one thread encodes entries, another one writes and syncs files.

    threads of the scheduler -> Journal.waiting -> encoding thread -> frames -> disk thread -> files

A slow disk delays the second thread only. Frames that wait beyond a number of bytes are dropped:
the file ends there, and the next one begins with a checkpoint and the number of missing records.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import structlog

from scheduler.journal.frames import FORMAT, Header, encode, file_name, frame, header_frame
from scheduler.journal.mirror import Mirror
from scheduler.journal.records import RecordEncoder
from scheduler.journal.segment_files import SegmentFiles
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.journal.options import JournalOptions
    from scheduler.journal.recorder import Journal

ROUND_S: Final = 0.1
"""How often entries are taken: what a process that is killed loses, besides what is not synced."""

SYNC_S: Final = 1.0

SLICE: Final = 200
"""Entries encoded before other threads get their turn: about a millisecond."""

PAUSE_S: Final = 0.002

FRAME_RECORDS: Final = 2_000

RETRY_S: Final = 30.0
"""After which a disk that failed is tried again."""

log = structlog.get_logger(__name__)


class JournalWriter:
    """Write the entries of a journal into files.

    Attributes
    ----------
    decisions, bytes, gaps
        What was encoded, in bytes as written, and how often records were lost.

    Notes
    -----
    *Concurrency*: :meth:`start` and :meth:`stop` on the I/O loop; the attributes from any thread.
    """

    def __init__(
        self,
        journal: Journal,
        options: JournalOptions,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.decisions = 0
        self.bytes = 0
        self.gaps = 0
        self._journal = journal
        self._options = options
        self._clock = clock
        self._wall_clock = wall_clock
        self._mirror = Mirror()
        self._encoder: RecordEncoder | None = None
        self._run = uuid4().hex
        self._segment = 0
        self._segment_bytes = 0
        self._began_s = 0.0
        self._lost = 0
        self._disk = _Disk(SegmentFiles(options), clock)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._encode_until_stopped, name="journal", daemon=True),
            threading.Thread(target=self._disk.run, name="journal-disk", daemon=True),
        ]

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what waits, and end the threads; give up after a time."""
        self._stopping.set()
        self._threads[0].join(timeout_s)
        self._disk.stop()
        self._threads[1].join(timeout_s)

    def write_now(self) -> None:
        """Write and sync everything that waits, in the calling thread: without :meth:`start`."""
        self.encode_waiting(lambda _: None)
        self._disk.write_waiting()

    def _encode_until_stopped(self) -> None:
        while not self._stopping.wait(ROUND_S):
            self._encode_or_end()
        self._encode_or_end()

    def _encode_or_end(self) -> None:
        try:
            self.encode_waiting(time.sleep)
        except Exception:
            # Whatever it is: scheduling goes on, and what is known cannot be followed any more.
            log.exception("journal ended")
            self._journal.is_over = True
            self._journal.waiting.clear()

    # --- encoding -----------------------------------------------------------------------------

    def encode_waiting(self, pause: Callable[[float], object]) -> None:
        """Encode the entries that wait, with a pause after each slice."""
        waiting = self._journal.waiting
        if self._journal.is_over:
            self._end()
            waiting.clear()
            return
        while waiting:
            for _ in range(min(len(waiting), SLICE)):
                entry = waiting.popleft()
                self._mirror.follow(entry)
                if entry[0] == "cut":
                    self._begin_file(entry, pause)
                elif self._segment:
                    self._add(entry)
            if waiting:
                pause(PAUSE_S)
        self._flush()
        self._look_at_bounds()

    def _add(self, entry: Any) -> None:
        encoder = self._encoder
        if encoder is None:
            self._lost += 1
            return
        try:
            encoder.add(entry)
        except Exception:
            log.exception("journal: an entry cannot be encoded", entry=entry[0])
            self._flush()  # what came before it is whole
            self._give_up_file(1, "an entry cannot be encoded")
            return
        self.decisions += entry[0] in ("decision", "plan")
        if len(encoder.out) >= FRAME_RECORDS:
            self._flush()

    def _flush(self) -> None:
        records = [] if self._encoder is None else self._encoder.take()
        if records:
            self._send(frame(encode(records)), len(records))

    def _send(self, content: bytes, num_records: int, name: str = "") -> None:
        if self._disk.has_failed or self._disk.waiting_bytes > self._options.pending_bytes:
            self._give_up_file(num_records, "the disk is too slow or failed")
            return
        self.bytes += len(content)
        self._segment_bytes += len(content)
        self._disk.add(name, content)

    def _give_up_file(self, num_records: int, why: str) -> None:
        """End the current file early: what follows until the next one is missing."""
        self._lost += num_records
        if self._encoder is not None:
            self._encoder = None
            self.gaps += 1
            self._began_s = self._clock()
            log.warning("journal has a gap", reason=why)

    def _begin_file(self, cut: Any, pause: Callable[[float], object]) -> None:
        self._flush()
        header = Header(
            FORMAT,
            VERSION,
            self._mirror.cluster_id,
            self._run,
            self._segment,
            self._wall_clock(),
            self._lost,
        )
        self._disk.has_failed = False
        self._segment, self._segment_bytes, self._lost = self._segment + 1, 0, 0
        self._began_s = self._clock()
        self._encoder = RecordEncoder()
        self._send(header_frame(header), 0, file_name(header))
        for number, entry in enumerate(self._mirror.entries()):
            self._add(entry)
            if number % SLICE == SLICE - 1:
                pause(PAUSE_S)
        self._add(cut)
        self._flush()

    def _look_at_bounds(self) -> None:
        age_s = self._clock() - self._began_s
        if self._encoder is None:
            is_due = self._segment > 0 and age_s > RETRY_S
        else:
            is_due = (
                age_s > self._options.segment_s or self._segment_bytes > self._options.segment_bytes
            )
        if is_due:
            self._journal.wants_cut = True

    def _end(self) -> None:
        if self._encoder is not None:
            self._give_up_file(0, "too many entries waited")
            log.error("journal ended: more entries waited than it may keep")


class _Disk:
    """Frames on their way to the disk.

    Attributes
    ----------
    has_failed
        Whether the current file cannot be written.
    """

    def __init__(self, files: SegmentFiles, clock: Callable[[], float]) -> None:
        self._files = files
        self._clock = clock
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._written = 0
        self._wake = threading.Event()
        self._is_stopping = False
        self._synced_s = 0.0
        self.has_failed = False

    @property
    def waiting_bytes(self) -> int:
        """The bytes that are not written yet."""
        return self._bytes - self._written

    def add(self, name: str, content: bytes) -> None:
        """Append to the file, or to a new one if a name is given."""
        self._bytes += len(content)
        self._waiting.append((name, content))
        self._wake.set()

    def stop(self) -> None:
        """Let :meth:`run` end once everything is written."""
        self._is_stopping = True
        self._wake.set()

    def run(self) -> None:
        """Write until stopped."""
        while not self._is_stopping:
            self._wake.wait(SYNC_S)
            self._wake.clear()
            self._write(lambda: self._clock() - self._synced_s >= SYNC_S)
        self.write_waiting()

    def write_waiting(self) -> None:
        """Write and sync everything that waits."""
        self._write(lambda: True)

    def _write(self, is_sync_due: Callable[[], bool]) -> None:
        try:
            while self._waiting:
                name, content = self._waiting.popleft()
                self._written += len(content)
                if name:
                    self._files.open(name, content)
                elif not self.has_failed:
                    self._files.append(content)
            if is_sync_due():
                self._synced_s = self._clock()
                self._files.sync()
        except OSError as error:
            if not self.has_failed:
                log.error("journal cannot be written", error=str(error))
            self.has_failed = True

"""The file of figures: what was measured under which conditions, written after each round.

A run that was broken off goes on where it stopped, and a later one adds to the same file.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tests.bench.contenders import QPS
from tests.bench.records import (
    CyclesUnderLoad,
    Decisions,
    DeviceDecisions,
    LargeRun,
    LatencyRound,
    Memory,
    Round,
    Start,
    TailPart,
    Variety,
)
from tests.controlplane.binaries import module_version

if TYPE_CHECKING:
    from collections.abc import Iterable


class Session(msgspec.Struct, frozen=True):
    """The conditions of one call of the benchmark.

    Attributes
    ----------
    commit
        Of berth's sources, with ``+`` when they were changed since.
    """

    started: str
    cores: int
    processor: str
    memory_gib: float
    kernel: str
    python: str
    commit: str
    versions: dict[str, str]
    qps: int = QPS
    burst: int = QPS
    events: bool = True

    @property
    def conditions(self) -> dict[str, Any]:
        """All but when it was."""
        fields: dict[str, Any] = msgspec.structs.asdict(self)
        del fields["started"]
        return fields


class Results(msgspec.Struct):
    """Everything in one file."""

    sessions: list[Session] = []
    rounds: list[Round] = []
    latencies: list[LatencyRound] = []
    decisions: list[Decisions] = []
    cycles: list[CyclesUnderLoad] = []
    memory: list[Memory] = []
    device_decisions: list[DeviceDecisions] = []
    starts: list[Start] = []
    large: list[LargeRun] = []
    tails: list[TailPart] = []
    variety: list[Variety] = []

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the file; nothing where there is none.

        Raises
        ------
        msgspec.ValidationError
            It is not a file of figures; names where.
        """
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else cls()

    @classmethod
    def merged(cls, paths: Iterable[Path]) -> Results:
        """Read several files as one: the same round counts as the last file has it."""
        merged = cls()
        for path in paths:
            one = cls.load(path)
            offset = len(merged.sessions)
            merged.sessions += one.sessions
            for name in _SERIES:
                theirs = getattr(one, name)
                for each in theirs:
                    moved = msgspec.structs.replace(each, session=each.session + offset)
                    put(getattr(merged, name), moved)
        return merged

    def save(self, path: Path) -> None:
        """Write the file; a reader sees the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(path.name + ".new")
        # A line for each figure: a change of the file shows what was measured.
        parts = [
            b'"%b": [\n%b\n]' % (name.encode(), b",\n".join(map(msgspec.json.encode, series)))
            for name, series in msgspec.structs.asdict(self).items()
        ]
        scratch.write_bytes(b"{\n%b\n}\n" % b",\n".join(parts))
        scratch.replace(path)

    def begin(self, started: str) -> int:
        """Note the conditions of today; return the number of the session."""
        self.sessions.append(today(started))
        return len(self.sessions) - 1

    def sessions_used(self) -> list[int]:
        """Return the numbers of the sessions that figures are left from."""
        return sorted({each.session for name in _SERIES for each in getattr(self, name)})

    def holds(self, key: tuple[Any, ...]) -> bool:
        """Whether there is a round, or a point, with that key."""
        return any(each.key == key for name in _SERIES for each in getattr(self, name))


_SERIES = (
    "rounds",
    "latencies",
    "decisions",
    "device_decisions",
    "cycles",
    "memory",
    "starts",
    "large",
    "tails",
    "variety",
)


class ResultsFile:
    """A file that one call of a benchmark adds to.

    Parameters
    ----------
    path
        Of the file; None where figures are printed only, and :meth:`save` does nothing.

    Attributes
    ----------
    results
        Its content, and the figures of this call.

    Raises
    ------
    msgspec.ValidationError
        It is not a file of figures; names where.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.results = Results() if path is None else Results.load(path)
        self._session: int | None = None

    @property
    def session(self) -> int:
        """The number of this call's session, whose conditions are noted with the first use."""
        if self._session is None:
            self._session = self.results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
        return self._session

    def save(self) -> None:
        """Write the file."""
        if self._path is not None:
            self.results.save(self._path)


def put(series: list[Any], each: Any) -> None:
    """Add a round or a point; one that is there with the same key makes way."""
    series[:] = [other for other in series if other.key != each.key]
    series.append(each)


def today(started: str) -> Session:
    """Return the conditions of this machine and of these sources."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = {
        "kube-scheduler": module_version("k8s.io/kubernetes"),
        "etcd": module_version("go.etcd.io/etcd/server/v3"),
    }
    for name in ("berth", "numpy", "msgspec", "uvloop"):
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return Session(
        started=started,
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_gib=round(pages / 2**30, 1),
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        commit=_commit(),
        versions=versions,
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    folder = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short", "HEAD")
        sources = ("berth", "cache", "plugins", "scheduler")
        changed = git("status", "--porcelain", "--", *(f":/{each}" for each in sources))
    except OSError:  # no git here
        return ""
    return head + ("+" if changed else "")

"""What a process has used so far, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """CPU seconds (user and system), the resident memory and its peak in bytes."""

    cpu_s: float
    peak_rss_bytes: int
    rss_bytes: int = 0

    @classmethod
    def of(cls, pid: int) -> ProcessUsage:
        """Read it; children are not counted."""
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks = int(fields[11]) + int(fields[12])
        memory = {"VmHWM": 0, "VmRSS": 0}
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in memory:
                memory[name] = int(value.split()[0]) * 1024
        return cls(ticks / os.sysconf("SC_CLK_TCK"), memory["VmHWM"], memory["VmRSS"])

"""The messages between a trial's process and its parent, each one line of JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec

from scheduler.user_plugins.plugin_source import PluginSource

Suite: TypeAlias = Literal["use", "all", "bench"]


_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """What a plugin on trial may take.

    Parameters
    ----------
    memory_bytes
        By how much the child may grow beyond what it is without the plugin.
    cpu_s
        Time on a processor, of the whole trial.
    wall_s
        Time by the clock, of the whole trial.
    """

    memory_bytes: int = 512 * _MIB
    cpu_s: int = 10
    wall_s: float = 15.0


@dataclass(frozen=True, slots=True)
class ClusterCopy:
    """Nodes and pods as JSON, as many as a trial needs."""

    nodes: tuple[msgspec.Raw, ...] = ()
    pods: tuple[msgspec.Raw, ...] = ()


class Job(msgspec.Struct):
    """What to try, and how.

    Parameters
    ----------
    suite
        ``use``: what is asked before code is used; ``all``: what its author should ask; ``bench``:
        how long it takes.
    args
        Arguments by the plugin's name; by the empty one those of all others.
    sizes
        The numbers of nodes of made-up clusters.
    cluster
        A copy of a real cluster, without nodes for no copy.
    """

    source: PluginSource
    limits: TrialLimits
    suite: Suite
    args: dict[str, dict[str, object]]
    sizes: tuple[int, ...]
    cluster: ClusterCopy


class Verdict(msgspec.Struct):
    """What came of one check of one plugin."""

    plugin: str
    promise: str
    """What was checked, in a sentence."""
    world: str
    """What it was asked about."""
    broken: str = ""
    """What is wrong; empty if the promise was kept."""

    def __str__(self) -> str:
        return f"{self.plugin}: {self.broken}; with {self.world}"


class Cost(msgspec.Struct):
    """What one method of one plugin costs, in seconds."""

    plugin: str
    point: str
    num_nodes: int
    first_s: float
    """The first call, which makes the columns."""
    median_s: float
    p99_s: float


class Line(msgspec.Struct):
    """One line of what the process tells."""

    doing: str = ""
    """What it does from now on."""
    plugins: list[str] = []
    """What the source brings."""
    refused: str = ""
    """Why the code cannot even be loaded."""
    verdict: Verdict | None = None
    cost: Cost | None = None
    ended: bool = False
    """Whether that was all."""

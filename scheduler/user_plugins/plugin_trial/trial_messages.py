"""The messages between a trial's process and its parent, each one line of JSON."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from cache.value import Value
from scheduler.user_plugins.plugin_source import PluginSource

Suite: TypeAlias = Literal["use", "all", "bench"]


_MIB: Final = 1 << 20


class TrialLimits(Value, frozen=True):
    """The limits of a trial.

    Parameters
    ----------
    memory_bytes
        The memory that the child may allocate beyond its size without the plugin.
    cpu_s
        The CPU time of the whole trial.
    wall_s
        The elapsed time of the whole trial.
    """

    memory_bytes: int = 512 * _MIB
    cpu_s: int = 10
    wall_s: float = 15.0


class ClusterCopy(Value, frozen=True):
    """Nodes and pods of a cluster as JSON, as many as a trial needs."""

    nodes: tuple[msgspec.Raw, ...] = ()
    pods: tuple[msgspec.Raw, ...] = ()


class Job(msgspec.Struct):
    """The job of a child process.

    Parameters
    ----------
    suite
        ``use``: the checks before code is used; ``all``: all checks, for the author; ``bench``:
        measurements.
    args
        Arguments by the plugin's name; the empty name has those of all other plugins.
    sizes
        The numbers of nodes of generated clusters.
    cluster
        A copy of a real cluster; without nodes if there is no copy.
    """

    source: PluginSource
    limits: TrialLimits
    suite: Suite
    args: dict[str, dict[str, object]]
    sizes: tuple[int, ...]
    cluster: ClusterCopy


class Verdict(msgspec.Struct):
    """The result of one check of one plugin."""

    plugin: str
    promise: str
    """The rule that was checked, as a sentence."""
    world: str
    """The name of the world in which it was checked."""
    broken: str = ""
    """The violation; empty if the plugin passed the check."""

    def __str__(self) -> str:
        return f"{self.plugin}: {self.broken}; with {self.world}"


class Cost(msgspec.Struct):
    """The duration of one method of one plugin in seconds."""

    plugin: str
    point: str
    num_nodes: int
    first_s: float
    """The duration of the first call, which computes the columns."""
    median_s: float
    p99_s: float


class Line(msgspec.Struct):
    """One line of the child's output."""

    doing: str = ""
    """The next action of the child."""
    plugins: list[str] = []
    """The plugins of the source."""
    refused: str = ""
    """The reason why the code cannot be loaded."""
    verdict: Verdict | None = None
    cost: Cost | None = None
    ended: bool = False
    """Whether this is the last line."""

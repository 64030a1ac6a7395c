"""What a trial's process is told, and what it tells: a line of JSON each."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Suite: TypeAlias = Literal["use", "all", "bench"]


class Job(msgspec.Struct):
    """What to try, and how.

    Parameters
    ----------
    kind, name, digest, text
        Of the :class:`~scheduler.user_plugins.PluginSource`.
    suite
        ``use``: what is asked before code is used; ``all``: what its author should ask; ``bench``:
        how long it takes.
    args
        Arguments by the plugin's name; by the empty one those of all others.
    sizes
        The numbers of nodes of made-up clusters.
    nodes, pods
        A copy of a real cluster, none for no copy.
    memory_bytes, cpu_s
        Limits.
    """

    kind: str
    name: str
    digest: str
    text: str | None
    suite: Suite = "use"
    args: dict[str, dict[str, object]] = {}
    sizes: tuple[int, ...] = ()
    nodes: list[msgspec.Raw] = []
    pods: list[msgspec.Raw] = []
    memory_bytes: int = 512 << 20
    cpu_s: int = 10


class Verdict(msgspec.Struct):
    """What came of one check of one plugin."""

    plugin: str
    promise: str
    """What was checked, in a sentence."""
    world: str
    """What it was asked about."""
    broken: str = ""
    """What is wrong; empty if the promise was kept."""


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

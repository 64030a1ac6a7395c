"""New plugin code is first run where it can do no harm: in a child process with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.user_plugins import PluginSource

    Objects = tuple[bytes, ...]


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

    memory_bytes: int = 512 << 20
    cpu_s: int = 10
    wall_s: float = 15.0


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What a trial came to.

    Parameters
    ----------
    plugins
        The names of the plugins that the source brings.
    problems
        Why the code is not to be used, for people; empty if it may.
    """

    plugins: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the code may be used."""
        return not self.problems


def try_source(
    source: PluginSource,
    limits: TrialLimits,
    *,
    args: Mapping[str, object] | None = None,
    cluster: Objects = (),
) -> TrialReport:
    """Run the plugins of a source in a child process: on made-up clusters, then on a copy of yours.

    Parameters
    ----------
    args
        By the plugin's name, its arguments as a profile has them; the defaults where there are
        none.
    cluster
        Nodes and pods as JSON.

    Notes
    -----
    *Concurrency*: from any thread but the scheduling thread and the I/O thread: it waits.

    *Cost*: about a second, most of it for the child to start.
    """
    raise NotImplementedError

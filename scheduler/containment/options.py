"""How much users' plugins may take, and where it is noted what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.containment.breaker import BreakerRules
from scheduler.containment.guard import DEFAULT_BUDGET_S
from scheduler.containment.memory_room import DEFAULT_ALLOWANCE_BYTES
from scheduler.containment.watchdog import DEFAULT_TIMEOUT_S
from scheduler.plugin_trial import TrialLimits

if TYPE_CHECKING:
    import argparse

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ContainmentOptions:
    """What the command line says of users' plugins.

    Parameters
    ----------
    timeout_s
        A call that takes longer ends the process; 0 for never.
    budget_s
        What a call may take on average.
    memory_bytes
        By how much a call may let the process grow before it is interrupted; 0 for any.
    state_dir
        Where it is noted which plugin is at work, for the next process. None for nowhere: then a
        plugin that ends the process will end the next one as well.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S
    budget_s: float = DEFAULT_BUDGET_S
    memory_bytes: int = DEFAULT_ALLOWANCE_BYTES
    state_dir: Path | None = None
    breaker: BreakerRules = field(default_factory=BreakerRules)
    trial: TrialLimits = field(default_factory=TrialLimits)


def add_containment_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that :func:`containment_options` reads."""
    defaults = ContainmentOptions()
    parser.add_argument(
        "--plugin-timeout",
        metavar="SECONDS",
        type=float,
        default=defaults.timeout_s,
        help="a call into a user's plugin that takes longer ends the process; the next one leaves "
        "the plugin out (%(default)s; 0: never)",
    )
    parser.add_argument(
        "--plugin-budget",
        metavar="SECONDS",
        type=float,
        default=defaults.budget_s,
        help="what a call into a user's plugin may take on average, before the plugin is passed "
        "over for a while (%(default)s)",
    )
    parser.add_argument(
        "--plugin-memory",
        metavar="MIB",
        type=int,
        default=defaults.memory_bytes // _MIB,
        help="a call into a user's plugin that lets the process grow by more is interrupted, and "
        "one that grows by as much again ends the process (%(default)s; 0: never)",
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=Path,
        help="a folder of this process's own, where it notes which user's plugin is at work: so "
        "that the next process knows which one ended this",
    )


def containment_options(options: argparse.Namespace) -> ContainmentOptions:
    """Return what the flags say."""
    return ContainmentOptions(
        timeout_s=options.plugin_timeout,
        budget_s=options.plugin_budget,
        memory_bytes=options.plugin_memory * _MIB,
        state_dir=options.state_dir,
    )

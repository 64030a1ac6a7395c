"""Options of containment: the limits of users' plugins, and the state directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from cache.value import Value
from scheduler.user_plugins.containment.circuit_breaker import BreakerRules
from scheduler.user_plugins.containment.watchdog import DEFAULT_TIMEOUT_S
from scheduler.user_plugins.plugin_trial import TrialLimits

if TYPE_CHECKING:
    import argparse

log = structlog.get_logger(__name__)

DEFAULT_BUDGET_S: Final = 0.01
"""The average duration that a call may have. A cycle of Berth's own plugins takes a tenth of it."""


class ContainmentOptions(Value, frozen=True):
    """The options for users' plugins from the command line.

    Parameters
    ----------
    timeout_s
        A call that takes longer ends the process; 0 for no timeout.
    budget_s
        The average duration that a call may have.
    state_dir
        The directory of the crash note and the quarantine, which the next process reads. Without
        it (None), a plugin that ends the process will end the next one as well.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S
    budget_s: float = DEFAULT_BUDGET_S
    state_dir: Path | None = None
    breaker: BreakerRules = msgspec.field(default_factory=BreakerRules)
    trial: TrialLimits = msgspec.field(default_factory=TrialLimits)


def add_containment_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that :func:`containment_options` reads."""
    defaults = ContainmentOptions()
    parser.add_argument(
        "--plugin-timeout",
        metavar="SECONDS",
        type=float,
        default=defaults.timeout_s,
        help="a call into a user's plugin that takes longer ends the process; the next process "
        "does not call the plugin (%(default)s; 0: no timeout)",
    )
    parser.add_argument(
        "--plugin-budget",
        metavar="SECONDS",
        type=float,
        default=defaults.budget_s,
        help="average duration of calls into a user's plugin, above which the plugin is switched "
        "off for a while (%(default)s)",
    )
    parser.add_argument(
        "--plugin-memory",
        metavar="MIB",
        type=int,
        help="has no effect any more, and will be refused by the next version: the memory limit "
        "of the container is the bound",
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        type=Path,
        help="a directory for this process only, in which Berth records the running plugin, so "
        "that the next process knows which plugin ended this process",
    )


def containment_options(options: argparse.Namespace) -> ContainmentOptions:
    """Return the options from the flags; warn about a flag that has no effect any more."""
    if options.plugin_memory is not None:
        log.warning("flag has no effect and will be removed", flag="--plugin-memory")
    return ContainmentOptions(
        timeout_s=options.plugin_timeout,
        budget_s=options.plugin_budget,
        state_dir=options.state_dir,
    )

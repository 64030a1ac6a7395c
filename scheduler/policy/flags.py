"""The flags of ``berth run`` about where policies come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.containment import add_containment_flags, containment_options
from scheduler.crd_operator import OperatorOptions, add_operator_flags, operator_options
from scheduler.policy.plugin_supply import PluginSupply, SupplyOptions

if TYPE_CHECKING:
    import argparse


def add_policy_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    plugins = parser.add_argument_group("plugins of your own")
    plugins.add_argument(
        "--plugin-dir",
        metavar="DIR",
        type=Path,
        help="a folder of Python files with plugins, read again when they change; without --config "
        "all of them are enabled",
    )
    add_containment_flags(parser)
    add_operator_flags(parser)


def plugin_supply(options: argparse.Namespace) -> tuple[PluginSupply | None, OperatorOptions]:
    """Return the plugins of users, None where there can be none, and what of the operator is said.

    Raises
    ------
    ConfigError
        When a folder cannot be used.
    """
    operator = operator_options(options)
    installed = operator.enabled or options.config is not None
    if options.plugin_dir is None and not installed:
        return None, operator
    supply = PluginSupply(
        SupplyOptions(
            directory=options.plugin_dir,
            installed=installed,
            allow_python=operator.allow_python,
            namespace=operator.namespace,
            containment=containment_options(options),
        )
    )
    return supply, operator

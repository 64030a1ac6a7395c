"""Define all commands of ``berth`` but ``run``, with what they import.

Pods do not wait for them: :mod:`scheduler.cli` imports this module for no ``berth run``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cache.kept_annotations import keep_annotations
from scheduler.config import load_config, render_effective
from scheduler.explain import (
    Batch,
    ExplainError,
    ExplainOptions,
    add_dump_flag,
    run_explain,
)
from scheduler.insight.command import add_why_command
from scheduler.insight.what_if_command import add_what_if_command
from scheduler.journal.command import add_journal_commands
from scheduler.policy_replay import add_policy_flags
from scheduler.pools import add_node_selector, node_selector_of
from scheduler.process.version import VERSION
from scheduler.profiles.operator.commands import add_profile_commands
from scheduler.shadow.command import add_shadow_command
from scheduler.ui import add_ui_command
from scheduler.user_plugins.for_commands import (
    add_kept_annotations,
    add_plugin_dir,
    enabled_names,
    known_plugins,
)
from scheduler.user_plugins.new_plugin import add_new_command
from scheduler.user_plugins.plugin_trial.command import add_trial_commands

if TYPE_CHECKING:
    import argparse
    from typing import TypeAlias

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def add_other_commands(commands: Commands) -> None:
    """Add the commands."""
    _add_check_config(commands)
    _add_explain(commands)
    add_why_command(commands)
    add_profile_commands(commands)
    add_shadow_command(commands)
    add_ui_command(commands)
    add_what_if_command(commands)
    add_policy_flags(add_journal_commands(commands))

    plugin = commands.add_parser("plugin", help="begin, check and measure plugins of your own")
    verbs = plugin.add_subparsers(metavar="COMMAND", required=True)
    add_new_command(verbs)
    add_trial_commands(verbs)

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_version)


def _add_check_config(commands: Commands) -> None:
    check = commands.add_parser(
        "check-config", help="check a file and print the effective configuration"
    )
    check.set_defaults(command=_check_config)
    check.add_argument("file", metavar="F")
    add_plugin_dir(check)


def _add_explain(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain", help="show every plugin's verdict on a pod, or why a group of pods waits"
    )
    explain.set_defaults(command=_explain)
    explain.add_argument("--pod", metavar="NS/NAME", help="the pod to ask about")
    explain.add_argument("--podgroup", metavar="NS/NAME", help="the group of pods to ask about")
    add_dump_flag(explain)
    explain.add_argument("--kubeconfig", metavar="F", help="how to reach the API server")
    explain.add_argument("--config", metavar="F", help="a KubeSchedulerConfiguration")
    add_plugin_dir(explain)
    add_kept_annotations(explain)
    add_node_selector(explain)
    explain.add_argument("-o", "--output", choices=("text", "json"), default="text")
    explain.add_argument(
        "--batch",
        action="store_true",
        help='answer JSON lines {"objects": [...], "pod": {...}, "config": {...}} from stdin',
    )


def _check_config(options: argparse.Namespace) -> int:
    plugins = known_plugins(options.plugin_dir)
    sys.stdout.write(render_effective(load_config(Path(options.file), plugins), plugins))
    return 0


def _explain(options: argparse.Namespace) -> int:
    try:
        _explain_to_stdout(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough, as ``head`` has; Python shall not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _explain_to_stdout(options: argparse.Namespace) -> None:
    others = {
        "--pod": options.pod,
        "--podgroup": options.podgroup,
        "--from": options.dumps,
        "--kubeconfig": options.kubeconfig,
        "--config": options.config,
    }
    if options.batch:
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise ExplainError(f"--batch reads all from its lines, it does not go with {given[0]}")
        Batch().serve(sys.stdin.buffer, sys.stdout.buffer)
        return
    if options.pod is None and options.podgroup is None:
        raise ExplainError("which pod? --pod NS/NAME is missing")
    if options.pod is not None and options.podgroup is not None:
        raise ExplainError("--pod and --podgroup contradict each other")
    if options.dumps and options.kubeconfig is not None:
        raise ExplainError("--from and --kubeconfig contradict each other")
    keep_annotations(options.keep_annotations)
    plugins = known_plugins(options.plugin_dir)
    sys.stdout.write(
        run_explain(
            ExplainOptions(
                pod=options.pod or "",
                pod_group=options.podgroup or "",
                dumps=tuple(options.dumps or ()),
                kubeconfig=options.kubeconfig,
                config=options.config,
                as_json=options.output == "json",
                plugins=plugins,
                node_selector=node_selector_of(options),
                enabled=enabled_names(options.plugin_dir, plugins),
            )
        )
    )


def _version(_: argparse.Namespace) -> int:
    sys.stdout.write(f"berth {VERSION}\n")
    return 0

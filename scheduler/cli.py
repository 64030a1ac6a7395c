"""Parse the command line: ``berth run``, ``explain``, ``ui``, ``check-config``, ``version``."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cache.kept_annotations import MIRROR_ANNOTATION, keep_annotations
from scheduler.app import App, StartError
from scheduler.client.errors import ClientConfigError
from scheduler.config import ConfigError, load_config, render_effective
from scheduler.explain import (
    Batch,
    ExplainError,
    ExplainOptions,
    add_dump_flag,
    run_explain,
)
from scheduler.journal.frames import JournalError
from scheduler.pools import add_node_selector, node_selector_of
from scheduler.process.log_setup import configure_logging, errors_to_stderr
from scheduler.process.process_memory import calm_collector
from scheduler.process.version import VERSION
from scheduler.profiles.config_reload import ConfigSource
from scheduler.profiles.operator.commands import ProfileError, add_profile_commands
from scheduler.run_flags import add_run_flags, plugin_supply, run_config, run_options
from scheduler.shadow.command import add_shadow_command
from scheduler.user_plugins.for_commands import (
    add_kept_annotations,
    add_plugin_dir,
    enabled_names,
    known_plugins,
)
from scheduler.user_plugins.new_plugin import add_new_command
from scheduler.user_plugins.plugin_trial.command import add_trial_commands

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

_VITAL_THREADS = frozenset({"containment", "plugin-dir", "policies"})
"""Those of ours that do not report their death themselves."""


_EXPECTED = (
    ConfigError,
    ClientConfigError,
    StartError,
    ExplainError,
    ProfileError,
    JournalError,
)
"""What a person can mend: told in one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 when it failed, 2 for wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser(only_run=words[:1] == ["run"]).parse_args(words)
    try:
        with nullcontext() if options.command is _run else errors_to_stderr():
            status: int = options.command(options)
    except _EXPECTED as error:
        sys.stderr.write(f"berth: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _parser(*, only_run: bool = False) -> argparse.ArgumentParser:
    """Return the parser; with ``only_run`` of that command alone, which pods wait for."""
    parser = argparse.ArgumentParser(
        prog="berth", description="A Kubernetes scheduler that scores every node and says why."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    _add_run(commands)
    if not only_run:
        _add_others(commands)
    return parser


def _add_others(commands: Commands) -> None:
    # What these import takes a twentieth of the time to the first binding.
    from scheduler.insight.command import add_why_command  # noqa: PLC0415
    from scheduler.insight.what_if_command import add_what_if_command  # noqa: PLC0415
    from scheduler.journal.command import add_journal_commands  # noqa: PLC0415
    from scheduler.policy_replay import add_policy_flags  # noqa: PLC0415
    from scheduler.ui import add_ui_command  # noqa: PLC0415

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


def _add_run(commands: Commands) -> None:
    run = commands.add_parser("run", help="schedule pods until stopped")
    run.set_defaults(command=_run)
    add_run_flags(run)
    run.add_argument("--log-format", choices=("json", "console"), default="json")
    run.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


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


def _run(options: argparse.Namespace) -> int:
    calm_collector()
    configure_logging(options.log_format, options.log_level)
    # Forecasts of drains have to know the pods that only their node's files can delete.
    keep_annotations([*options.keep_annotations, MIRROR_ANNOTATION])
    supply, operator = plugin_supply(options)
    path = None if options.config is None else Path(options.config)
    # Nothing changes under a configuration without a file and without plugins.
    source = ConfigSource(partial(run_config, options, supply), path)
    config = source.read()
    app = App(config, run_options(options, supply, operator, None if supply is None else source))
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_until_signalled(app))


async def _until_signalled(app: App) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGUSR2, app.tell_state)
    # Not through the loop: that would come after whatever the process was about to do.
    signal.signal(signal.SIGCONT, lambda *_: _end_if_deposed(app))
    threading.excepthook = lambda args: _thread_died(app, args)
    return await app.run(stop)


def _thread_died(app: App, args: threading.ExceptHookArgs) -> None:
    """End the process with a thread of its own; one that a plugin has started may die."""
    if args.thread is None or args.thread.name not in _VITAL_THREADS:
        threading.__excepthook__(args)
        return
    app.died(args.thread.name, args.exc_value or args.exc_type())


def _end_if_deposed(app: App) -> None:
    """End the process at once if it was stopped for longer than its leadership lasted.

    Runs before anything else does once the process goes on, in the middle of whatever the I/O
    thread was doing: so it takes no lock, and what has been handed to the loop for sending is
    never sent.
    """
    if app.lost_while_stopped():
        os.write(2, b'{"level":"error","event":"leadership lost while the process was stopped"}\n')
        os._exit(1)


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed, else the standard one."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    loop: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return loop


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

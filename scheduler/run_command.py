"""The command ``berth run``: schedule pods until the process is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from cache.kept_annotations import MIRROR_ANNOTATION, keep_annotations
from scheduler.app import App
from scheduler.process.log_setup import configure_logging
from scheduler.process.process_memory import calm_collector
from scheduler.process.version import VERSION
from scheduler.profiles.config_reload import ConfigSource
from scheduler.run_flags import add_run_flags, plugin_supply, run_config, run_options

if TYPE_CHECKING:
    import argparse
    from typing import TypeAlias

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

log = structlog.get_logger(__name__)

_SWITCH_INTERVAL_S: Final = 0.002
"""After this time a thread that wants the interpreter gets it from one that computes. With Python's
5 ms, the event loop waited 5 ms for each of its turns while the scheduling thread was busy. With
0.5 ms it waits 0.2 ms, but a pod takes 0.07 ms more CPU in a burst of thousands; with 2 ms 0.03."""

_VITAL_THREADS = frozenset({"containment", "plugin-dir", "policies"})
"""Those of ours that do not report their death themselves."""


def add_run_command(commands: Commands) -> None:
    """Add the command."""
    run = commands.add_parser("run", help="schedule pods until stopped")
    run.set_defaults(command=_run)
    add_run_flags(run)
    run.add_argument("--log-format", choices=("json", "console"), default="json")
    run.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def _run(options: argparse.Namespace) -> int:
    calm_collector()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    configure_logging(options.log_format, options.log_level)
    log.info("starting", version=VERSION)
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

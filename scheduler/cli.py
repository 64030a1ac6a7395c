"""Parse the command line: ``berth run``, ``explain``, ``ui``, ``check-config``, ``version``."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from scheduler.process.expected_error import ExpectedError
from scheduler.process.log_setup import errors_to_stderr
from scheduler.process.numeric_threads import start_no_numeric_threads
from scheduler.process.process_memory import calm_collector

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 1 when it failed, 2 for wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    is_run = words[:1] == ["run"]
    start_no_numeric_threads()
    if is_run:
        # Before the imports: nothing of what they bring is garbage.
        calm_collector()
    options = parser(only_run=is_run).parse_args(words)
    try:
        with nullcontext() if is_run else errors_to_stderr():
            status: int = options.command(options)
    except ExpectedError as error:
        sys.stderr.write(f"berth: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def parser(*, only_run: bool = False) -> argparse.ArgumentParser:
    """Return the parser; with ``only_run`` of that command alone, which pods wait for.

    Commands are imported here, and no earlier.
    """
    from scheduler.run_command import add_run_command  # noqa: PLC0415 - see above

    made = argparse.ArgumentParser(
        prog="berth", description="A Kubernetes scheduler that scores every node and says why."
    )
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    add_run_command(commands)
    if not only_run:
        from scheduler.other_commands import add_other_commands  # noqa: PLC0415 - see above

        add_other_commands(commands)
    return made

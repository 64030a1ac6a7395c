"""The commands ``berth plugin check`` and ``berth plugin bench``, for authors of plugins."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from scheduler.config import ConfigError
from scheduler.user_plugins.finding import Found, entry_points, files_of
from scheduler.user_plugins.plugin_trial import TrialLimits, TrialReport, try_source

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from scheduler.user_plugins.plugin_source import PluginSource

CHECK_SIZES: Final = (0, 1, 40, 300)
"""The numbers of nodes: none, because a pod's node may be deleted, and some larger numbers."""

_AUTHORS_LIMITS: Final = TrialLimits(memory_bytes=2 << 30, cpu_s=120, wall_s=180.0)
"""Limits of the commands: all checks take longer than a trial, and the user can stop them."""


def add_trial_commands(verbs: Any) -> None:
    """Add ``check`` and ``bench`` to the verbs of ``berth plugin``."""
    check = verbs.add_parser(
        "check",
        help="check plugins against the rules for all plugins",
        description="Calls the plugins of a file, a directory or an installed entry point for "
        "generated clusters, in a process with its own limits. Exit status 1 if a check fails.",
    )
    check.set_defaults(command=_try, suite="all", text=check_text)
    bench = verbs.add_parser(
        "bench",
        help="measure plugins in a large cluster",
        description="Measures each method for all nodes; a pod leaves a node between two calls.",
    )
    bench.set_defaults(command=_try, suite="bench", text=bench_text)
    bench.add_argument("--nodes", metavar="N", type=int, default=5000, help="(%(default)s)")
    for verb in (check, bench):
        verb.add_argument("path", metavar="PATH", help="a file, a directory, or an entry point")
        verb.add_argument(
            "--args",
            metavar="JSON",
            help="the plugin's arguments, as in its pluginConfig; with several plugins, NAME:JSON "
            "for the plugin NAME",
            action="append",
            default=[],
        )


def _try(options: argparse.Namespace) -> int:
    sizes = CHECK_SIZES if options.suite == "all" else (options.nodes,)
    args = _args(options.args)
    failed = False
    for source in _sources(options.path):
        report = try_source(source, _AUTHORS_LIMITS, suite=options.suite, sizes=sizes, args=args)
        sys.stdout.write(options.text(source, report))
        failed = failed or not report.accepted
    return int(failed)


def check_text(source: PluginSource, report: TrialReport) -> str:
    """Return the results of the checks as text."""
    lines = [source.name]
    for plugin in report.plugins:
        lines.append(f"  {plugin}")
        promises: dict[str, str] = {}
        for verdict in report.verdicts:
            if verdict.plugin == plugin:
                why = f"{verdict.broken}; with {verdict.world}" if verdict.broken else ""
                promises[verdict.promise] = promises.get(verdict.promise) or why
        for promise, why in promises.items():
            lines.append(f"    {'FAILED' if why else 'ok    '}  {promise}")
            if why:
                lines.append(f"            {why}")
        if not promises:
            lines.append("    not checked: it has arguments without defaults (--args)")
    lines += _rest(report)
    return "\n".join(lines) + "\n"


def bench_text(source: PluginSource, report: TrialReport) -> str:
    """Return the measurements as text."""
    lines = [source.name]
    if report.costs:
        lines.append(
            f"  {'':<40}{'nodes':>8}{'first':>12}{'median':>12}{'p99':>12}  (milliseconds)"
        )
    for cost in report.costs:
        times = "".join(
            f"{seconds * 1e3:12.3f}" for seconds in (cost.first_s, cost.median_s, cost.p99_s)
        )
        lines.append(f"  {f'{cost.plugin} {cost.point}':<40}{cost.num_nodes:>8}{times}")
    lines += _rest(report)
    return "\n".join(lines) + "\n"


def _rest(report: TrialReport) -> list[str]:
    told = set(map(str, report.verdicts))
    lines = [f"  FAILED  {problem}" for problem in report.problems if problem not in told]
    if report.printed.strip():
        lines.append("  it printed:")
        lines += [f"    {line}" for line in report.printed.strip().splitlines()]
    return lines


def _args(given: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return arguments by plugin; arguments without a name are for every other plugin."""
    found: dict[str, dict[str, object]] = {}
    for text in given:
        name, _, raw = ("", "", text) if text.lstrip().startswith("{") else text.partition(":")
        try:
            value = msgspec.json.decode(raw.encode())
        except msgspec.DecodeError as error:
            raise ConfigError("--args", f"is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ConfigError("--args", "must be a JSON object")
        found[name] = cast("dict[str, object]", value)
    return found


def _sources(path: str) -> tuple[PluginSource, ...]:
    """Return the sources of a path or of the name of an entry point.

    Raises
    ------
    ConfigError
        When there is no such file, directory or entry point, or it cannot be read.
    """
    given = Path(path)
    if given.is_dir():
        found = files_of(given)
    elif given.exists():
        listed = files_of(given.parent)
        found = Found(tuple(each for each in listed.sources if Path(each.name) == given))
        if not found.sources:
            raise ConfigError(path, listed.problems.get(str(given), "is no Python file"))
    else:
        found = Found(tuple(each for each in entry_points() if each.name == path))
        if not found.sources:
            raise ConfigError(path, "there is no such file, folder or entry point")
    for name, why in found.problems.items():
        raise ConfigError(name, why)
    if not found.sources:
        raise ConfigError(path, "holds no plugin: a *.py file that does not begin with . or _")
    return found.sources

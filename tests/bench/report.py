"""``python -m tests.bench report``: tables and plots from the files of figures.

Beside the first file are written: its name with ``.md``, and one SVG for each plot.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import berth_tables, start_tables, tables
from tests.bench.plots import plots
from tests.bench.results import Results
from tests.bench.runs import DEFAULT_FILE
from tests.bench.targets import targets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench report", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, default=[DEFAULT_FILE], help="later ones win"
    )
    parser.add_argument("--ours", default="berth", help="the contender that is compared")
    options = parser.parse_args(arguments)
    for path in options.files:
        if not path.exists():
            parser.error(f"there is no {path}")
    results = Results.merged(options.files)
    text = write(results, options.files[0].with_suffix(".md"), ours=options.ours)
    print(text)
    return 0


def sections(results: Results, *, ours: str) -> Iterator[str]:
    """Yield the parts of the page that have figures."""
    yield tables.conditions(results)
    if text := targets(results, ours=ours):
        yield text
    if results.rounds:
        yield tables.throughput(results, ours=ours)
        if any(each.group_attempts for each in results.rounds):
            yield tables.group_attempts(results)
        yield tables.costs(results)
    if results.starts:
        yield start_tables.starts(results, ours=ours)
    if results.latencies:
        yield tables.latency(results, ours=ours)
    if results.tails:
        yield berth_tables.tail(results)
    if results.decisions:
        yield tables.decisions(results)
    if results.variety:
        yield berth_tables.variety(results)
    if results.device_decisions:
        yield tables.device_decisions(results)
    if results.cycles:
        yield tables.cycles(results)
    if results.memory:
        yield tables.memory(results)
    if results.large:
        yield berth_tables.large(results)


def write(results: Results, page: Path, *, ours: str) -> str:
    """Write the page and its plots; return the page's text."""
    drawn = plots(results, ours=ours)
    for name, svg in drawn.items():
        page.with_name(f"{page.stem}-{name}.svg").write_text(svg, encoding="utf-8")
    parts = [f"# {page.stem.replace('-', ' ').capitalize()}", *sections(results, ours=ours)]
    parts += [f"![{name}]({page.stem}-{name}.svg)" for name in drawn]
    text = "\n\n".join(parts) + "\n"
    page.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    sys.exit(main())

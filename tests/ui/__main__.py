"""``make ui-test``: every view of the page in Chromium, with a cluster of the largest usual size.

Each view is opened in light and dark: no message on the console, no violation of axe-core's rules,
the keyboard leads everywhere, and scripts are not needed. The times to the first paint and to a
pod's explanation are printed. Screenshots go to ``docs/images``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from tests.e2e.packages import install_packages
from tests.ui import dump
from tests.ui.views import VIEWS, Pods
from tests.ui.visits import Problems, Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = Path(__file__).parent
IMAGES: Final = ROOT / "docs" / "images"

PACKAGES: Final = {
    "chromium": "chromium",
    "fonts-liberation": "/usr/share/fonts/truetype/liberation",
}


def main(arguments: list[str]) -> int:
    """Return 0 if no view has a problem."""
    options = _options(arguments)
    install_packages(PACKAGES)
    axe = _axe()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        dump.write(Path(folder) / "dump.json", options.nodes, options.pending)
        _say(f"dump with {options.nodes} nodes and {options.pending} pending pods", began)
        began = time.monotonic()
        with _page(Path(folder)) as address:
            _say("read by berth ui until it answers", began)
            problems = _visit(address, axe, options, Pods.of(Path(folder) / "dump.json"))
    for problem in problems:
        print(f"PROBLEM {problem}")
    print("no problem" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make ui-test")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=20000)
    parser.add_argument("--images", type=Path, default=IMAGES)
    parser.add_argument("--only", action="append", help="the name of a view; may be repeated")
    return parser.parse_args(arguments)


def _say(what: str, began: float) -> None:
    print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)


def _axe() -> str:
    """Return the text of axe-core, after npm has put there what the lock file says."""
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(command, cwd=HERE, check=True)
    return (HERE / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def _page(folder: Path) -> Iterator[str]:
    """Run ``berth ui`` over the dump of a folder; give its address."""
    command = [sys.executable, "-m", "scheduler", "ui", "--from", "dump.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                sys.exit("berth ui has ended without an address")
            yield address
        finally:
            process.terminate()


def _visit(address: str, axe: str, options: argparse.Namespace, pods: Pods) -> Problems:
    problems: Problems = []
    wanted = [view for view in VIEWS if not options.only or view.name in options.only]
    with sync_playwright() as playwright:
        # Chromium's own sandbox refuses to run as root.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        visitor = Visitor(browser, address, axe, options.images, problems)
        print(
            f"\n{'view':14}{'scheme':>8}{'first paint':>14}{'loaded':>10}{'explained':>12}{'kB':>8}"
        )
        for scheme in ("light", "dark"):
            for view in wanted:
                print(visitor.visit(view, view.path(pods), scheme), flush=True)
        visitor.use_the_keyboard()
        visitor.visit_without_scripts(pods)
        browser.close()
    return problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``make ui-test``: every view of the page in Chromium.

From a dump of the largest usual size, and of a small cluster whose leader the page asks.

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
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from scheduler.process.log_setup import configure_logging
from tests.controlplane.server_process import ServerProcess
from tests.e2e.packages import install_packages
from tests.ui import dump
from tests.ui.live import live_cluster
from tests.ui.views import LIVE_VIEWS, NO_LEADER, VIEWS, Pods
from tests.ui.visits import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playwright.sync_api import Browser

    from tests.ui.views import View
    from tests.ui.visits import Problems

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
    configure_logging("console", "error")
    install_packages(PACKAGES)
    os.environ["PYTHONPATH"] = str(ROOT)  # berth ui runs in the folder of its dump
    axe = _axe()
    problems: Problems = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        began = time.monotonic()
        live = stack.enter_context(live_cluster(options.live_nodes, options.live_pending))
        _say(f"a leader on {options.live_nodes} nodes, {options.live_pending} pods wait", began)
        flags = ["--kubeconfig", str(live.kubeconfig)]
        live_address = stack.enter_context(_page(Path(folder) / "live", flags))
        began = time.monotonic()
        objects = dump.write(Path(folder) / "dump.json", options.nodes, options.pending)
        _say(f"dump with {options.nodes} nodes and {options.pending} pending pods", began)
        with _browser() as browser:
            began = time.monotonic()
            with chdir(folder), _page(Path(folder) / "dump", ["--from", "dump.json"]) as address:
                _say("read by berth ui until it answers", began)
                visitor = Visitor(browser, address, axe, options.images, problems)
                _visit(visitor, _wanted(VIEWS, options), Pods.of(objects))
                visitor.use_the_keyboard()
            visitor = Visitor(browser, live_address, axe, options.images, problems)
            _visit(visitor, _wanted(LIVE_VIEWS, options), live.pods)
            with _page(Path(folder) / "none", [*flags, "--lease", "nobody"]) as address:
                visitor = Visitor(browser, address, axe, options.images, problems)
                _visit(visitor, _wanted(NO_LEADER, options), live.pods)
    for problem in problems:
        print(f"PROBLEM {problem}")
    print("no problem" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def _wanted(views: Iterable[View], options: argparse.Namespace) -> list[View]:
    return [view for view in views if not options.only or view.name in options.only]


def _visit(visitor: Visitor, views: list[View], pods: Pods) -> None:
    if not views:
        return
    head = f"{'view':14}{'scheme':>8}{'first paint':>14}{'loaded':>10}{'explained':>12}{'kB':>8}"
    print(f"\n{head}")
    for scheme in ("light", "dark"):
        for view in views:
            print(visitor.visit(view, view.path(pods), scheme), flush=True)
    visitor.visit_without_scripts(views, pods)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make ui-test")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=20000)
    parser.add_argument("--live-nodes", type=int, default=200)
    parser.add_argument("--live-pending", type=int, default=400)
    parser.add_argument("--images", type=Path, default=IMAGES)
    parser.add_argument("--only", action="append", help="the name of a view; may be repeated")
    options = parser.parse_args(arguments)
    options.images = options.images.resolve()
    return options


def _say(what: str, began: float) -> None:
    print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)


def _axe() -> str:
    """Return the text of axe-core, after npm has put there what the lock file says."""
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(command, cwd=HERE, check=True)
    return (HERE / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def _page(log: Path, flags: list[str]) -> Iterator[str]:
    """Run ``berth ui``; give its address. It ends with this process, however that ends."""
    command = [sys.executable, "-m", "scheduler", "ui", *flags]
    process = ServerProcess(command, log)
    try:
        while not (address := _address(log)):
            if process.exit_status is not None:
                sys.exit(f"berth ui has ended without an address: {log.read_text()}")
            time.sleep(0.05)
        yield address
    finally:
        process.kill()


def _address(log: Path) -> str:
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
    return next((each.strip() for each in lines if each.startswith("http") and "\n" in each), "")


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium's own sandbox refuses to run as root.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

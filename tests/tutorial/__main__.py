"""``make tutorial``: every command of the tutorial and of the questions, as a reader runs it.

The tutorial is followed in an empty folder on a real API server, with a Berth that its own commands
install; ``berth`` in that folder is this checkout. Each output is compared with the page, and
``--write`` puts the real one there instead.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.tutorial.pages import File, matches, steps, with_output
from tests.tutorial.session import Session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
TUTORIAL: Final = ROOT / "docs" / "tutorial.md"
CLUSTER: Final = ROOT / "docs" / "questions" / "shop.json"
QUESTIONS: Final = tuple(
    page for page in sorted(CLUSTER.parent.glob("*.md")) if page.name != "index.md"
)


def follow(
    page: Path, folder: Path, words: Collection[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """Follow a page in a folder.

    Yields
    ------
    A command whose output differs from the page, what the page shows, what was printed, and the
    page with what was printed.
    """
    text = page.read_text(encoding="utf-8")
    shutil.copy(CLUSTER, folder)
    (folder / "berth").symlink_to(ROOT)
    with Session(folder, environment) as session:
        for step in steps(text):
            if step.word and step.word not in words:
                continue
            if isinstance(step, File):
                file = folder / step.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text)
                continue
            printed = session.run(step.line)
            if not matches(step.output, printed):
                text = with_output(text, step, printed)
                yield step.line, step.output, printed, text


def installed() -> dict[str, str]:
    """Return the environment of a reader who has installed this checkout."""
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextlib.contextmanager
def live() -> Iterator[dict[str, str]]:
    """A cluster with the nodes of the questions, and a reader's environment for it."""
    import json

    from tests.controlplane.binaries import find_or_build
    from tests.controlplane.blocking_api import BlockingApi
    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.objects import make_node

    kubectl = find_or_build(["kubectl"])["kubectl"]
    nodes = [each for each in json.loads(CLUSTER.read_text())["items"] if each["kind"] == "Node"]
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        for node in nodes:
            made = make_node(node["metadata"]["name"])
            made["metadata"]["labels"] = node["metadata"]["labels"]
            made["spec"] = node["spec"]
            made["status"].update(node["status"])
            api.post("/api/v1/nodes", made)
        yield {
            "KUBECONFIG": str(plane.admin_kubeconfig),
            "PATH": f"{Path(kubectl).parent}:{os.environ['PATH']}",
        }


def main(arguments: Sequence[str]) -> int:
    """Follow all pages; return 0 if every output is that of its page."""
    parser = argparse.ArgumentParser(prog="make tutorial", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the real outputs")
    options = parser.parse_args(arguments)
    differences = 0
    runs = [(page, frozenset[str]()) for page in QUESTIONS]
    for page, words in [*runs, (TUTORIAL, frozenset({"live", "install"}))]:
        surroundings = live() if words else contextlib.nullcontext(installed())
        with tempfile.TemporaryDirectory(prefix="tutorial-") as folder, surroundings as environment:
            for line, shown, printed, text in follow(page, Path(folder), words, environment):
                differences += 1
                print(f"{page.relative_to(ROOT)}: $ {line}")
                print("".join(f"  page    {each}\n" for each in shown), end="")
                print("".join(f"  printed {each}\n" for each in printed), end="")
                if options.write:
                    page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: followed")
    return 1 if differences and not options.write else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

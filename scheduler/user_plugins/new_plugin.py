"""The command ``berth plugin new NAME``, which writes a template of a plugin."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scheduler.config import ConfigError

if TYPE_CHECKING:
    import argparse

_CLASS_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")

TEMPLATE: Final = '''\
"""{name}: say here what it is for."""

from berth import Args, Nodes, Pod


class {name}:
    """Prefers nodes with a low number in a label."""

    class Args(Args):
        label: str = "example.com/cost-per-hour"

    higher_is_better = False

    def __init__(self, args):
        self.args = args

    def score(self, pod: Pod, nodes: Nodes):
        """Return a number for each node, an array of shape (len(nodes),)."""
        cost = nodes.label_number(self.args.label, default=1.0)
        return cost * pod.requests("cpu") / 1000

    # A filter is written alike, and returns True for each node that will do:
    #
    #     reason = "node(s) had no price"
    #
    #     def filter(self, pod, nodes):
    #         return nodes.label(self.args.label).exists()
    #
    # filter_one(self, pod, node) and score_one(self, pod, node) look at one node at a time:
    # easier to write, and slower. docs/plugins.md has all that nodes can be asked.
'''


def add_new_command(verbs: Any) -> None:
    """Add ``new`` to the verbs of ``berth plugin``."""
    new = verbs.add_parser("new", help="write a template of a plugin")
    new.set_defaults(command=_new)
    new.add_argument("name", metavar="NAME", help="the plugin's name, such as CheapNodesFirst")
    new.add_argument(
        "--dir", metavar="DIR", type=Path, default=Path(), help="where to write it (here)"
    )


def _new(options: argparse.Namespace) -> int:
    path = write_new_plugin(options.name, options.dir)
    sys.stdout.write(
        f"{path} is a plugin already. Try it:\n\n"
        f"    berth plugin check {path}\n"
        f"    berth plugin bench {path}\n"
        f"    berth run --plugin-dir {path.parent} --state-dir berth-state\n"
    )
    return 0


def write_new_plugin(name: str, directory: Path) -> Path:
    """Write a file with a plugin of this name, and return its path: ``cheap_nodes_first.py``.

    Raises
    ------
    ConfigError
        When the name is not a valid class name, or the file already exists or cannot be written.
    """
    if _CLASS_NAME.fullmatch(name) is None:
        raise ConfigError("NAME", f"must be letters and digits like CheapNodesFirst, not {name!r}")
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    path = directory / f"{stem}.py"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=name))
    except FileExistsError as error:
        raise ConfigError(str(path), "is there already") from error
    except OSError as error:
        raise ConfigError(str(path), f"cannot be written: {error.strerror}") from error
    return path

"""SchedulingProfiles that cannot be used, each for another reason, and what is said of each.

Some never get past the API server: the schema of the kind, or one of its CEL rules, refuses them.
The others are objects like any good one, and Berth itself has to find out: when it decodes them,
looks up their plugins, checks arguments, or tries their Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

CONFIG_MAP: Final = "broken-plugins"
"""Has the Python; berth may read it."""

_ONE_NODE_TOO_MANY: Final = """
import numpy as np


class Broken:
    def filter(self, pod, nodes):
        return np.ones(len(nodes) + 1, dtype=np.bool_)
"""

PYTHON: Final[Mapping[str, str]] = {
    "raises.py": 'raise RuntimeError("no rack database")',
    "syntax.py": "class Broken:\n    def filter(self, pod, nodes)\n        return True\n",
    "shape.py": _ONE_NODE_TOO_MANY,
    "empty.py": "rack = 7\n",
}


@dataclass(frozen=True, slots=True)
class BrokenPolicy:
    """One way to be broken.

    Attributes
    ----------
    spec
        On top of a schedulerName.
    told
        What whoever makes it is told has this in it.
    by_api_server
        Whether it is refused before Berth sees it.
    """

    name: str
    spec: Json
    told: str
    by_api_server: bool = False


def _scoring(**strategy: Any) -> Json:
    return {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}


def _python(key: str, **more: Any) -> Json:
    return {"python": [{"configMap": {"name": CONFIG_MAP, "key": key}, **more}]}


BROKEN: Final = (
    BrokenPolicy(
        "a plugin that nobody has",
        {"plugins": {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}},
        "spec.plugins.score.enabled[0].name: there is no plugin 'NoSuchPlugin'",
    ),
    BrokenPolicy(
        "two sources at once, against a CEL rule",
        _python("raises.py", entryPoint="NodeCost"),
        "needs exactly one of configMap and entryPoint",
        by_api_server=True,
    ),
    BrokenPolicy(
        "Python that raises when it is imported",
        _python("raises.py"),
        "line 1: RuntimeError: no rack database",
    ),
    BrokenPolicy(
        "an argument of the wrong type",
        _scoring(type=7),
        "spec.pluginConfig[0].args.scoringStrategy.type: ",
    ),
    BrokenPolicy(
        "a share of nodes that is no number, against the schema",
        {"percentageOfNodesToScore": "many"},
        "spec.percentageOfNodesToScore",
        by_api_server=True,
    ),
    BrokenPolicy(
        "Python that is none",
        _python("syntax.py"),
        "line 2: expected ':'",
    ),
    BrokenPolicy(
        "an argument out of range",
        _scoring(type="LeastAllocated", resources=[{"name": "cpu", "weight": 1000}]),
        "spec.pluginConfig[0].args.scoringStrategy.resources[0].weight: ",
    ),
    BrokenPolicy(
        "the cluster's own schedulerName, against a CEL rule",
        {"schedulerName": "default-scheduler"},
        "is that of the cluster's own scheduler",
        by_api_server=True,
    ),
    BrokenPolicy(
        "nobody who binds",
        {"plugins": {"bind": {"disabled": [{"name": "*"}]}}},
        "spec.plugins.bind: a profile needs a bind plugin, it has none",
    ),
    BrokenPolicy(
        "a plugin that answers for a node too many when it is tried",
        _python("shape.py"),
        "Broken: filter returned an array of shape ",
    ),
    BrokenPolicy(
        "an extender that scores and has no weight, against a CEL rule",
        {"extenders": [{"urlPrefix": "http://127.0.0.1:1", "prioritizeVerb": "prioritize"}]},
        "weight must be more than 0 where there is a prioritizeVerb",
        by_api_server=True,
    ),
    BrokenPolicy(
        "an argument that nobody knows",
        {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardness": 5}}]},
        "spec.pluginConfig[0].args.hardness: ",
    ),
    BrokenPolicy(
        "Python that brings no plugin",
        _python("empty.py"),
        "has no plugin: a class with filter, filter_one, score or score_one",
    ),
    BrokenPolicy(
        "a key that its ConfigMap does not have",
        _python("absent.py"),
        "spec.python[0].configMap: there is no such ConfigMap, or no such key",
    ),
    BrokenPolicy(
        "an entry point that is not installed",
        {"python": [{"entryPoint": "NoSuchEntryPoint"}]},
        "no such entry point is installed",
    ),
)


def config_map() -> Json:
    """Return the ConfigMap that they name."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": dict(PYTHON),
    }

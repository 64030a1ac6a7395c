"""Configuration files and plugins that replace each other during the campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SCHEDULER_NAMES: Final = ("berth", "packed")
PLUGIN: Final = "CheapNodesFirst"
FILE: Final = "cheap_nodes_first.py"

_GOOD: Final = '''\
class CheapNodesFirst:
    """Cheap nodes first, and nothing that matters on spot nodes."""

    higher_is_better = False
    reason = "node(s) were spot nodes"

    def filter(self, pod, nodes):
        return (nodes.label("lifecycle") != "spot") | (pod.priority < 1000)

    def score(self, pod, nodes):
        return nodes.label_number("example.com/cost-per-hour", default=1.0)
'''

CODES: Final[Mapping[str, str]] = {
    "good": _GOOD,
    "dearest first": _GOOD.replace("higher_is_better = False", "higher_is_better = True"),
    "raises for some pods": _GOOD.replace(
        "        return nodes.label_number",
        "        if pod.priority == 100:\n"
        '            raise ValueError("no cost for these")\n'
        "        return nodes.label_number",
    ),
    "no Python": "class CheapNodesFirst:\n    def score(self, pod, nodes\n",
}
"""The versions of the plugin's file. With the last one, the one before stays in force."""

RUNNABLE: Final = tuple(name for name in CODES if name != "no Python")

Json = dict[str, Any]


def _profile(name: str, weights: Mapping[str, object], strategy: str, *, plugin: bool) -> Json:
    enabled: list[Json] = [{"name": key, "weight": value} for key, value in weights.items()]
    if plugin:
        enabled.append({"name": PLUGIN, "weight": 3})
    args = {
        "scoringStrategy": {
            "type": strategy,
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    }
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


def _config(
    weights: Mapping[str, object],
    *,
    plugin: bool = False,
    strategy: str = "LeastAllocated",
    **more: object,
) -> Json:
    return {
        "profiles": [
            _profile(SCHEDULER_NAMES[0], weights, strategy, plugin=plugin),
            _profile(SCHEDULER_NAMES[1], {}, "MostAllocated", plugin=plugin),
        ],
        **more,
    }


CONFIGS: Final[Sequence[tuple[str, Json]]] = (
    ("default weights", _config({})),
    ("other weights", _config({"ImageLocality": 5, "NodeAffinity": 7, "PodTopologySpread": 1})),
    ("with the plugin", _config({}, plugin=True)),
    ("packing, with the plugin", _config({}, plugin=True, strategy="MostAllocated")),
    ("a weight that is no number", _config({"ImageLocality": "seven"})),
    ("a third of the nodes", _config({}, plugin=True, percentageOfNodesToScore=33)),
    ("a plugin that does not exist", _config({"NoSuchPlugin": 1})),
)
"""Parts of configurations; those with a mistake are refused, and the one before stays in force."""


def write_config(base: Path, number: int) -> str:
    """Put the next parts into a configuration file; return what it is called."""
    name, parts = CONFIGS[number % len(CONFIGS)]
    config = yaml.safe_load(base.read_text())
    for key in ("profiles", "percentageOfNodesToScore"):
        config.pop(key, None)
    _replace(base, yaml.safe_dump({**config, **parts}))
    return name


def write_plugin(directory: Path, name: str) -> None:
    """Put a version of the plugin into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    _replace(directory / FILE, CODES[name])


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)

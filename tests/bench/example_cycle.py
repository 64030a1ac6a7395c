"""The time of one cycle for each example plugin, measured as that of the others.

``python -m tests.bench.example_cycle``
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from plugins.authoring import adapt
from plugins.examples.headroom import Headroom
from plugins.examples.load_aware import LoadAware
from plugins.examples.node_cost import NodeCost
from plugins.examples.rack_spread import RackSpread
from tests.bench.plugin_cases import PODS_PER_NODE, ZONE, Case, node_name
from tests.bench.plugin_cycle import measure
from tests.builders import pod
from tests.plugins.conformance import Recipe
from tests.plugins.examples.asking import Measured

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class ExampleCase(Case):
    """A user's class in place of the name of a plugin."""

    cls: type = object
    given: dict[str, Any] = field(default_factory=dict)

    def recipe(self, num_nodes: int) -> Recipe:
        """Return how to make the plugin where every node is measured."""
        by_node = {node_name(index): index % 100 / 100 for index in range(num_nodes)}
        return Recipe(adapt(self.cls), self.given, partial(Measured, by_node))


def cases() -> list[ExampleCase]:
    """Return a case for each example."""
    asking = pod("new").label("app", "app-1").request(cpu="100m", memory="128Mi")
    racks = {"rackLabel": ZONE, "workloadLabel": "app"}

    def case(name: str, cls: type, **given: Any) -> ExampleCase:
        return ExampleCase(name, cls.__name__, asking, cls=cls, given=given)

    return [
        case("RackSpread", RackSpread, **racks),
        case("RackSpread, a limit", RackSpread, **racks, maxPerRack=1_000_000),
        case("NodeCost", NodeCost),
        case("NodeCost, of a CPU", NodeCost, per="cpu"),
        case("LoadAware", LoadAware),
        case("Headroom, two resources", Headroom),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.example_cycle")
    parser.add_argument("--nodes", type=int, default=5000, help=f"{PODS_PER_NODE} pods on each")
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--scalar-cycles", type=int, default=5)
    options = parser.parse_args(arguments)
    print(f"{options.nodes} nodes, {PODS_PER_NODE * options.nodes} pods, times in us")
    print(f"{'':<28}{'first':>9}{'vector':>9}{'p99':>9}{'scalar':>10}")
    for each in cases():
        got = measure(each, options.nodes, options.cycles, options.scalar_cycles)
        print(
            f"{got.case:<28}{got.first_us:9.0f}{got.vector_us:9.1f}{got.vector_p99_us:9.0f}"
            f"{got.scalar_us:10.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What ``berth plugin check`` asks of plugins, asked of the examples."""

from __future__ import annotations

import pytest

from plugins.examples.headroom import Headroom
from plugins.examples.load_aware import LoadAware
from plugins.examples.node_cost import NodeCost
from plugins.examples.rack_spread import RackSpread
from plugins.examples.shared_node_reserve import SharedNodeReserve
from scheduler.user_plugins.plugin_trial.conformance import ALL, Checks, Promise, Subject
from scheduler.user_plugins.plugin_trial.trial_cluster import World

RACK = "example.com/rack"
ROWS = [
    pytest.param(Headroom, {"label": "tier", "value": "web"}, id="Headroom"),
    pytest.param(SharedNodeReserve, {"share": {"cpu": 0.5}}, id="SharedNodeReserve"),
    pytest.param(LoadAware, {}, id="LoadAware"),
    pytest.param(NodeCost, {"per": "cpu"}, id="NodeCost"),
    pytest.param(
        RackSpread, {"rackLabel": RACK, "workloadLabel": "app", "maxPerRack": 3}, id="RackSpread"
    ),
]


@pytest.mark.parametrize(("cls", "args"), ROWS)
@pytest.mark.parametrize("promise", [pytest.param(each, id=each.sentence) for each in ALL])
def test_it_is_kept(cls: type, args: dict[str, object], promise: Promise) -> None:
    promise.check(Checks(Subject(cls, args), World.made_up(20), lambda method: None))

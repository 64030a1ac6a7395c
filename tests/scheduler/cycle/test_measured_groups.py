"""Attempts of groups as metrics show them, from the watch to the binding."""

from __future__ import annotations

import asyncio

import pytest

from tests.regressions import steps
from tests.regressions.world import World


def metrics_after(text: str) -> dict[str, str]:
    """Do all steps, and return the metrics of groups that have a value."""

    async def run() -> str:
        async with World() as world:
            for line in text.strip().splitlines():
                steps.of(line.strip())(world)
                await world.settle()
            return world.metrics.render()[0].decode()

    lines = asyncio.run(run()).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: value for name, value in values.items() if "podgroup" in name and value != "0"}


@pytest.mark.parametrize(
    ("text", "result", "members"),
    [
        pytest.param("node a cpu=3", "scheduled", "3", id="fits"),
        pytest.param("node a cpu=2", "unschedulable", None, id="does not fit"),
    ],
)
def test_an_attempt_counts_once_with_its_result(text, result, members):
    found = metrics_after(f"""
        {text}
        group x min=3
        pod x copies=3 group=x
        cycle
    """)
    labels = f'{{profile="berth",result="{result}"}}'
    attempts = "scheduler_podgroup_schedule_attempts_total"
    assert {name: value for name, value in found.items() if attempts in name} == {
        attempts + labels: "1"
    }
    assert found["scheduler_podgroup_scheduling_attempt_duration_seconds_count" + labels] == "1"
    assert found["scheduler_podgroup_scheduling_algorithm_duration_seconds_count"] == "1"
    assert found.get('berth_podgroup_members_placed_total{way="counted"}') == members

"""No plugin's vector form walks over nodes or pods in Python.

Times would depend on the machine; the number of byte code instructions does not. They are
counted for the same cycle in a small and in a large cluster: a loop over the nodes takes several
for each further node, an operation on arrays none.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from plugins import names
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.registry import PLUGINS
from tests.bench.plugin_cases import cases
from tests.bench.plugin_cycle import Cycles, main, measure, scalar_cycle, vector_cycle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType
    from typing import Any

SMALL, LARGE = 100, 1100


def instructions(call: Callable[[], object]) -> int:
    """Return how many byte code instructions a call executes, in all that it calls."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def instructions_of(case: Any, num_nodes: int, cycle: Callable[..., None]) -> int:
    """Count those of a cycle that is not the first of its kind; the fewest of a few cycles."""
    going = Cycles(case, num_nodes)
    vector_cycle(going.plugin, *going.go_on())
    counts = []
    for _ in range(3):
        info, nodes = going.go_on()
        counts.append(instructions(partial(cycle, going.plugin, info, nodes)))
    return min(counts)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases()])
def test_a_cycle_takes_no_step_for_each_node(case: Any) -> None:
    small = instructions_of(case, SMALL, vector_cycle)
    large = instructions_of(case, LARGE, vector_cycle)
    assert large - small < LARGE - SMALL


def test_a_walk_over_the_nodes_is_noticed() -> None:
    case = next(case for case in cases() if case.plugin == names.NODE_UNSCHEDULABLE)
    small = instructions_of(case, SMALL, scalar_cycle)
    large = instructions_of(case, LARGE, scalar_cycle)
    assert large - small > LARGE - SMALL


def test_every_plugin_that_looks_at_nodes_has_a_case() -> None:
    points = (PreFilterPlugin, FilterPlugin, ScorePlugin)
    looking = {name for name, plugin in PLUGINS.items() if issubclass(plugin, points)}
    assert {case.plugin for case in cases()} == looking


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases()])
def test_no_case_is_skipped_by_its_plugin(case: Any) -> None:
    """Else a benchmark would measure how quickly nothing is done."""
    plugin = case.recipe(60).make()
    going = Cycles(case, 60)
    info, nodes = going.go_on()
    state = CycleState()
    filters = isinstance(plugin, (PreFilterPlugin, FilterPlugin)) and (
        not isinstance(plugin, PreFilterPlugin)
        or plugin.pre_filter(state, info, nodes).status.is_success
    )
    scores = isinstance(plugin, ScorePlugin) and (
        not isinstance(plugin, PreScorePlugin) or plugin.pre_score(state, info, nodes).is_success
    )
    assert filters or scores


def test_the_command_prints_a_row_for_each_case(capsys: Any, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    size = ["--nodes", "20", "--cycles", "2", "--scalar-cycles", "1"]
    assert main([*size, "--only", "NodeName", "--json", str(figures)]) == 0
    assert "NodeName" in capsys.readouterr().out
    assert '"case": "NodeName"' in figures.read_text()


def test_a_measurement_has_times() -> None:
    measured = measure(next(cases()), 20, 2, 1)
    assert min(measured.first_us, measured.vector_us, measured.scalar_us) > 0

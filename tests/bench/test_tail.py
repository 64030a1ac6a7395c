from __future__ import annotations

import asyncio
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.bench.berth_tables import PARTS
from tests.bench.loop_stalls import Pause, Stall, read
from tests.bench.sample_results import a_latency
from tests.bench.tail import (
    DISTURBANCES,
    Disturbance,
    bound_pod_update,
    changed_config,
    gated_pod_edit,
    heartbeat,
    line,
    main,
    stall_line,
    steadily,
    tail_part,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.records import LatencyRound


def stall(
    wall_ms: float, cpu_ms: float, process_ms: float, queued_ms: float = 0.0, stack: str = ""
) -> Stall:
    """Return a stall whose timers were 5 ms further apart."""
    return Stall(
        10.0,
        wall_ms / 1e3,
        cpu_ms / 1e3,
        process_ms / 1e3,
        queued_ms / 1e3,
        (wall_ms + 5) / 1e3,
        stack,
    )


@pytest.mark.parametrize(
    ("found", "cause", "own_ms"),
    [
        pytest.param(stall(40, 38, 40), "loop", 40, id="the loop was at work"),
        pytest.param(stall(40, 5, 45), "interpreter", 40, id="another thread kept it"),
        pytest.param(stall(40, 5, 5, 38), "system", 5, id="it had no core"),
        pytest.param(stall(40, 5, 5), "system", 5, id="all of Berth slept"),
        pytest.param(
            stall(40, 5, 45, 38), "system", 7, id="others worked meanwhile, on another core"
        ),
        pytest.param(stall(90, 15, 15, 75), "system", 15, id="short work, stretched"),
        pytest.param(stall(90, 30, 30, 60), "loop", 30, id="long work, stretched"),
    ],
)
def test_a_stall_is_berths_own_by_cpu_time(found: Stall, cause: str, own_ms: float) -> None:
    assert found.cause == cause
    assert found.own_s * 1e3 == pytest.approx(own_ms)


def test_what_was_written_is_read_without_a_line_that_was_cut_off(tmp_path: Path) -> None:
    found = [stall(30, 30, 30, stack="a.py:1 f"), Pause(11.0, 2, 0.05, 0.04, 7, on_loop=True)]
    path = tmp_path / "stalls"
    lines = [msgspec.json.encode(asdict(each)) for each in found]
    path.write_bytes(b"\n".join([*lines, lines[0][:20]]))
    assert read(path) == (found[:1], found[1:])


def played(**more: Any) -> LatencyRound:
    return a_latency(**{"p99_ms": 9.0, "max_ms": 12.5, "pods": 10, "bound": 10, **more})


def test_a_line_has_the_latency_the_stalls_by_cause_and_the_pauses() -> None:
    stalls = [stall(40, 38, 40), stall(90, 15, 15, 75)]
    pauses = [
        Pause(11.0, 0, 0.002, 0.001, 0, on_loop=True),
        Pause(11.0, 2, 0.05, 0.04, 3, on_loop=False),
    ]
    text = line(tail_part("flood", played(bound=9), stalls, pauses))
    assert "p99     9.0  max    12.5 ms" in text
    assert "longest   90.0, own   40.0 ms" in text
    assert "> 20 ms: 2 (loop 1, interpreter 0, system 1)" in text
    assert "GC: 2, CPU    41 ms, longest  40.0 ms, full 1, garbage 3" in text
    assert text.endswith("only 9 of 10 bound")


def test_stalls_without_a_core_are_not_berths_own() -> None:
    part = tail_part("flood", played(), [stall(40, 38, 40), stall(90, 15, 15, 75)], [])
    assert (part.part, part.own_stalls, part.longest_own_stall_ms) == ("flood", 1, 40.0)


def test_a_line_without_stalls_has_zeros() -> None:
    assert "longest    0.0, own    0.0 ms; > 20 ms: 0" in line(tail_part("alone", played(), [], []))


def test_a_stall_says_what_the_loop_was_doing() -> None:
    assert stall_line(stall(40, 38, 40, stack="a.py:1 f")).endswith("a.py:1 f")


def test_heartbeats_go_round_all_nodes() -> None:
    names = [heartbeat(number, 3)[0]["metadata"]["name"] for number in range(4)]
    assert names == ["node-00000", "node-00001", "node-00002", "node-00000"]
    times = {
        heartbeat(number, 3)[1]["status"]["conditions"][0]["lastHeartbeatTime"]
        for number in range(1000)
    }
    assert len(times) == 1000


def test_updates_of_a_bound_pod_all_change_it() -> None:
    assert bound_pod_update(1, 2) != bound_pod_update(3, 2)


def test_one_of_five_edits_opens_a_gate() -> None:
    patches = [gated_pod_edit(number, 100)[1] for number in range(10)]
    assert sum("spec" in patch for patch in patches) == 2


def test_each_configuration_differs_from_the_one_before() -> None:
    config = {"kind": "KubeSchedulerConfiguration", "profiles": [{"schedulerName": "bench"}]}
    found = [changed_config(config, number) for number in range(4)]
    assert all(a != b for a, b in pairwise(found))
    assert all(each["profiles"][0]["schedulerName"] == "bench" for each in found)


def test_calls_go_on_until_they_are_cancelled_and_a_failure_is_raised() -> None:
    seen = []

    async def do(number: int) -> None:
        seen.append(number)
        if number == 3:
            raise OSError

    async def run() -> None:
        await steadily(1e6, do, at_a_time=2)

    with pytest.raises(ExceptionGroup):
        asyncio.run(run())
    assert seen[:4] == [0, 1, 2, 3]


def test_disturbances_have_names_of_their_own() -> None:
    assert len({each.name for each in DISTURBANCES}) == len(DISTURBANCES)
    assert Disturbance("alone") in DISTURBANCES


def test_the_table_has_the_disturbances_in_their_order() -> None:
    assert tuple(each.name for each in DISTURBANCES) == PARTS


@pytest.mark.parametrize(
    "arguments",
    [["--only", "nothing"], ["--contenders", "kube-scheduler"], ["--contenders", "nobody"]],
    ids=" ".join,
)
def test_what_cannot_be_measured_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)

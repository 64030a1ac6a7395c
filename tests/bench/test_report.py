from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.bench import report, tables
from tests.bench.plots import plots
from tests.bench.records import CyclesUnderLoad, Decisions, Memory
from tests.bench.results import Results
from tests.bench.sample_results import (
    a_large_run,
    a_latency,
    a_round,
    a_session,
    a_start,
    a_tail_part,
    a_variety,
    cells,
)

if TYPE_CHECKING:
    from pathlib import Path


def in_turn(ours: list[float], theirs: list[float], **fields: Any) -> Results:
    """Return rounds of both contenders."""
    rounds = [
        a_round(contender=name, number=number, pods_per_s=rate, **fields)
        for name, rates in (("berth", ours), ("kube-scheduler", theirs))
        for number, rate in enumerate(rates, 1)
    ]
    return Results([a_session()], rounds)


def a_point(nodes: int, cycle_us: float) -> Decisions:
    return Decisions(
        series="nodes",
        kind="nothing",
        nodes=nodes,
        pods=100,
        terms=1,
        session=0,
        decisions=10,
        per_s=1e6 / cycle_us,
        cycle_us=cycle_us,
        p99_us=cycle_us,
    )


EVERYTHING = Results(
    [a_session(), a_session(cores=8)],
    [*in_turn([1500.0], [500.0]).rounds, a_round(number=2, session=1)],
    [a_latency(), a_latency(contender="kube-scheduler", p99_ms=20.0)],
    [a_point(1000, 100.0), a_point(10_000, 1000.0)],
    [
        CyclesUnderLoad(
            kind="nothing",
            nodes=5000,
            pods=1,
            rate=2000,
            session=0,
            cycles=10,
            taken=1999.0,
            wall_p50_us=100.0,
            wall_p99_us=900.0,
            thread_p50_us=90.0,
            thread_p99_us=100.0,
            loop_share=0.1,
            core_wait_share=0.05,
            blocked_share=0.07,
        )
    ],
    [
        Memory(
            nodes=5000,
            pods=1024,
            session=0,
            base_rss_mib=50.0,
            rss_mib=60.0,
            peak_rss_mib=70.0,
            seconds=1.0,
        )
    ],
)


class TestThroughput:
    def test_has_medians_the_ratio_and_its_spread(self) -> None:
        results = in_turn([1500.0, 1600.0, 2000.0], [400.0, 500.0, 500.0])
        row = cells(tables.throughput(results, ours="berth"), "Basic")
        assert row[4:7] == ["1600", "500", "3.20 (3.20 to 4.00)"]

    @pytest.mark.parametrize(("rate", "verdict"), [(1500.0, "3.0 reached"), (1499.0, "3.0 missed")])
    def test_says_whether_the_goal_is_reached(self, rate: float, verdict: str) -> None:
        row = cells(tables.throughput(in_turn([rate], [500.0]), ours="berth"), "Basic")
        assert row[-1] == verdict

    def test_a_ratio_below_the_goal_does_not_look_like_it(self) -> None:
        row = cells(tables.throughput(in_turn([1499.9], [500.0]), ours="berth"), "Basic")
        assert row[6:] == ["2.99 (2.99 to 2.99)", "3.0 missed"]

    def test_a_round_that_was_broken_off_is_marked(self) -> None:
        text = tables.throughput(in_turn([900.0], [500.0], bound=10), ours="berth")
        assert cells(text, "Basic")[4] == "900*"
        assert "before all pods were bound" in text

    def test_rounds_under_different_conditions_are_marked(self) -> None:
        results = in_turn([900.0], [500.0])
        results.sessions.append(a_session(commit="later"))
        results.rounds.append(a_round(number=2, session=1))
        text = tables.throughput(results, ours="berth")
        assert cells(text, "Basic †")[4] == "950"
        assert "same conditions" in text

    def test_a_contender_without_the_workload_has_an_empty_cell(self) -> None:
        results = in_turn([900.0], [500.0])
        results.rounds.append(a_round(workload="Mixed", contender="kube-scheduler"))
        assert cells(tables.throughput(results, ours="berth"), "Mixed")[4] == ""

    def test_workloads_come_in_their_order(self) -> None:
        results = in_turn([900.0], [500.0], workload="Mixed")
        results.rounds += in_turn([900.0], [500.0]).rounds
        text = tables.throughput(results, ours="berth")
        assert text.index("| Basic") < text.index("| Mixed")


class TestSections:
    def test_costs_are_told_for_each_contender(self) -> None:
        text = tables.costs(in_turn([1.0], [1.0]))
        assert text.count("| Basic |") == 2

    def test_latency_is_compared_by_its_99th_percentile(self) -> None:
        text = tables.latency(EVERYTHING, ours="berth")
        assert "0.50 (0.50 to 0.50)" in text

    def test_growth_is_told(self) -> None:
        assert "| nodes | nothing | 1.00 | 1.00 |" in tables.decisions(EVERYTHING)

    def test_waiting_is_told(self) -> None:
        assert cells(tables.cycles(EVERYTHING), "nothing")[-2:] == ["5.0%", "7.0%"]

    def test_memory_is_told_for_each_pod(self) -> None:
        assert cells(tables.memory(EVERYTHING), "1,024")[5] == "10.0"

    def test_different_conditions_are_pointed_out(self) -> None:
        assert "different conditions" in tables.conditions(EVERYTHING)

    def test_equal_conditions_are_told_once(self) -> None:
        rounds = [a_round(), a_round(number=2, session=1)]
        results = Results([a_session(started="a"), a_session(started="b")], rounds)
        assert tables.conditions(results).count("2 cores") == 1

    def test_conditions_of_which_no_figures_are_left_are_not_told(self) -> None:
        results = Results([a_session(cores=2), a_session(cores=8)], [a_round(session=1)])
        assert "2 cores" not in tables.conditions(results)

    def test_only_what_was_measured_is_told(self) -> None:
        results = Results([a_session()], memory=EVERYTHING.memory)
        assert len(list(report.sections(results, ours="berth"))) == 2

    def test_targets_come_right_after_the_conditions(self) -> None:
        sections = list(report.sections(EVERYTHING, ours="berth"))
        assert sections[1].startswith("## Targets\n")
        assert sections[2].startswith("## Pods bound per second\n")

    def test_the_series_without_rounds_have_sections(self) -> None:
        results = Results(
            [a_session()],
            starts=[a_start()],
            large=[a_large_run()],
            tails=[a_tail_part()],
            variety=[a_variety()],
        )
        assert [text.splitlines()[0] for text in report.sections(results, ours="berth")] == [
            "## Conditions",
            "## Targets",
            "## From the start of a process to its first binding",
            "## The tail",
            "## Many kinds of requests",
            "## Large clusters and pools",
        ]


class TestPlots:
    def test_all_are_well_formed(self) -> None:
        for svg in plots(EVERYTHING, ours="berth").values():
            ET.fromstring(svg)

    def test_there_is_one_for_each_thing(self) -> None:
        assert set(plots(EVERYTHING, ours="berth")) == {
            "throughput-5000",
            "progress-5000",
            "ratios",
            "latency-200",
            "decisions-nodes",
        }

    def test_nothing_measured_nothing_drawn(self) -> None:
        assert plots(Results(), ours="berth") == {}


class TestCommand:
    def test_writes_the_page_and_its_plots_beside_the_file(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        EVERYTHING.save(tmp_path / "figures.json")
        assert report.main([str(tmp_path / "figures.json")]) == 0
        page = (tmp_path / "figures.md").read_text(encoding="utf-8")
        assert capsys.readouterr().out.strip() == page.strip()
        assert "](figures-ratios.svg)" in page
        assert (tmp_path / "figures-ratios.svg").exists()

    def test_a_file_that_is_missing_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            report.main([str(tmp_path / "nowhere.json")])
        assert "nowhere.json" in capsys.readouterr().err

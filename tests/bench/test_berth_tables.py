from __future__ import annotations

from typing import Any

import pytest

from tests.bench import berth_tables
from tests.bench.results import Results
from tests.bench.sample_results import a_large_run, a_session, a_tail_part, a_variety, cells


def large(**fields: Any) -> str:
    return berth_tables.large(Results([a_session()], large=[a_large_run(**fields)]))


class TestLarge:
    def test_leaders_are_a_range(self) -> None:
        assert cells(large(rss_mib=[134, 130]), "5,000")[5] == "130 to 134"

    def test_equal_leaders_are_one_figure(self) -> None:
        assert cells(large(start_cpu_s=[2.01, 2.04]), "5,000")[4] == "2.0"

    def test_nobody_is_killed_with_one_pool(self) -> None:
        assert cells(large(), "5,000")[11:14] == ["", "", ""]

    def test_a_handed_on_pod_has_its_hops(self) -> None:
        text = large(after_kill_s=16.2, handed_on_s=10.9, hops=3)
        assert cells(text, "5,000")[11:14] == ["16", "11", "3"]

    def test_problems_and_refused_bindings_are_counted(self) -> None:
        assert cells(large(problems=2, refused_bindings=1), "5,000")[-2:] == ["2", "1"]

    def test_small_clusters_come_first(self) -> None:
        runs = [a_large_run(nodes=50_000), a_large_run()]
        text = berth_tables.large(Results([a_session()], large=runs))
        assert text.index("| 5,000 |") < text.index("| 50,000 |")


class TestTail:
    def test_latencies_are_medians_and_stalls_are_those_of_all_rounds(self) -> None:
        parts = [
            a_tail_part(number=number, p99_ms=p99_ms, **fields)
            for number, (p99_ms, fields) in enumerate(
                [
                    (20.0, {"stalls": {"loop": 1}, "longest_own_stall_ms": 25.0}),
                    (90.0, {"stalls": {"interpreter": 2, "system": 9}, "bound": 8990}),
                    (30.0, {"longest_gc_ms": 7.5}),
                ],
                1,
            )
        ]
        text = berth_tables.tail(Results([a_session()], tails=parts))
        assert cells(text, "alone")[4:] == ["3", "5.0", "30.0", "25.0", "3", "7.5", "10"]

    def test_parts_come_in_their_order(self) -> None:
        parts = [a_tail_part(part=name) for name in ("relist", "alone", "flood")]
        text = berth_tables.tail(Results([a_session()], tails=parts))
        assert text.index("| alone") < text.index("| flood") < text.index("| relist")


class TestVariety:
    @pytest.fixture
    def text(self) -> str:
        points = [
            a_variety(kinds=kinds, nodes=nodes, number=number, cycle_us=us)
            for kinds, nodes, number, us in (
                (1, 500, 1, 100.0),
                (1, 500, 2, 120.0),
                (1, 500, 3, 110.0),
                (1000, 500, 1, 220.0),
                (1000, 5000, 1, 300.0),
            )
        ]
        return berth_tables.variety(Results([a_session()], variety=points))

    def test_kinds_are_columns_and_are_compared_with_one(self, text: str) -> None:
        assert "| nodes | 1 kind, us | 1,000 kinds, us | 1,000 / 1 |" in text
        assert cells(text, "500") == ["500", "110", "220", "2.00"]

    def test_without_one_kind_there_is_no_ratio(self, text: str) -> None:
        assert cells(text, "5,000") == ["5,000", "", "300", ""]

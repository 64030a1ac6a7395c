"""Benchmarks without an API server, at a size at which they only have to work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench import cycles_under_load, decisions, large_clusters, memory, variety
from tests.bench.decisions import SERIES, Point
from tests.bench.results import Results
from tests.builders import cache_of

if TYPE_CHECKING:
    from pathlib import Path


class TestClusters:
    def test_pods_are_dealt_out_evenly(self) -> None:
        cache = cache_of(large_clusters.nodes(5), large_clusters.running(20, 5, 3))
        infos = cache.dump().nodes.values()
        assert [len(info.pods) for info in infos] == [4] * 5

    def test_there_are_as_many_distinct_terms_as_asked_for(self) -> None:
        terms = {
            str(info.pod.spec.affinity)
            for info in large_clusters.running(1000, 5, 30)
            if info.pod.spec.affinity is not None
        }
        assert len(terms) == 30

    def test_the_largest_of_each_series_has_room_for_one_pod_more(self) -> None:
        for series in {point.series for point in SERIES}:
            largest = max(
                (point for point in SERIES if point.series == series), key=lambda each: each.pods
            )
            # 10 milli-CPU each, on nodes of 4 CPUs.
            assert largest.pods / largest.nodes * 10 < 4000 - 10


class TestDecisions:
    @pytest.mark.parametrize("kind", list(large_clusters.kinds()))
    def test_every_kind_of_pod_is_placed(self, kind: str) -> None:
        measured = decisions.measure(Point("nodes", 20, 40, 4), kind, 5, 60.0, 0)
        assert measured.decisions == 5
        assert measured.per_s > 0

    def test_a_pod_that_fits_nowhere_is_no_measurement(self) -> None:
        # Too few nodes for those that keep apart.
        with pytest.raises(RuntimeError, match="fits nowhere"):
            decisions.measure(Point("nodes", 2, 0, 1), "host anti-affinity", 5, 60.0, 0)

    def test_the_command_adds_to_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        size = ["--scale", "0.001", "--decisions", "2", "--json", str(path)]
        assert decisions.main([*size, "--series", "terms", "--kinds", "nothing"]) == 0
        assert [each.terms for each in Results.load(path).decisions] == [1, 10, 100, 1000]


class TestVariety:
    ARGUMENTS = ("--nodes", "20", "--requests", "1,3", "--decisions", "5", "--rounds", "2")

    def test_the_command_adds_each_round_to_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        assert variety.main([*self.ARGUMENTS, "--json", str(path)]) == 0
        found = Results.load(path).variety
        assert [(each.number, each.kinds) for each in found] == [(1, 1), (1, 3), (2, 1), (2, 3)]
        assert all(each.cycle_us > 0 and each.decisions == 5 for each in found)

    def test_without_a_file_it_only_prints(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert variety.main(self.ARGUMENTS) == 0
        assert "3 kinds" in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []


def test_cycles_are_timed_by_both_clocks() -> None:
    measured = cycles_under_load.measure("nothing", 5, 20, 500, 0.5, 0)
    assert measured.cycles > 0
    assert min(measured.wall_p50_us, measured.thread_p50_us, measured.loop_share) > 0


def test_memory_is_that_of_all_pods() -> None:
    measured = memory.measure(10, 50, 0)
    assert measured.rss_mib > 0
    assert measured.peak_rss_mib >= measured.base_rss_mib

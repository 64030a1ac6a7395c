from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.bench.records import Memory
from tests.bench.results import Results, ResultsFile, put, today
from tests.bench.sample_results import (
    a_large_run,
    a_round,
    a_session,
    a_start,
    a_tail_part,
    a_variety,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TestFile:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        written = Results([a_session()], [a_round()])
        written.save(tmp_path / "deep" / "figures.json")
        assert Results.load(tmp_path / "deep" / "figures.json") == written

    def test_each_figure_has_a_line(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        Results([a_session()], [a_round(), a_round(number=2)]).save(path)
        assert sum('"contender"' in line for line in path.read_text().splitlines()) == 2

    def test_there_is_none_yet(self, tmp_path: Path) -> None:
        assert Results.load(tmp_path / "figures.json") == Results()

    def test_a_file_without_the_later_series_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        Results([a_session()], [a_round()]).save(path)
        old = msgspec.json.decode(path.read_bytes())
        for name in ("starts", "large", "tails", "variety"):
            del old[name]
        path.write_bytes(msgspec.json.encode(old))
        assert Results.load(path) == Results([a_session()], [a_round()])

    def test_each_empty_file_is_its_own(self) -> None:
        Results().rounds.append(a_round())
        assert Results().rounds == []

    def test_another_file_is_refused_and_says_where(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        path.write_text('{"rounds": [{"workload": 5}]}')
        with pytest.raises(msgspec.ValidationError, match=r"\$\.rounds\[0\]"):
            Results.load(path)


class TestGoingOn:
    def test_a_round_that_is_there_is_known(self) -> None:
        results = Results(rounds=[a_round()])
        assert results.holds(("Basic", 5000, 10_000, "berth", 1))

    @pytest.mark.parametrize(
        "change",
        [
            {"workload": "Mixed"},
            {"nodes": 500},
            {"pods": 5},
            {"contender": "kube-scheduler"},
            {"number": 2},
        ],
        ids=str,
    )
    def test_another_round_is_not(self, change: dict[str, Any]) -> None:
        results = Results(rounds=[a_round(**change)])
        assert not results.holds(a_round().key)

    def test_a_round_that_is_measured_again_replaces_the_old_one(self) -> None:
        rounds = [a_round(), a_round(number=2)]
        put(rounds, a_round(pods_per_s=5.0))
        assert sorted((each.number, each.pods_per_s) for each in rounds) == [(1, 5.0), (2, 1000.0)]

    @pytest.mark.parametrize(
        ("made", "other", "again"),
        [
            (a_start, {"running": 20_000}, {"rss_mib": 1.0}),
            (a_start, {"bound": 200}, {"rss_mib": 1.0}),
            (a_start, {"number": 2}, {"rss_mib": 1.0}),
            (a_large_run, {"pools": 2}, {"pods_per_s": 1.0}),
            (a_large_run, {"pods": 500_000}, {"pods_per_s": 1.0}),
            (a_tail_part, {"part": "flood"}, {"p99_ms": 1.0}),
            (a_tail_part, {"contender": "berth@x"}, {"p99_ms": 1.0}),
            (a_variety, {"kinds": 40}, {"cycle_us": 1.0}),
            (a_variety, {"number": 2}, {"cycle_us": 1.0}),
        ],
        ids=lambda value: value.__name__ if callable(value) else str(value),
    )
    def test_only_the_same_key_is_replaced(
        self, made: Callable[..., Any], other: dict[str, Any], again: dict[str, Any]
    ) -> None:
        series = [made(), made(**other)]
        put(series, made(**again))
        assert series == [made(**other), made(**again)]


class TestFileOfOneCall:
    def test_adds_to_what_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "figures.json"
        Results([a_session()], [a_round()]).save(path)
        file = ResultsFile(path)
        put(file.results.starts, a_start(session=file.session))
        file.save()
        read = Results.load(path)
        assert (len(read.sessions), read.rounds) == (2, [a_round()])
        assert read.starts == [a_start(session=1)]

    def test_has_one_session(self, tmp_path: Path) -> None:
        file = ResultsFile(tmp_path / "figures.json")
        assert (file.session, file.session, len(file.results.sessions)) == (0, 0, 1)

    def test_without_a_path_nothing_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        file = ResultsFile(None)
        put(file.results.starts, a_start(session=file.session))
        file.save()
        assert list(tmp_path.iterdir()) == []


class TestSeveralFiles:
    def test_rounds_keep_their_conditions(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one.json", tmp_path / "other.json"
        Results([a_session(cores=2)], [a_round()]).save(one)
        Results([a_session(cores=8)], [a_round(number=2)]).save(other)
        merged = Results.merged([one, other])
        assert [merged.sessions[each.session].cores for each in merged.rounds] == [2, 8]

    def test_the_last_one_wins(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one.json", tmp_path / "other.json"
        Results([a_session()], [a_round(pods_per_s=1.0)]).save(one)
        Results([a_session()], [a_round(pods_per_s=2.0)]).save(other)
        assert [each.pods_per_s for each in Results.merged([one, other]).rounds] == [2.0]

    def test_all_kinds_of_figures_are_there(self, tmp_path: Path) -> None:
        path = tmp_path / "one.json"
        held = Memory(
            nodes=1,
            pods=2,
            session=0,
            base_rss_mib=1.0,
            rss_mib=2.0,
            peak_rss_mib=3.0,
            seconds=1.0,
        )
        Results([a_session()], memory=[held]).save(path)
        assert Results.merged([path]).memory == [held]

    def test_the_later_series_keep_their_conditions(self, tmp_path: Path) -> None:
        path = tmp_path / "one.json"
        Results(
            [a_session()],
            starts=[a_start()],
            large=[a_large_run()],
            tails=[a_tail_part()],
            variety=[a_variety()],
        ).save(path)
        merged = Results.merged([tmp_path / "none.json", path, path])
        found = [*merged.starts, *merged.large, *merged.tails, *merged.variety]
        assert [each.session for each in found] == [1, 1, 1, 1]


def test_conditions_name_the_versions_of_all_that_is_measured() -> None:
    versions = today("now").versions
    assert {"kube-scheduler", "etcd", "numpy"} <= versions.keys()


def test_when_it_was_is_no_condition() -> None:
    assert a_session(started="then").conditions == a_session(started="now").conditions

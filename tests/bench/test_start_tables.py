from __future__ import annotations

from tests.bench import start_tables
from tests.bench.results import Results
from tests.bench.sample_results import a_session, a_start, cells


def in_turn(**fields: float) -> Results:
    """Return one start of both contenders; ours comes first after 1 s, the other's after 2 s."""
    starts = [a_start(**fields), a_start(contender="kube-scheduler", first_s=2.0, **fields)]
    return Results([a_session()], starts=starts)


def row(text: str, contender: str, running: str = "1,000") -> dict[str, str]:
    """Return the cells of a contender by the names of their columns."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    found = next(line for line in lines if line[0] == running and contender in line)
    return dict(zip(lines[0], found, strict=True))


def test_figures_are_medians_and_the_first_binding_is_compared() -> None:
    results = in_turn()
    results.starts += [
        a_start(number=2, first_s=1.4, server_cpu_s=3.0, rss_mib=120.0),
        a_start(number=3, first_s=1.2),
        a_start(contender="kube-scheduler", number=3, first_s=2.0),
    ]
    found = row(start_tables.starts(results, ours="berth"), "berth")
    assert found == {
        "running": "1,000",
        "nodes": "5,000",
        "waiting": "4,000",
        "until bound": "4,000",
        "contender": "berth",
        "rounds": "3",
        "first bind, s": "1.20",
        "200 bound, s": "1.70",
        "CPU s to first bind": "0.60",
        "servers' CPU s": "2.00",
        "RSS, MiB": "100",
        "first bind: berth / kube-scheduler": "0.60 (0.50 to 0.60)",
    }


def test_a_phase_that_a_contender_does_not_log_is_empty() -> None:
    results = in_turn()
    more = {"imported": 0.3, "first bind": 1.0}
    results.starts[0] = a_start(wall_s=more)
    text = start_tables.starts(results, ours="berth")
    assert [row(text, name)["imported, s"] for name in ("berth", "kube-scheduler")] == ["0.30", ""]
    assert [row(text, name)["200 bound, s"] for name in ("berth", "kube-scheduler")] == ["", "2.50"]


def test_starts_that_end_elsewhere_are_not_mixed() -> None:
    results = in_turn()
    results.starts.append(a_start(bound=200, first_s=9.0))
    found = row(start_tables.starts(results, ours="berth"), "berth")
    assert (found["until bound"], found["rounds"]) == ("200", "1")


def test_memory_of_a_pod_is_what_more_of_them_take() -> None:
    results = in_turn()
    results.starts += in_turn(running=5096, rss_mib=108.0).starts
    results.starts.append(a_start(running=3000, rss_mib=500.0))
    text = start_tables.starts(results, ours="berth")
    assert cells(text, "berth") == ["berth", "5,000", "5,096", "2.0"]


def test_with_one_number_of_running_pods_the_memory_of_a_pod_is_unknown() -> None:
    assert "KiB" not in start_tables.starts(in_turn(), ours="berth")

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.results import Results
from tests.bench.sample_results import (
    a_large_run,
    a_latency,
    a_round,
    a_start,
    a_tail_part,
    a_variety,
)
from tests.bench.targets import targets
from tests.bench.workloads import BY_NAME

if TYPE_CHECKING:
    from tests.bench.records import Round

PEER = "kube-scheduler"


def table(results: Results) -> dict[str, tuple[str, str]]:
    """Return what was measured and the verdict, by target."""
    lines = targets(results, ours="berth").splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")][2:]
    return {
        target.strip(): (measured.strip(), verdict.strip()) for target, measured, verdict in rows
    }


def throughput(rounds: list[Round]) -> dict[str, tuple[str, str]]:
    """Return the rows about pods/s beside kube-scheduler."""
    rows = table(Results(rounds=rounds))
    return {target: row for target, row in rows.items() if f"the pods/s of {PEER}" in target}


def in_turn(workload: str, ratio: float, nodes: int = 5000, peer: str = PEER) -> list[Round]:
    """Return a round of both contenders, with the workload's own number of pods."""
    fields: dict[str, Any] = {"workload": workload, "nodes": nodes}
    fields["pods"] = BY_NAME[workload].counts(nodes)[1]
    return [
        a_round(pods_per_s=ratio * 1000.0, **fields),
        a_round(contender=peer, pods_per_s=1000.0, **fields),
    ]


class TestSection:
    def test_nothing_measured_no_section(self) -> None:
        assert targets(Results(), ours="berth") == ""

    def test_a_contender_alone_has_no_ratio(self) -> None:
        results = Results(
            rounds=[a_round(contender=PEER)],
            latencies=[a_latency()],
            starts=[a_start()],
            variety=[a_variety()],
        )
        assert targets(results, ours="berth") == ""

    def test_only_what_was_measured_has_a_row(self) -> None:
        assert list(table(Results(large=[a_large_run()]))) == [
            "no pod bound twice, no node overcommitted in large clusters and pools"
        ]


class TestThroughput:
    def test_what_misses_is_named_with_its_ratio(self) -> None:
        rounds = [
            *in_turn("Basic", 2.5, 500),
            *in_turn("Daemonset", 1.996, 500),
            *in_turn("Varied1000", 1.7, 500),
        ]
        assert throughput(rounds) == {
            "2.0 times the pods/s of kube-scheduler, 500 nodes": (
                "1.70 to 2.50",
                "1 of 3 reached; missed: Varied1000 (1.70), Daemonset (1.99)",
            )
        }

    def test_affinity_has_a_row_of_its_own_and_counts_among_all(self) -> None:
        rounds = [*in_turn("Basic", 3.0), *in_turn("PodAffinity", 5.0), *in_turn("Mixed", 6.0)]
        assert throughput(rounds) == {
            "3.0 times the pods/s of kube-scheduler, 5,000 nodes": (
                "3.00 to 6.00",
                "3 of 3 reached",
            ),
            "6.0 times the pods/s of kube-scheduler, 5,000 nodes, affinity and spreading": (
                "5.00 to 6.00",
                "1 of 2 reached; missed: PodAffinity (5.00)",
            ),
        }

    def test_claims_are_named(self) -> None:
        assert list(throughput(in_turn("ResourceClaim", 4.0, 500))) == [
            "3.0 times the pods/s of kube-scheduler, 500 nodes, pods with claims"
        ]

    def test_a_workload_without_a_goal_does_not_count(self) -> None:
        assert throughput(in_turn("Startup", 9.0)) == {}

    def test_another_number_of_pods_is_told_apart(self) -> None:
        few = [a_round(pods=50, pods_per_s=1.0), a_round(pods=50, contender=PEER)]
        rows = throughput([*in_turn("Basic", 3.5), *few])
        assert list(rows.values()) == [
            ("0.00 to 3.50", "1 of 2 reached; missed: Basic of 50 pods (0.00)")
        ]


@pytest.mark.parametrize(
    ("peer", "ratio", "expected"),
    [
        pytest.param("bind-only", 0.80, ("800 against 1000 (0.80)", "reached"), id="binding"),
        pytest.param("bind-only", 0.7999, ("800 against 1000 (0.79)", "missed"), id="nearly"),
        pytest.param("bind-and-events", 0.92, ("920 against 1000 (0.92)", "reached"), id="Events"),
        pytest.param("bind-and-events", 0.91, ("910 against 1000 (0.91)", "missed"), id="fewer"),
    ],
)
def test_the_share_of_binding_alone(peer: str, ratio: float, expected: tuple[str, str]) -> None:
    rows = table(Results(rounds=in_turn("Basic", ratio, peer=peer)))
    assert [row for target, row in rows.items() if peer in target] == [expected]


@pytest.mark.parametrize(
    ("used_s", "expected"),
    [(0.35, ("0.35 s", "reached")), (0.3501, ("0.36 s", "missed"))],
    ids=["reached", "nearly"],
)
def test_own_cpu(used_s: float, expected: tuple[str, str]) -> None:
    rows = table(Results(rounds=[a_round(cpu_s_per_1000_pods=used_s)]))
    assert rows == {
        "at most 0.35 s of CPU for 1 000 pods with the start, Basic, 5,000 nodes": expected
    }


def test_the_cpu_of_the_servers_has_a_row_for_each_size() -> None:
    rounds = [
        a_round(
            nodes=nodes,
            pods=BY_NAME["Basic"].counts(nodes)[1],
            contender=name,
            server_cpu_s_per_1000_pods=used_s,
        )
        for nodes, name, used_s in (
            (500, "berth", 1.5),
            (500, PEER, 2.0),
            (5000, "berth", 0.9),
            (5000, PEER, 2.0),
        )
    ]
    rows = [row for target, row in table(Results(rounds=rounds)).items() if "servers" in target]
    assert rows == [
        ("1.50 s against 2.00 s (0.75)", "missed"),
        ("0.90 s against 2.00 s (0.45)", "reached"),
    ]


class TestLatency:
    P99 = "p99 from creation to binding at most 1/15 of kube-scheduler's, 200 pods/s, 5,000 nodes"
    P50 = "p50 from creation to binding at most 1/5 of kube-scheduler's, 100 pods/s, 5,000 nodes"

    @pytest.mark.parametrize(
        ("theirs_ms", "expected"),
        [
            (150.0, ("10.0 ms against 150.0 ms (1/15.00)", "reached")),
            (149.99, ("10.0 ms against 150.0 ms (1/14.99)", "missed")),
        ],
        ids=["reached", "nearly"],
    )
    def test_p99_counts_at_200_pods_a_second(
        self, theirs_ms: float, expected: tuple[str, str]
    ) -> None:
        rounds = [a_latency(), a_latency(contender=PEER, p99_ms=theirs_ms)]
        assert table(Results(latencies=rounds)) == {self.P99: expected}

    def test_p50_counts_at_100_pods_a_second(self) -> None:
        rounds = [a_latency(rate=100), a_latency(rate=100, contender=PEER, p50_ms=24.0)]
        expected = ("5.0 ms against 24.0 ms (1/4.80)", "missed")
        assert table(Results(latencies=rounds)) == {self.P50: expected}

    def test_pods_that_are_not_bound_miss_it(self) -> None:
        rounds = [a_latency(bound=5998), a_latency(contender=PEER, p99_ms=900.0)]
        measured, verdict = table(Results(latencies=rounds))[self.P99]
        assert measured.endswith("(1/90.00), 2 pods not bound")
        assert verdict == "missed"


class TestStarts:
    def test_each_number_of_running_pods_has_a_row(self) -> None:
        starts = [
            a_start(running=running, contender=name, first_s=first_s)
            for running, name, first_s in (
                (1000, "berth", 0.66),
                (1000, PEER, 0.45),
                (20_000, "berth", 1.2),
                (20_000, PEER, 1.2),
            )
        ]
        rows = table(Results(starts=starts))
        assert [row for target, row in rows.items() if "first binding" in target] == [
            ("0.66 s against 0.45 s (1.47)", "missed"),
            ("1.20 s against 1.20 s (1.00)", "reached"),
        ]

    @pytest.mark.parametrize(
        ("ours_mib", "expected"),
        [
            (102.0, ("2.0 KiB against 2.0 KiB (1.00)", "reached")),
            (102.001, ("2.0 KiB against 2.0 KiB (1.01)", "missed")),
        ],
        ids=["reached", "nearly"],
    )
    def test_memory_of_a_pod(self, ours_mib: float, expected: tuple[str, str]) -> None:
        starts = [
            a_start(running=running, contender=name, rss_mib=rss_mib)
            for running, name, rss_mib in (
                (1000, "berth", 100.0),
                (2024, "berth", ours_mib),
                (1000, PEER, 300.0),
                (2024, PEER, 302.0),
            )
        ]
        rows = table(Results(starts=starts))
        assert [row for target, row in rows.items() if "memory" in target] == [expected]


def test_kinds_are_compared_by_nodes() -> None:
    points = [
        a_variety(nodes=nodes, kinds=kinds, cycle_us=us)
        for nodes, kinds, us in (
            (500, 1, 100.0),
            (500, 1000, 200.0),
            (15_000, 1, 100.0),
            (15_000, 1000, 260.0),
            (15_000, 40, 900.0),
            (50_000, 1000, 900.0),
        )
    ]
    assert table(Results(variety=points)) == {
        "1,000 kinds of requests in turn take at most 2.0 times the CPU time of one": (
            "2.00 to 2.60",
            "1 of 2 reached; missed: 15,000 nodes (2.60)",
        )
    }


class TestOwnStalls:
    TARGET = (
        "no stall of the event loop of more than 20 ms by its own work, 5,000 nodes, 300 pods/s"
    )

    def test_one_in_any_round_misses_its_part(self) -> None:
        parts = [
            a_tail_part(),
            a_tail_part(part="flood", stalls={"system": 3}, longest_own_stall_ms=18.0),
            a_tail_part(part="relist", stalls={"interpreter": 1}, longest_own_stall_ms=22.04),
            a_tail_part(part="relist", number=2),
        ]
        assert table(Results(tails=parts)) == {
            self.TARGET: ("longest 22.1 ms", "2 of 3 reached; missed: relist (22.1 ms)")
        }

    def test_other_checkouts_do_not_count(self) -> None:
        parts = [a_tail_part(), a_tail_part(contender="berth@old", stalls={"loop": 9})]
        assert table(Results(tails=parts)) == {self.TARGET: ("longest 0.0 ms", "1 of 1 reached")}


@pytest.mark.parametrize(
    ("problems", "verdict"),
    [
        pytest.param(0, "2 of 2 reached", id="none"),
        pytest.param(
            3,
            "1 of 2 reached; missed: 50,000 nodes, 500,000 pods, 2 pools (problems: 3)",
            id="some",
        ),
    ],
)
def test_large_clusters_are_without_problems(problems: int, verdict: str) -> None:
    more = a_large_run(nodes=50_000, pods=500_000, pools=2, problems=problems)
    rows = table(Results(large=[a_large_run(), more]))
    assert list(rows.values()) == [("up to 50,000 nodes and 500,000 running pods", verdict)]

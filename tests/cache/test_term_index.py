from __future__ import annotations

import pytest

from cache import pod_counts, pod_table, term_groups
from cache.affinity_terms import TermKind
from cache.label_selectors import EVERYTHING, NOTHING, selector_of_labels
from cache.pod_counts import PodCounts
from cache.pod_table import PodQuery, PodTable
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from tests.builders import PodBuilder, node, pod

APP_A = PodQuery(None, selector_of_labels({"app": "a"}))


class Cluster:
    """A cache and the snapshot that follows it."""

    def __init__(self, *node_names: str) -> None:
        self.cache = SchedulerCache()
        self.snapshot = Snapshot()
        for name in node_names:
            self.cache.add_node(node(name).build())

    def put(self, *pods: PodBuilder) -> None:
        for each in pods:
            self.cache.add_pod(each.info())

    def counts(self, query: PodQuery = APP_A) -> dict[str, int]:
        self.cache.update_snapshot(self.snapshot)
        counts = self.snapshot.columns.terms.count(query)
        return dict(zip(self.snapshot.names(), counts.tolist(), strict=True))

    def num_terms(self) -> int:
        self.cache.update_snapshot(self.snapshot)
        return self.snapshot.columns.terms.num_terms()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(APP_A, 2, id="labels"),
        pytest.param(PodQuery(frozenset({"default"}), EVERYTHING), 2, id="namespace"),
        pytest.param(PodQuery(frozenset({"default", "other"}), EVERYTHING), 3, id="namespaces"),
        pytest.param(PodQuery(frozenset(), EVERYTHING), 0, id="no namespace"),
        pytest.param(PodQuery(frozenset({"unheard-of"}), EVERYTHING), 0, id="unknown namespace"),
        pytest.param(PodQuery(None, NOTHING), 0, id="nothing"),
        pytest.param(PodQuery(None, EVERYTHING), 3, id="everything"),
        pytest.param(PodQuery(None, EVERYTHING, with_terminating=False), 2, id="living"),
    ],
)
def test_a_query_counts_what_it_says(query: PodQuery, expected: int) -> None:
    cluster = Cluster("n")
    cluster.put(
        pod("one").label("app", "a").on("n"),
        pod("two").label("app", "b").on("n").terminating(),
        pod("three", namespace="other").label("app", "a").on("n"),
    )
    assert cluster.counts(query) == {"n": expected}


def test_counts_follow_pods_that_come_and_go() -> None:
    cluster = Cluster("n", "m")
    assert cluster.counts() == {"m": 0, "n": 0}
    first, second = pod("one").label("app", "a").on("n"), pod("two").label("app", "a").on("m")
    cluster.put(first, second)
    assert cluster.counts() == {"m": 1, "n": 1}
    cluster.cache.remove_pod(first.info())
    assert cluster.counts() == {"m": 1, "n": 0}


def test_counts_follow_a_relabelled_pod() -> None:
    cluster = Cluster("n")
    cluster.put(pod("one").label("app", "a").on("n"))
    assert cluster.counts() == {"n": 1}
    cluster.cache.update_pod(pod("one").label("app", "b").on("n").info())
    assert cluster.counts() == {"n": 0}


def test_counts_follow_a_pod_whose_deletion_was_asked_for() -> None:
    living = PodQuery(None, selector_of_labels({"app": "a"}), with_terminating=False)
    cluster = Cluster("n")
    cluster.put(pod("one").label("app", "a").on("n"))
    assert cluster.counts(living) == {"n": 1}
    cluster.cache.update_pod(pod("one").label("app", "a").on("n").terminating().info())
    assert (cluster.counts(living), cluster.counts()) == ({"n": 0}, {"n": 1})


def test_counts_follow_a_row_that_another_node_takes() -> None:
    cluster = Cluster("n", "m", "o")
    cluster.put(pod("one").label("app", "a").on("o"), pod("two").label("app", "a").on("m"))
    cluster.counts()
    cluster.cache.remove_pod(pod("two").on("m").info())
    cluster.cache.remove_node("m")
    assert cluster.counts() == {"n": 0, "o": 1}


def test_counts_cannot_be_written_to() -> None:
    cluster = Cluster("n")
    cluster.counts()
    assert not cluster.snapshot.columns.terms.count(APP_A).flags.writeable


def test_a_term_is_kept_once_for_all_pods_that_have_it_and_goes_with_the_last() -> None:
    cluster = Cluster("n", "m")
    pods = [pod(f"p{i}").pod_anti_affinity("zone", app="a").on("nm"[i % 2]) for i in range(6)]
    cluster.put(*pods)
    assert cluster.num_terms() == 1
    for each in pods:
        cluster.cache.remove_pod(each.info())
    assert cluster.num_terms() == 0


def test_terms_that_demand_other_labels_are_not_looked_at() -> None:
    cluster = Cluster("n")
    cluster.put(*(pod(f"p{i}").pod_anti_affinity("zone", app=f"a{i}").on("n") for i in range(9)))
    cluster.counts()
    index = cluster.snapshot.columns.terms
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    (found,) = index.terms_meaning(kind, "default", {"app": "a3", "tier": "b"}, {})
    assert (found.term.selector, found.rows) == (selector_of_labels({"app": "a3"}), {0: 1})
    assert not index.terms_meaning(TermKind.PREFERRED_AFFINITY, "default", {"app": "a3"}, {})


# --- what is bounded --------------------------------------------------------------------------


def test_queries_left_unused_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_counts, "MAX_QUERIES", 3)
    counts = PodCounts()
    for value in "abcdef":
        counts.count(PodQuery(None, selector_of_labels({"app": value})), 1)
    assert len(counts) == 3


def test_only_labels_that_selectors_look_at_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_table, "MAX_KEYS", 2)
    table = PodTable()
    for index in range(5):
        table.add(pod(f"p{index}").label("index", str(index)).label("app", "a").info(), 0)
    assert table.keys == ()
    for key in ("app", "tier", "zone", "app"):
        table.count_by_row(PodQuery(None, selector_of_labels({key: "a"})), 1)
    assert table.keys == ("zone", "app")


def test_values_that_no_pod_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_table, "_FIRST_CAPACITY", 4)
    table = PodTable()
    query = PodQuery(None, selector_of_labels({"index": "last"}))
    for index in range(100):
        slot = table.add(pod("p").label("index", str(index)).info(), 0)
        table.count_by_row(query, 1)
        table.remove(slot)
        assert len(table._labels["index"].values) <= 7


def test_namespaces_that_have_no_pods_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_table, "_FIRST_CAPACITY", 4)
    table = PodTable()
    for index in range(100):
        slot = table.add(pod("p", namespace=f"ns-{index}").info(), 0)
        query = PodQuery(frozenset({f"ns-{index}"}), EVERYTHING)
        assert table.count_by_row(query, 1).tolist() == [1]
        table.remove(slot)
        assert len(table._namespaces.values) <= 7


def test_columns_of_terms_left_unused_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_groups, "MAX_DENSE", 1)
    cluster = Cluster("n")
    cluster.put(*(pod(f"p{i}").pod_anti_affinity("zone", app=f"a{i}").on("n") for i in range(3)))
    cluster.counts()
    index = cluster.snapshot.columns.terms
    groups = [
        index.terms_meaning(TermKind.REQUIRED_ANTI_AFFINITY, "default", {"app": f"a{i}"}, {})[0]
        for i in range(3)
    ]
    assert [index.column(group).tolist() for group in groups] == [[1], [1], [1]]
    assert [group.column is None for group in groups] == [True, True, False]

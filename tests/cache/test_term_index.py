from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cache import pod_counts, pod_table, pods_at_once, term_groups, term_table
from cache.affinity_terms import AffinityTerm, TermKind
from cache.label_selectors import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    IN,
    NOT_IN,
    NOTHING,
    Requirement,
    Selector,
    selector_of_labels,
)
from cache.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from cache.pod_counts import PodCounts
from cache.pod_info import PodInfo
from cache.pod_table import PodQuery, PodTable
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.term_group import AskedPod
from tests.builders import PodBuilder, node, pod

ZONE = "topology.kubernetes.io/zone"
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
        return len(self.snapshot.columns.terms._synced_groups()._groups)


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


def test_the_pods_that_run_before_the_first_question_are_taken_in_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster("n", "m", "empty")
    everywhere = [pod(f"p{i}").label("app", "ab"[i % 2]).on("nm"[i % 3 % 2]) for i in range(600)]
    cluster.put(*everywhere, pod("going").label("app", "a").on("m").terminating())
    with monkeypatch.context() as patched:
        patched.delattr(PodTable, "add")
        assert cluster.counts() == {"n": 200, "m": 101, "empty": 0}
    cluster.cache.remove_pod(everywhere[0].info())
    cluster.put(pod("late").label("app", "a").on("empty"))
    assert cluster.counts() == {"n": 199, "m": 101, "empty": 1}
    living = PodQuery(frozenset({"default"}), selector_of_labels({"app": "a"}), False)
    assert cluster.counts(living) == {"n": 199, "m": 100, "empty": 1}


def by_zone(cluster: Cluster) -> dict[str | None, int]:
    cluster.cache.update_snapshot(cluster.snapshot)
    column, ids = cluster.snapshot.columns.labels.get(ZONE)
    sums = cluster.snapshot.columns.terms.sum_by_label(APP_A, column, ids)
    return dict(zip(column.values, sums.tolist(), strict=True))


def zoned(**zones: str) -> Cluster:
    cluster = Cluster("nowhere")
    for name, zone in zones.items():
        cluster.cache.add_node(node(name).label(ZONE, zone).build())
    return cluster


def test_sums_by_a_label_follow_pods_and_nodes() -> None:
    cluster = zoned(n="a", m="b", o="b")
    cluster.put(*(pod(f"p-{on}").label("app", "a").on(on) for on in ("n", "m", "nowhere")))
    assert by_zone(cluster) == {None: 0, "a": 1, "b": 1}
    cluster.put(pod("q").label("app", "a").on("o"), pod("other").label("app", "b").on("o"))
    assert by_zone(cluster) == {None: 0, "a": 1, "b": 2}
    cluster.cache.update_node(node("m").label(ZONE, "a").build())
    assert by_zone(cluster) == {None: 0, "a": 2, "b": 1}
    cluster.cache.remove_pod(pod("p-n").on("n").info())
    cluster.cache.remove_node("n")
    assert by_zone(cluster) == {None: 0, "a": 1, "b": 1}


def test_rows_are_passed_over_once_for_pods_that_come_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = zoned(n="a", m="b")
    cluster.put(pod("first").label("app", "a").on("n"))
    by_zone(cluster)
    monkeypatch.delattr(pod_counts, "sum_by_value")
    for number in range(3 * pod_counts._FEW):
        cluster.put(pod(f"p{number}").label("app", "a").on("m"))
        assert by_zone(cluster) == {None: 0, "a": 1, "b": number + 1}


def test_a_term_is_kept_once_for_all_pods_that_have_it_and_goes_with_the_last() -> None:
    cluster = Cluster("n", "m")
    pods = [pod(f"p{i}").pod_anti_affinity("zone", app="a").on("nm"[i % 2]) for i in range(6)]
    cluster.put(*pods)
    assert cluster.num_terms() == 1
    for each in pods:
        cluster.cache.remove_pod(each.info())
    assert cluster.num_terms() == 0


def test_whether_there_are_terms_at_all_follows_the_pods_that_have_them() -> None:
    cluster = Cluster("n")
    with_term = pod("p").prefers_pods(5, "zone", app="a").on("n").info()
    found = []
    cluster.put(pod("plain").on("n"))
    for change in (lambda _: None, cluster.cache.add_pod, cluster.cache.remove_pod):
        change(with_term)
        cluster.cache.update_snapshot(cluster.snapshot)
        found.append(cluster.snapshot.columns.terms.has_terms)
    assert found == [False, True, False]


def sums(
    cluster: Cluster, kind: TermKind, labels: dict[str, str], namespace: str = "default"
) -> dict[str, int]:
    """How often the terms of each topology mean a pod, over all nodes."""
    cluster.cache.update_snapshot(cluster.snapshot)
    columns = cluster.snapshot.columns
    found: dict[str, int] = {}
    for each in columns.terms.term_sums(kind, AskedPod(namespace, labels, {}), columns.label_keys):
        found[each.topology_key] = found.get(each.topology_key, 0) + int(each.counts.sum())
    return {key: total for key, total in found.items() if total}


@pytest.mark.parametrize("operator", [IN, NOT_IN])
def test_pods_are_taken_once_however_often_a_selector_names_their_label(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster("n")
    cluster.put(*(pod(f"p{i}").label("app", "web").on("n") for i in range(50)))
    cluster.put(pod("other").label("app", "db").on("n"))
    named = (Requirement("app", operator, frozenset({"web", f"v{i}"})) for i in range(2000))
    joined: list[int] = []
    join = pods_at_once._joined

    def noting(parts: list[Any]) -> Any:
        joined.append(sum(map(len, parts)))
        return join(parts)

    monkeypatch.setattr(pods_at_once, "_joined", noting)
    query = PodQuery(None, Selector(named))
    assert cluster.counts(query) == {"n": 50 if operator == IN else 1}
    assert joined == [50]


def test_terms_that_demand_other_labels_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("n")
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(*(pod(f"p{i}").pod_anti_affinity(ZONE, app=f"a{i}").on("n") for i in range(99)))
    cluster.counts()
    evaluated = counted(monkeypatch)
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    assert sums(cluster, kind, {"app": "a3", "tier": "b"}) == {ZONE: 1}
    assert sums(cluster, TermKind.PREFERRED_AFFINITY, {"app": "a3"}) == {}
    assert evaluated == [("app", "a3")]


def avoiding(name: str, count: int, *, key: str = "app", topology: str = ZONE) -> PodBuilder:
    """A pod that avoids all pods but those with one of a thousand labels."""
    terms = tuple(
        WeightedPodAffinityTerm(
            1,
            PodAffinityTerm(
                topology,
                LabelSelector(
                    match_expressions=(LabelSelectorRequirement(key, "NotIn", (f"v{i}",)),)
                ),
                namespace_selector=LabelSelector(),
            ),
        )
        for i in range(count)
    )
    built = pod(name).build()
    affinity = Affinity(
        pod_anti_affinity=PodAffinity(preferred_during_scheduling_ignored_during_execution=terms)
    )
    return PodBuilder(replace(built, spec=replace(built.spec, affinity=affinity)))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Selectors' labels as they are evaluated, one by one."""
    evaluated: list[tuple[str, str]] = []
    matches = AffinityTerm.matches

    def noting(term: AffinityTerm, *asked: Any) -> bool:
        found = term.selector.requirements[0]
        evaluated.append((found.key, min(found.values)))
        return matches(term, *asked)

    monkeypatch.setattr(AffinityTerm, "matches", noting)
    return evaluated


def test_a_thousand_terms_are_not_held_against_a_pod_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(avoiding("hostile", 1000).on("n"))
    evaluated = counted(monkeypatch)
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    assert sums(cluster, kind, {"app": "v7", "job-name": "j"}) == {ZONE: 999}
    for serial in range(20):
        labels = {"app": f"fresh-{serial}", "job-name": f"job-{serial}"}
        assert sums(cluster, kind, labels, f"ns-{serial}") == {ZONE: 1000}
    assert not evaluated
    cluster.put(avoiding("other", 3).on("n"))
    assert sums(cluster, kind, {"app": "fresh"}) == {ZONE: 1003}
    assert len(evaluated) == 3


def test_pods_that_terms_cannot_tell_apart_share_one_sum() -> None:
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(avoiding("hostile", 100).on("n"))
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    remembered = cluster.snapshot.columns.terms._groups._remembered
    for serial in range(50):
        sums(cluster, kind, {"app": f"fresh-{serial}"}, f"ns-{serial}")
        sums(cluster, kind, {"job-name": f"job-{serial}"})
    assert len(remembered._sums) == 2
    for serial in range(50):
        sums(cluster, kind, {"app": f"v{serial}"})
    assert len(remembered._sums) == 52


def test_remembered_sums_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_table, "MAX_REMEMBERED_BYTES", 20_000)
    cluster = Cluster()
    for serial in range(100):
        cluster.cache.add_node(node(f"n{serial}").zone("z").build())
    cluster.put(avoiding("hostile", 100).on("n0"))
    remembered = cluster.snapshot.columns.terms._groups._remembered
    for serial in range(50):
        labels = {"app": f"v{serial}"}
        assert sums(cluster, TermKind.PREFERRED_ANTI_AFFINITY, labels) == {ZONE: 99}
        assert remembered.num_bytes <= 20_000
    assert len(remembered._sums) == 6


def test_sums_that_nobody_can_ask_for_any_more_are_not_kept() -> None:
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(avoiding("hostile", 100).on("n"))
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    remembered = cluster.snapshot.columns.terms._groups._remembered
    for serial in range(40):
        # Terms with values of their own: pods are told apart otherwise from then on.
        fresh = avoiding(f"other-{serial}", 2, key=f"key-{serial}").on("n")
        cluster.put(fresh)
        sums(cluster, kind, {"app": "v7"})
        assert len(remembered._sums) == 1
        cluster.cache.remove_pod(fresh.info())
        sums(cluster, kind, {"app": "v7"})
        assert len(remembered._sums) == 1


def test_sums_that_have_fallen_behind_are_not_kept() -> None:
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(avoiding("hostile", 100).on("n"))
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    remembered = cluster.snapshot.columns.terms._groups._remembered
    for serial in range(50):
        sums(cluster, kind, {"app": f"v{serial}"})
    for serial in range(4):
        cluster.put(avoiding(f"more-{serial}", 100).on("n"))
        sums(cluster, kind, {"app": "v7"})
    assert len(remembered._sums) == 1


def test_nothing_of_a_pod_with_many_terms_is_kept_when_it_has_gone() -> None:
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    hostile = avoiding("hostile", 100).on("n")
    cluster.put(hostile)
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    assert sums(cluster, kind, {}) == {ZONE: 100}
    cluster.cache.remove_pod(hostile.info())
    assert sums(cluster, kind, {}) == {}
    groups = cluster.snapshot.columns.terms._groups
    assert (len(groups._groups), groups._drawers[kind]) == (0, {})
    assert (len(groups._remembered._sums), groups._remembered.num_bytes) == (0, 0)


def test_a_topology_that_no_node_has_is_left_out_until_one_has_it() -> None:
    cluster = Cluster("n", "m")
    cluster.put(avoiding("hostile", 100, topology="rack").on("n"))
    kind = TermKind.PREFERRED_ANTI_AFFINITY
    assert sums(cluster, kind, {}) == {}
    cluster.cache.update_node(node("n").label("rack", "r").build())
    assert sums(cluster, kind, {}) == {"rack": 100}


# --- what is bounded --------------------------------------------------------------------------


def num_values(table: PodTable) -> int:
    """How many values the columns know, those of pods that are gone included."""
    return sum(len(column.values) for column in (table._namespaces, *table._labels.values()))


def by_uid(builder: PodBuilder) -> dict[str, PodInfo]:
    info = builder.info()
    return {info.uid: info}


def test_queries_left_unused_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_counts, "MAX_BYTES", 40_000)
    counts = PodCounts()
    counts.set_row(0, by_uid(pod("p").label("app", "a")))
    for index in range(100):
        counts.count(PodQuery(None, selector_of_labels({"app": f"{index}"})), 1)
    assert 0 < len(counts._columns) < 100
    assert counts._columns.bytes <= 40_000


def test_one_who_asks_for_thousands_leaves_others_what_they_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_table, "MAX_BYTES", 100_000)
    table = PodTable()
    many = pod("many").info()
    keys = {f"k{index}": "v" for index in range(200)}
    many = PodInfo(replace(many.pod, metadata=replace(many.pod.metadata, labels=keys)))
    table.add(many, 0)
    table.add(pod("p").label("app", "a").info(), 0)
    queries = [PodQuery(None, selector_of_labels({key: "v"})) for key in keys]
    for query in (*[APP_A] * 5, *queries, *queries, *queries):
        assert table.count_by_row(query, 1).tolist() == [1]
    assert "app" in table._labels
    assert table._labels.bytes <= 100_000


def test_a_label_key_that_no_pod_has_takes_no_column() -> None:
    counts = PodCounts()
    counts.set_row(0, by_uid(pod("p").label("app", "a")))
    for index in range(1000):
        absent = Requirement(f"absent-{index}", EXISTS)
        assert counts.count(PodQuery(None, Selector([absent])), 1).tolist() == [0]
        lacking = Requirement(f"absent-{index}", DOES_NOT_EXIST)
        query = PodQuery(None, Selector([lacking, Requirement("app", EXISTS)]))
        assert counts.count(query, 1).tolist() == [1]
    assert counts._columns.bytes > 0
    counts.set_row(0, by_uid(pod("q").label("absent-7")))
    query = PodQuery(None, Selector([Requirement("absent-7", EXISTS)]))
    assert counts.count(query, 1).tolist() == [1]
    assert counts.count(PodQuery(None, Selector([Requirement("app", EXISTS)])), 1).tolist() == [0]


def test_only_labels_that_selectors_look_at_are_kept() -> None:
    table = PodTable()
    for index in range(5):
        table.add(pod(f"p{index}").label("index", str(index)).label("app", "a").info(), 0)
    assert table.num_filled == 0
    for key in ("app", "tier", "zone", "app"):
        table.count_by_row(PodQuery(None, selector_of_labels({key: "a"})), 1)
    assert list(table._labels) == ["app"]
    assert table.num_filled == 1


@pytest.mark.parametrize("label", ["index", "other"])
def test_values_of_pods_that_are_gone_are_forgotten_though_nobody_asks(label: str) -> None:
    table = PodTable()
    for_ever = pod("stays").label("index", "stays").info()
    table.add(for_ever, 0)
    table.count_by_row(PodQuery(None, selector_of_labels({"index": "stays"})), 1)
    for index in range(2000):
        guest = pod("p", namespace=f"ns-{index}").label(label, str(index))
        table.remove(table.add(guest.info(), 0))
    assert num_values(table) < 1000
    query = PodQuery(frozenset({"default"}), selector_of_labels({"index": "stays"}))
    assert table.count_by_row(query, 1).tolist() == [1]


def test_values_that_no_pod_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_table, "_SLACK", 4)
    table = PodTable()
    query = PodQuery(None, selector_of_labels({"index": "last"}))
    for index in range(100):
        slot = table.add(pod("p").label("index", str(index)).info(), 0)
        table.count_by_row(query, 1)
        table.remove(slot)
        assert num_values(table) <= 14


def test_namespaces_that_have_no_pods_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_table, "_SLACK", 4)
    table = PodTable()
    for index in range(100):
        slot = table.add(pod("p", namespace=f"ns-{index}").info(), 0)
        query = PodQuery(frozenset({f"ns-{index}"}), EVERYTHING)
        assert table.count_by_row(query, 1).tolist() == [1]
        table.remove(slot)
        assert len(table._namespaces.values) <= 7


def test_columns_of_terms_left_unused_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_groups, "MAX_DENSE_BYTES", 8)
    cluster = Cluster()
    cluster.cache.add_node(node("n").zone("z").build())
    cluster.put(*(pod(f"p{i}").pod_anti_affinity(ZONE, app=f"a{i}").on("n") for i in range(3)))
    kind = TermKind.REQUIRED_ANTI_AFFINITY
    for index in range(3):
        assert sums(cluster, kind, {"app": f"a{index}"}) == {ZONE: 1}
    groups = cluster.snapshot.columns.terms._groups._groups.values()
    assert [group.column is None for group in groups] == [True, True, False]

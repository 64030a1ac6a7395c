"""I4: after any history the term index answers as one that is made anew."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cache import (
    pod_counts,
    pod_table,
    pods_at_once,
    term_groups,
    term_index,
    term_scopes,
    term_table,
)
from cache.affinity_terms import TermKind, pod_terms
from cache.columns import Columns, NodesView
from cache.label_selectors import compile_label_selector
from cache.namespaces import Namespaces
from cache.objects import Namespace, Node, ObjectMeta, Pod
from cache.pod_info import PodInfo
from cache.pod_table import PodQuery
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.term_group import AskedPod
from tests.plugins import related_pods
from tests.plugins.related_pods import NAMESPACES, NODE_NAMES

QUERIES = st.tuples(
    st.one_of(st.none(), st.frozensets(st.sampled_from(NAMESPACES))),
    st.one_of(st.none(), related_pods.label_selectors()).map(compile_label_selector),
    st.booleans(),
).map(lambda fields: PodQuery(*fields))


def grouped_terms(columns: Columns) -> dict[tuple[object, ...], dict[str, int]]:
    """How many pods of each node have each distinct term."""
    return {
        key: {columns.node_infos[row].name: count for row, count in group.rows.items()}
        for key, group in columns.terms._synced_groups()._groups.items()
    }


class TermIndexHistory(RuleBasedStateMachine):
    """A cache that is told of changes, one snapshot that follows it, and questions now and then.

    Queries are asked again and again, so that columns lag behind by different numbers of changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache = SchedulerCache()
        self.snapshot = Snapshot()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.queries: list[PodQuery] = []
        self.summed: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self.namespaces = Namespaces()
        self.serial = 0

    @rule(name=st.sampled_from(NODE_NAMES), data=st.data(), again=st.booleans())
    def node_added_or_relabelled(self, name, data, again):
        node = data.draw(related_pods.nodes(name=name))
        if again:
            self.serial += 1
            meta = msgspec.structs.replace(node.metadata, uid=f"{name}-{self.serial}")
            node = msgspec.structs.replace(node, metadata=meta)
        self.nodes[name] = node
        self.cache.add_node(node)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def node_deleted(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.cache.remove_node(name)

    @rule(node_name=st.sampled_from(NODE_NAMES), data=st.data())
    def pod_added(self, node_name, data):
        self.serial += 1
        pod = data.draw(related_pods.pods(name=f"pod-{self.serial}", node_name=node_name))
        self.pods[pod.metadata.uid] = pod
        self.cache.add_pod(PodInfo(pod))

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), moved_to=st.none() | st.sampled_from(NODE_NAMES))
    def pod_changed(self, data, moved_to):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        old = self.pods[uid]
        node_name = moved_to or old.spec.node_name
        shape = data.draw(related_pods.pods(name=old.metadata.name, node_name=node_name))
        meta = msgspec.structs.replace(shape.metadata, namespace=old.metadata.namespace)
        self.pods[uid] = msgspec.structs.replace(shape, metadata=meta)
        self.cache.add_pod(PodInfo(self.pods[uid]))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def pod_deleted(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.cache.remove_pod(PodInfo(self.pods.pop(uid)))

    @rule(name=st.sampled_from(NAMESPACES), labels=related_pods.labels())
    def namespace_relabelled(self, name, labels):
        self.namespaces.changed(None, Namespace(ObjectMeta(name=name, labels=labels)))

    @rule(query=QUERIES)
    def selector_comes_into_use(self, query):
        self.queries.append(query)

    @rule()
    def snapshot_updated(self):
        self.cache.update_snapshot(self.snapshot)

    @precondition(lambda self: self.queries)
    @rule(data=st.data())
    def pods_are_counted(self, data):
        query = data.draw(st.sampled_from(self.queries))
        expected = [
            sum(query.matches(info.pod) for info in node.pods.values())
            for node in self.snapshot.columns.node_infos
        ]
        counts = self.snapshot.columns.terms.count(query)
        assert counts.tolist() == expected
        assert not counts.flags.writeable

    @precondition(lambda self: self.queries)
    @rule(data=st.data(), key=st.sampled_from(related_pods.TOPOLOGY_KEYS))
    def pods_are_summed_by_label(self, data, key):
        query = data.draw(st.sampled_from(self.queries))
        expected: dict[str, int] = {}
        for node in self.snapshot.columns.node_infos:
            if key in node.labels:
                found = sum(query.matches(info.pod) for info in node.pods.values())
                expected[node.labels[key]] = expected.get(node.labels[key], 0) + found
        column, ids = self.snapshot.columns.labels.get(key)
        sums = self.snapshot.columns.terms.sum_by_label(query, column, ids)
        in_use = {column.values[each] for each in np.flatnonzero(column.in_use)}
        assert in_use == set(expected)
        # Values that no node has any more count nothing.
        shown = dict(zip(column.values, sums.tolist(), strict=True))
        assert {value: count for value, count in shown.items() if value in expected} == expected
        assert sum(shown.values()) == sum(expected.values())
        assert not sums.flags.writeable
        self.summed.append((sums, sums.copy()))

    @invariant()
    def sums_that_were_given_stay_as_they_were(self):
        assert all((sums == then).all() for sums, then in self.summed)

    @precondition(lambda self: self.queries)
    @rule(data=st.data())
    def pods_are_weighed(self, data):
        wanted = data.draw(
            st.dictionaries(st.sampled_from(self.queries), st.integers(-100, 100), max_size=6)
        )
        expected = [
            [
                sum(
                    1 if weight is None else weight
                    for query, weight in weights.items()
                    for info in node.pods.values()
                    if query.matches(info.pod)
                )
                for node in self.snapshot.columns.node_infos
            ]
            for weights in (dict.fromkeys(wanted), wanted)
        ]
        found = self.snapshot.columns.terms.weigh(wanted, lambda: None)
        assert [each.tolist() for each in found] == expected

    @rule(
        kind=st.sampled_from(TermKind),
        namespace=st.sampled_from(NAMESPACES),
        labels=related_pods.labels(),
        some=st.frozensets(st.sampled_from(related_pods.TOPOLOGY_KEYS)),
    )
    def terms_are_looked_up(self, kind, namespace, labels, some):
        columns = self.snapshot.columns
        asked = AskedPod(namespace, labels, self.namespaces.labels_of(namespace))
        for label_keys in (columns.label_keys, dict.fromkeys(some, 1)):
            expected: dict[str, list[list[int]]] = {}
            for row, node in enumerate(columns.node_infos):
                for pod in node.pods.values():
                    for each, weight, term in pod_terms(pod.pod):
                        if each != kind or term.topology_key not in label_keys:
                            continue
                        if term.matches(namespace, labels, asked.namespace_labels):
                            zeros = [[0] * len(columns), [0] * len(columns)]
                            both = expected.setdefault(term.topology_key, zeros)
                            both[0][row] += 1
                            both[1][row] += weight
            found: dict[str, list[npt.NDArray[np.int64]]] = {}
            for summed in columns.terms.term_sums(kind, asked, label_keys):
                parts = found.setdefault(summed.topology_key, [])
                parts.append(np.array([summed.counts, summed.weighted]))
                assert not summed.counts.flags.writeable
                assert not summed.weighted.flags.writeable
            sums = {key: sum(parts) for key, parts in found.items()}
            shown = {key: both.tolist() for key, both in sums.items() if both[0].any()}
            if kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY):
                shown = {key: both[:1] for key, both in shown.items()}
                expected = {key: both[:1] for key, both in expected.items()}
            assert shown == expected

    @invariant()
    def grouped_terms_equal_those_of_an_index_made_anew(self):
        columns = self.snapshot.columns
        assert grouped_terms(columns) == grouped_terms(NodesView.of(columns.node_infos).columns)


class TabledTermIndexHistory(TermIndexHistory):
    """The same with terms in tables, be they few or many."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(term_groups, "FEW", 0)
        self.patch.setattr(term_index, "FEW_QUERIES", 0)

    def teardown(self) -> None:
        self.patch.undo()


class CrampedTermIndexHistory(TermIndexHistory):
    """The same with hardly any room, so that everything that can be dropped is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(pod_counts, "MAX_BYTES", 5000)
        self.patch.setattr(pod_counts, "MAX_BYTES_OF_SUMS", 2000)
        self.patch.setattr(pod_counts, "MAX_JOURNAL", 3)
        self.patch.setattr(pod_table, "MAX_BYTES", 1000)
        self.patch.setattr(pod_table, "_FIRST_CAPACITY", 2)
        self.patch.setattr(term_groups, "MAX_DENSE_BYTES", 1)
        self.patch.setattr(term_groups, "FEW", 1)
        self.patch.setattr(term_index, "FEW_QUERIES", 1)
        self.patch.setattr(term_index, "FEW_REQUIREMENTS", 1)
        self.patch.setattr(pods_at_once, "_FLUSH_AT", 4)
        self.patch.setattr(pods_at_once, "_MAX_MASKS", 1)
        self.patch.setattr(term_table, "MAX_JOURNAL", 3)
        self.patch.setattr(term_table, "MAX_REMEMBERED_BYTES", 3000)
        self.patch.setattr(term_table, "_FIRST_CAPACITY", 1)
        self.patch.setattr(term_scopes, "MAX_REMEMBERED_BYTES", 1000)

    def teardown(self) -> None:
        self.patch.undo()


HISTORY = settings(max_examples=40, stateful_step_count=40, deadline=None)
TermIndexHistory.TestCase.settings = HISTORY
CrampedTermIndexHistory.TestCase.settings = HISTORY
TabledTermIndexHistory.TestCase.settings = HISTORY
TestTabledTermIndexHistory = TabledTermIndexHistory.TestCase
TestTermIndexHistory = TermIndexHistory.TestCase
TestCrampedTermIndexHistory = CrampedTermIndexHistory.TestCase

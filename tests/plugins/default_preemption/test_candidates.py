"""The search for candidates against a slow one that forgets everything between two questions."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.objects import LabelSelector
from cache.pod_info import PodInfo
from cache.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    WorkloadMeta,
)
from plugins.default_preemption.candidates import MAX_FILTER_RUNS, CandidateSearch
from plugins.framework.status import SUCCESS, Code, Status
from plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage
from tests.storage_builders import claim, tell, volume

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from plugins.framework.victims import Victims

HOSTNAME, ZONE = "kubernetes.io/hostname", "zone"


@dataclass(frozen=True)
class Case:
    """A crowded cluster, and a pod that may preempt in it."""

    nodes: tuple[NodeBuilder, ...]
    pods: tuple[PodBuilder, ...]
    budgets: tuple[PodDisruptionBudget, ...]
    asked: PodBuilder

    def stage(self, *, without: frozenset[str] = frozenset()) -> Stage:
        left = (each for each in self.pods if each.info().uid not in without)
        return Stage(*self.nodes, *left, *self.budgets)


# --- what is drawn ----------------------------------------------------------------------------

_APPS = ["a", "b"]


@st.composite
def _nodes(draw: st.DrawFn, index: int) -> NodeBuilder:
    name = f"node-{index}"
    made = node(name).label(HOSTNAME, name).capacity(cpu=str(draw(st.integers(1, 4))))
    if draw(st.booleans()):
        made = made.label(ZONE, draw(st.sampled_from(["x", "y"])))
    if draw(st.integers(0, 9)) == 0:
        made = made.taint("closed")
    return made


@st.composite
def _pods(draw: st.DrawFn, name: str) -> PodBuilder:
    made = pod(name).request(cpu=f"{draw(st.sampled_from([0, 250, 500, 1000, 2000]))}m")
    made = made.label("app", draw(st.sampled_from(_APPS)))
    if draw(st.integers(0, 5)) == 0:
        made = made.host_port(draw(st.sampled_from([80, 81])))
    kind = draw(st.integers(0, 11))
    topology = draw(st.sampled_from([HOSTNAME, ZONE]))
    app = draw(st.sampled_from(_APPS))
    if kind == 0:
        made = made.pod_anti_affinity(topology, app=app)
    elif kind == 1:
        made = made.pod_affinity(topology, app=app)
    elif kind == 2:
        made = made.spread(topology, app=app, max_skew=draw(st.integers(1, 2)))
    return made


@st.composite
def _placed_pods(draw: st.DrawFn, index: int, hosts: Sequence[str]) -> PodBuilder:
    made = draw(_pods(f"placed-{index}")).on(draw(st.sampled_from(hosts)))
    made = made.priority(draw(st.sampled_from([-5, 0, 0, 3, 10, 20])))
    if index or draw(st.booleans()):
        # Times of their own, one without at most: what to do with equals is nobody's business here.
        made = made.started(f"2025-01-01T00:{index:02}:00Z")
    return made.preempted() if draw(st.integers(0, 9)) == 0 else made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a few nodes, with more pods than are good for them."""
    nodes = [draw(_nodes(index)) for index in range(draw(st.integers(1, 4)))]
    hosts = [each.build().metadata.name for each in nodes]
    count = draw(st.integers(0, 12))
    pods = [draw(_placed_pods(index, hosts)) for index in range(count)]
    if draw(st.integers(0, 3)) == 0:
        first = pod("nominated").request(cpu="1").nominated(draw(st.sampled_from(hosts)))
        pods.append(first.priority(draw(st.sampled_from([3, 10, 20]))))
    budgets = [
        PodDisruptionBudget(
            WorkloadMeta(f"pdb-{app}", "default"),
            PodDisruptionBudgetSpec(LabelSelector(match_labels={"app": app})),
            PodDisruptionBudgetStatus(draw(st.integers(0, 2))),
        )
        for app in draw(st.lists(st.sampled_from(_APPS), unique=True))
    ]
    asked = draw(_pods("asked")).priority(draw(st.sampled_from([0, 3, 10, 15])))
    return Case(tuple(nodes), tuple(pods), tuple(budgets), asked)


# --- the slow way -----------------------------------------------------------------------------


def fits(case: Case, node_name: str, without: frozenset[str]) -> bool:
    """Tell whether the pod could be put on a node of a cluster without some pods."""
    stage = case.stage(without=without)
    info = case.asked.info()
    state, _ = stage.search(info)
    node_info = stage.snapshot.get(node_name)
    assert node_info is not None
    return stage.framework.run_filter_one_with_nominated(state, info, node_info).is_success


def victims_by_trying(case: Case, node_name: str) -> tuple[list[str], int] | None:
    """Return the victims of one node and the violations; None where preemption does not help."""
    asked = case.asked.info()
    lower = [
        info
        for info in (each.info() for each in case.pods)
        if info.node_name == node_name and info.priority < asked.priority
    ]
    gone = frozenset(info.uid for info in lower)
    if not lower or not fits(case, node_name, gone):
        return None
    lower.sort(key=lambda info: (-info.priority, info.pod.status.start_time or "z"))
    allowed = {budget.metadata.name: budget.status.disruptions_allowed for budget in case.budgets}
    violating = []
    for info in lower:
        budget = f"pdb-{info.labels['app']}"
        if budget in allowed:
            allowed[budget] -= 1
            if allowed[budget] < 0:
                violating.append(info)
    violations = 0
    for info in violating + [each for each in lower if each not in violating]:
        if fits(case, node_name, gone - {info.uid}):
            gone -= {info.uid}
        elif info in violating:
            violations += 1
    return [info.name for info in lower if info.uid in gone], violations


def told(victims: Victims) -> tuple[list[str], int]:
    return [info.name for info in victims.pods], victims.pdb_violations


@settings(max_examples=60)
@given(case=cases())
def test_every_candidate_is_found_with_the_victims_that_trying_tells(case: Case) -> None:
    stage = case.stage()
    info = case.asked.info()
    _, statuses = stage.search(info)
    found = stage.find(info, None)
    names = stage.snapshot.names()
    slow = {
        names[row]: victims
        for row in statuses.helpable_rows()
        if (victims := victims_by_trying(case, names[row])) and victims[0]
    }
    assert {name: told(each.victims) for name, each in found.candidates().items()} == slow


@settings(max_examples=60)
@given(case=cases())
def test_each_node_that_was_looked_at_is_a_candidate_or_has_a_reason(case: Case) -> None:
    stage = case.stage()
    info = case.asked.info()
    _, statuses = stage.search(info)
    found = stage.find(info, None)
    refusals = found.refusals()
    assert len(found) + refusals.total() == len(statuses.helpable_rows())
    assert all(status.reasons for status in refusals)


# --- what is remembered -----------------------------------------------------------------------


@settings(max_examples=40)
@given(data=st.data())
def test_what_is_remembered_changes_no_answer(data: st.DataObject) -> None:
    """One search that lives through a history answers as one that was made a moment ago."""
    case = data.draw(cases())
    old = case.stage()
    asked = [case.asked, data.draw(_pods("other")).priority(10)]
    for step in range(data.draw(st.integers(1, 5))):
        info = data.draw(st.sampled_from(asked)).uid(f"uid-{step}").info()
        now = old.find(info, None)
        anew = CandidateSearch(old.plugin.handle)
        state, statuses = old.search(info)
        rows = statuses.helpable_rows()
        expected = anew.find(state, info, old.snapshot.all_nodes(), rows, None)
        assert now.candidates() == expected.candidates()
        assert now.refusals() == expected.refusals()
        assert len(now) == len(expected)
        if len(now):
            assert now.best()[1].harm == min(each.harm for each in now.candidates().values())
        _change(data, old, case, step)


def _change(data: st.DataObject, stage: Stage, case: Case, step: int) -> None:
    cluster = stage.cluster
    hosts = sorted(cluster.nodes)
    kind = data.draw(st.sampled_from(["pod", "gone", "node", "no node", "nominate", "budget"]))
    running = [each for each in cluster.pods.values() if each.spec.node_name]
    if kind == "pod" and hosts:
        made = data.draw(_placed_pods(step + 20, hosts)).build()
        cluster.add_pod(made)
    elif kind == "gone" and running:
        leaving = data.draw(st.sampled_from(running))
        cluster.cache.remove_pod(PodInfo(leaving))
        del cluster.pods[f"default/{leaving.metadata.name}"]
    elif kind == "node":
        stage.add_node(data.draw(_nodes(step + 10)).build())
    elif kind == "no node" and len(hosts) > 1:
        leaving_node = data.draw(st.sampled_from(hosts))
        del cluster.nodes[leaving_node]
        cluster.cache.remove_node(leaving_node)
    elif kind == "nominate" and hosts:
        first = pod(f"first-{step}").priority(20).request(cpu="1").info()
        cluster.nominator.add(first, data.draw(st.sampled_from(hosts)))
    elif kind == "budget":
        for budget in case.budgets:
            changed = replace(budget, status=PodDisruptionBudgetStatus(step % 3))
            cluster.known.disruption_budgets.budget_changed(budget, changed)


# --- how many are looked at -------------------------------------------------------------------


def crowded(nodes: int, pods_each: int, zone: str = "") -> Stage:
    objects: list[NodeBuilder | PodBuilder] = []
    for at in range(nodes):
        objects.append(node(f"n{at}").zone(zone).capacity(cpu="1"))
        objects += [pod(f"p{at}-{i}").request(cpu="100m").on(f"n{at}") for i in range(pods_each)]
    return Stage(*objects)


ASKED = pod("web").priority(10).request(cpu="1")


def test_all_nodes_are_looked_at_where_that_is_cheap() -> None:
    assert len(crowded(30, 2).find(ASKED.info(), 1)) == 30


def test_where_it_is_not_enough_are_and_the_next_search_goes_on_from_there() -> None:
    per_node = 10
    nodes = 3 * MAX_FILTER_RUNS // (1 + per_node) // 2
    stage = crowded(nodes, per_node)
    first = stage.find(ASKED.info(), 20)
    assert 20 <= len(first) < nodes
    second = stage.find(ASKED.info(), 20)
    assert len(second) > len(first)
    assert len(stage.find(ASKED.info(), 20)) == nodes


def test_a_search_goes_on_until_there_is_a_candidate_that_violates_no_budget() -> None:
    stage = crowded(2, 1)
    protected = PodDisruptionBudget(
        WorkloadMeta("pdb", "default"),
        PodDisruptionBudgetSpec(LabelSelector(match_labels={"app": "a"})),
    )
    stage.cluster.known.disruption_budgets.budget_changed(None, protected)
    assert len(stage.find(ASKED.info(), 1)) == 2


def test_a_dry_run_that_fails_spoils_no_other_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_on_n0(
        plugin: object, state: object, info: object, removed: object, node_info: object
    ) -> Status:
        if node_info.name == "n0":  # type: ignore[attr-defined]
            raise RuntimeError("no idea")
        return SUCCESS

    monkeypatch.setattr(NodeResourcesFit, "remove_pod", fails_on_n0)
    stage = crowded(2, 1)
    state, statuses = stage.search(ASKED.info())
    nodes = stage.snapshot.all_nodes()
    found = stage.plugin.candidate_search.find(
        state, ASKED.info(), nodes, statuses.helpable_rows(), None
    )
    assert list(found.candidates()) == ["n1"]
    assert [status.code for status in found.refusals()] == [Code.ERROR]
    assert all("no idea" in status.message for status in found.refusals())


# --- who is nominated -------------------------------------------------------------------------


def test_a_nominee_of_lower_priority_keeps_its_node_where_another_is_as_good() -> None:
    stage = crowded(3, 2)
    stage.cluster.nominator.add(pod("first").priority(5).request(cpu="1").info(), "n0")
    stage.cluster.nominator.add(pod("second").priority(5).request(cpu="1").info(), "n1")
    name, candidate = stage.find(ASKED.info(), None).best()
    assert (name, candidate.harm.displaced_nominees) == ("n2", 0)


# --- claims -----------------------------------------------------------------------------------


def with_claims(**zones: str) -> Stage:
    """Nodes in the zone ``a``, and claims bound to volumes of their own in a zone."""
    stage = crowded(20, 3, zone="a")
    for name, zone in zones.items():
        tell(stage.cluster.known.storage, None, claim(name).bound_to(f"of-{name}").build())
        tell(
            stage.cluster.known.storage,
            None,
            volume(f"of-{name}").zone(zone).bound_to(name).build(),
        )
    return stage


@contextmanager
def counted_dry_runs() -> Iterator[list[str]]:
    """Yield the names of the nodes that are tried from now on."""
    tried: list[str] = []
    real = CandidateSearch._try

    def counting(search: CandidateSearch, *args: Any, **more: Any) -> Any:
        tried.append(args[2].name)
        return real(search, *args, **more)

    with patch.object(CandidateSearch, "_try", counting):
        yield tried


def test_pods_that_differ_in_their_claims_share_dry_runs() -> None:
    stage = with_claims(one="a", two="a")
    first = stage.find(ASKED.claim("one").info(), None)
    with counted_dry_runs() as tried:
        second = stage.find(ASKED.uid("other").claim("two").info(), None)
    assert second.candidates() == first.candidates()
    assert len(second) == 20
    assert not tried


def test_a_node_that_the_volume_does_not_reach_is_no_candidate_whatever_is_remembered() -> None:
    stage = with_claims(near="a", far="b")
    assert len(stage.find(ASKED.claim("near").info(), None)) == 20
    assert not len(stage.find(ASKED.uid("other").claim("far").info(), None))

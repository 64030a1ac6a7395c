from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from cache.pod_info import PodInfo, on_node
from scheduler.runtime.judgement import judge
from scheduler.what_if import QuestionError, policy_moves
from tests.builders import pod
from tests.scheduler.what_if.clusters import (
    HEAD,
    PACKING,
    ask,
    cluster_of,
    machine,
    manifest,
    moves,
    owned,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.objects import Pod
    from scheduler.what_if.placer import Placer
    from scheduler.what_if.tally import Tally

HOST = "kubernetes.io/hostname"

TWO = (machine("n1"), machine("n2"))


def test_the_pods_that_the_new_configuration_would_have_elsewhere_move():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "1"))
    found = ask(cluster, config=PACKING)
    assert moves(found) == {"default/a": ("n1", "n2")}
    (part,) = found.parts
    assert (part.kind, part.placed, part.stayed) == ("config", 1, 1)


def test_a_pod_whose_node_is_as_good_as_any_stays():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "2"))
    default = f"{HEAD}profiles: [{{schedulerName: berth}}]"
    found = ask(cluster, config=default)
    assert (found.parts[0].placed, found.parts[0].stayed) == (0, 2)


def test_running_pods_do_not_count_as_placed():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "1"))
    found = ask(cluster, config=PACKING)
    assert (found.placed, found.nodes) == (0, {})


def test_pods_of_daemon_sets_and_of_other_schedulers_do_not_move():
    cluster = cluster_of(*TWO, running("a", "n1", kind="DaemonSet"), running("b", "n2"))
    text = PACKING.replace("schedulerName: berth", "schedulerName: other")
    assert ask(cluster, config=text).parts[0].stayed == 0


def test_a_pod_that_the_new_configuration_has_no_node_for_is_told_of():
    cluster = cluster_of(machine("n1").taint("gpu"), running("a", "n1"))
    found = ask(cluster, config=f"{HEAD}profiles: [{{schedulerName: berth}}]")
    assert found.parts[0].refused == 1
    assert "untolerated taint" in found.reason


def test_all_else_is_decided_by_the_new_configuration():
    cluster = cluster_of(*TWO, running("a", "n1"))
    found = ask(cluster, config=PACKING, objects=[manifest()], replicas=3)
    assert found.nodes == {"n1": 3}


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        pytest.param("a: [", "config", "is not YAML", id="no YAML"),
        pytest.param(
            f"{HEAD}profiles: [{{schedulerNam: x}}]",
            "config.profiles[0].schedulerNam",
            "did you mean schedulerName",
            id="a misspelled field",
        ),
    ],
)
def test_a_mistake_in_the_configuration_is_reported_with_its_path(text, path, why):
    with pytest.raises(QuestionError, match=why) as caught:
        ask(cluster_of(*TWO), config=text)
    assert caught.value.path == path


def test_what_the_time_does_not_suffice_for_is_undecided():
    found = ask(cluster_of(*TWO, running("a", "n1")), cpu_s=0.0, config=PACKING)
    assert found.parts[0].undecided == 1


def test_the_node_of_a_pod_counts_where_a_share_of_the_nodes_is_scored():
    """A decision looks at the first hundred of them; the pod is on one of the others."""
    machines = [machine(f"n{number:03}") for number in range(150)]
    share = PACKING.replace("profiles:", "percentageOfNodesToScore: 5\nprofiles:")
    at_first = ask(cluster_of(*machines, running("a", "n149", "2")), config=share)
    assert (at_first.parts[0].stayed, at_first.parts[0].placed) == (1, 0)


def random_pods(random: Random, machines: Sequence[str]) -> Iterator[Pod]:
    """Yield running pods of a few kinds, some with terms and spread constraints."""
    for number in range(30):
        app = f"app-{random.randrange(4)}"
        made = pod(f"p{number}").label("app", app).request(cpu=f"{random.randint(2, 8)}00m")
        kind = random.randrange(4)
        if kind == 1:
            made = made.avoids_pods(50, HOST, app=app)
        elif kind == 2:
            made = made.pod_anti_affinity(HOST, app=f"{app}-{number}")
        elif kind == 3:
            made = made.spread("zone", when_unsatisfiable="ScheduleAnyway", app=app)
        yield owned(made.on(random.choice(machines)), name=app)


@pytest.mark.parametrize("seed", range(5))
def test_each_pod_stays_on_a_best_node_and_moves_to_a_best_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    machines = [f"n{number}" for number in range(8)]
    nodes = [machine(each).label("zone", f"z{at % 2}") for at, each in enumerate(machines)]
    real, looked_at = policy_moves._decide, []

    def decide(placer: Placer, moved: Pod, tally: Tally) -> None:
        cache, snapshot, uid = placer.cluster.cache, placer.snapshot, moved.metadata.uid
        cache.remove_uid(uid)
        cache.update_snapshot(snapshot)
        judgement = judge(placer.framework(moved), snapshot, PodInfo(on_node(moved, "")))
        best = {snapshot.columns.node_infos[row].name for row in judgement.best_rows().tolist()}
        cache.add_pod(PodInfo(moved))
        real(placer, moved, tally)
        now = cache.get_pod(uid).node_name
        assert now in best
        assert (now == moved.spec.node_name) == (moved.spec.node_name in best)
        looked_at.append(now)

    monkeypatch.setattr(policy_moves, "_decide", decide)
    found = ask(cluster_of(*nodes, *random_pods(random, machines)), config=PACKING)
    assert (found.parts[0].placed + found.parts[0].stayed, len(looked_at)) == (30, 30)
    assert found.parts[0].placed

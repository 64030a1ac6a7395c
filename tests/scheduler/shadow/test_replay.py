from __future__ import annotations

from plugins.registry import PLUGINS
from scheduler.config import default_config, parse_config, running_profiles
from scheduler.offline.cluster import Cluster
from scheduler.shadow.replay import Replay
from tests.builders import node, pod

DEFAULT = running_profiles(default_config())
NAMES = ("old", "new")


def profiles(text: str):
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    return running_profiles(parse_config(head + text, "new.yaml"))


PACKING = profiles("""
profiles:
- schedulerName: berth
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
""")
TWO = profiles("profiles: [{schedulerName: berth}, {schedulerName: batch}]")


def cluster_of(*pods) -> Cluster:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.add_node(node(name).capacity(cpu="8", memory="8Gi", pods="10").build())
    for each in pods:
        cluster.add_pod(each.build())
    return cluster


def replay(cluster, shadow=DEFAULT, *, decisions=100, live=DEFAULT):
    return Replay(cluster, live, shadow, NAMES, PLUGINS, decisions).run()


def test_a_pod_that_waits_is_judged_by_both():
    busy = pod("busy").request(cpu="4").on("n1")
    (report,) = replay(cluster_of(busy, pod("web").request(cpu="1")), PACKING)
    told = {each.pod: (each.live, each.shadow) for each in report.winner_samples}
    assert told["default/web"] == ("n2", "n1")


def test_a_pod_that_runs_is_judged_as_if_it_waited():
    full = pod("full").request(cpu="8").on("n1")
    (report,) = replay(cluster_of(full))
    assert (report.compared, report.both_placed) == (1, 1)


def test_afterwards_every_pod_is_where_it_was():
    cluster = cluster_of(pod("a").request(cpu="1").on("n1"), pod("b").request(cpu="2").on("n2"))
    replay(cluster, PACKING)
    used = {name: info.requested["cpu"] for name, info in cluster.cache.dump().nodes.items()}
    assert used == {"n1": 1000, "n2": 2000}


def test_one_configuration_beside_itself_changes_feasibility_nowhere():
    cluster = cluster_of(*(pod(f"p{n}").request(cpu="1") for n in range(5)))
    (report,) = replay(cluster)
    assert (report.compared, report.changed_winners, report.changed_feasibility) == (5, 0, 0)


def test_pods_that_have_ended_or_are_leaving_are_left_out():
    cluster = cluster_of(pod("web"), pod("gone").on("n1").terminating())
    (report,) = replay(cluster)
    assert report.compared == 1


def test_each_profile_that_pods_ask_for_has_a_report():
    cluster = cluster_of(pod("a"), pod("b").scheduler("batch"), pod("c").scheduler("somebody"))
    found = {each.scheduler_name: each.compared for each in replay(cluster, TWO)}
    assert found == {"berth": 2, "batch": 1}


def test_of_many_pods_some_are_chosen_and_always_the_same():
    cluster = cluster_of(*(pod(f"p{n}") for n in range(20)))
    first, second = (replay(cluster, PACKING, decisions=5)[0] for _ in range(2))
    assert first.compared == first.wanted == 5
    assert first.winner_samples == second.winner_samples


def test_without_nodes_nothing_is_compared():
    cluster = Cluster()
    cluster.add_pod(pod("web").build())
    (report,) = replay(cluster)
    assert report.compared == 0


def test_the_report_names_the_configurations():
    (report,) = replay(cluster_of(pod("web")))
    assert (report.live, report.shadow) == NAMES

"""Fixed seeds of the simulation; ``make storm`` plays others."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.storm import faults, objects
from tests.storm.cluster import OWN
from tests.storm.extras import EXTRAS
from tests.storm.histories import History
from tests.storm.plans import Action, of_text, to_text
from tests.storm.playing import Setting, make_stretch, play, quiet
from tests.storm.simulation import InvariantError, Simulation
from tests.storm.sizes import check_sizes, sizes
from tests.storm.standstill import standstill_is_noticed
from tests.storm.world import World

STEPS = 1_200


def _covering(seeds: range) -> list[int]:
    """Return seeds whose worlds begin with all kinds of faults, and do so soon."""
    kinds: dict[int, set[str]] = {}
    for seed in seeds:
        for_s, actions = make_stretch(seed, 0, Setting.of(seed))
        if for_s <= 20.0:
            kinds[seed] = {action.kind for action in actions} & faults.ACTIONS.keys()
    left, chosen = set(faults.ACTIONS), []
    while left:
        best = max(kinds, key=lambda seed: len(kinds[seed] & left))
        chosen.append(best)
        left -= kinds[best]
    return chosen


@pytest.mark.parametrize("seed", [1, 2, 3, *_covering(range(4, 200))])
def test_no_promise_is_broken(seed: int) -> None:
    played = play(seed, STEPS)

    assert not played.broken, "\n".join((played.message, *played.last))


@pytest.mark.parametrize("extra", EXTRAS)
def test_no_promise_is_broken_with_an_extra(extra: str) -> None:
    played = play(1, STEPS, extras=[extra])

    assert not played.broken, "\n".join((played.message, *played.last))


@pytest.mark.parametrize("interleave", [0.0, 0.2])
def test_a_seed_is_one_history(interleave: float) -> None:
    setting = Setting(replicas=2, nodes=3, interleave=interleave)

    first, second = (play(3, STEPS, setting=setting) for _ in range(2))

    assert (first.trace_hash, first.steps) == (second.trace_hash, second.steps)


def test_seeds_are_different_histories() -> None:
    setting = Setting(replicas=1, nodes=3, interleave=0.0)

    assert play(1, 1, setting=setting).trace_hash != play(2, 1, setting=setting).trace_hash


def test_a_plan_can_be_written_and_read() -> None:
    plan = [Action(0.5, "new_app", 7), Action(12.25, "compact", 8)]

    assert of_text(to_text(plan)) == plan


def test_a_history_can_be_written_and_read() -> None:
    actions = [Action(0.5, "new_app", 7), Action(12.25, "compact", 8)]
    history = History(3, Setting(2, 4, 0.2, ("groups",)), [(20.0, actions), (5.0, [])])

    assert History.of(str(history)) == history


def test_a_container_that_is_longer_than_the_cluster_explains_is_found() -> None:
    message = ""
    with quiet(Counter()):
        world = World(1)
        world.run(0.1)
        check_sizes(world)
        world.replicas[0].cache._pods.update(dict.fromkeys(map(str, range(1_000))))
        try:
            check_sizes(world)
        except InvariantError as error:
            message = str(error)
        world.close()
        del world

    assert "SchedulerCache._pods has 1000 entries" in message


def test_what_is_kept_with_the_verdicts_of_a_signature_is_bounded_by_its_pod() -> None:
    keys = ("team", *(f"key-{number}" for number in range(500)))
    tolerations = [{"key": key, "operator": "Exists"} for key in keys]
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "main", "image": "image", "resources": {"requests": requests}}
    spec = {"schedulerName": OWN, "containers": [container], "tolerations": tolerations}
    with quiet(Counter()):
        world = World(1)
        etcd = world.servers.etcd
        etcd.create("nodes", objects.node("node", 4000, 4096, "east"))
        for number in range(3):
            # A row that has changed is judged alone, by what is prepared of the tolerations.
            taints = [objects.TAINT] * (number % 2)
            etcd.edit(
                "nodes",
                ("", "node"),
                lambda node, taints=taints: node["spec"].update(taints=taints),
            )
            metadata = {"name": f"web-{number}", "namespace": "default"}
            etcd.create("pods", {"metadata": metadata, "spec": spec})
            world.run(30.0)
        for number in range(3):
            etcd.delete("pods", ("default", f"web-{number}"))
        world.run(20.0)
        kept = sizes(world.replicas[0]).get("ToleratedTaints._covered")
        check_sizes(world)
        world.close()
        del world, etcd

    assert kept == 501


@pytest.mark.parametrize(
    ("rule", "node_name", "is_overlooked"),
    [
        ({"affinity": objects.apart("batch")}, "node-1", True),
        ({"affinity": objects.apart("batch")}, "node-2", False),
        ({"topologySpreadConstraints": [objects.spread("batch")]}, "node-2", True),
        ({"topologySpreadConstraints": [objects.spread("batch")]}, "node-3", False),
    ],
    ids=["apart, same node", "apart, other node", "spread, same zone", "spread, other zone"],
)
def test_a_nomination_that_keeps_nobody_out_is_recognized(
    rule: objects.Json, node_name: str, is_overlooked: bool
) -> None:
    with quiet(Counter()):
        world = World(1, replicas=0)
        etcd = world.servers.etcd
        for name, zone in (("node-1", "east"), ("node-2", "east"), ("node-3", "west")):
            etcd.create("nodes", objects.node(name, 4000, 4096, zone))
        for name, spec, status in (
            ("bound", {"nodeName": "node-1"}, {}),
            ("nominated", rule, {"nominatedNodeName": node_name}),
        ):
            metadata = {"name": name, "namespace": "default", "labels": {"app": "batch"}}
            etcd.create("pods", {"metadata": metadata, "spec": spec, "status": status})
        answer = world.cluster.has_an_overlooked_nomination()
        world.close()

    assert answer is is_overlooked


def test_a_step_that_does_not_end_is_noticed() -> None:
    class Spinning:
        name = "spinning"

        def step(self) -> None:
            while True:
                pass

    simulation = Simulation(1)
    simulation.add(Spinning())
    with (
        pytest.raises(InvariantError, match="I11: a step goes on for"),
        standstill_is_noticed(simulation, patience_s=0.05),
    ):
        simulation.run(1.0)

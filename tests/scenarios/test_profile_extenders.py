"""The extenders of SchedulingProfiles on a real API server: asked, exchanged and taken away."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.profiles.operator import OperatorOptions
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import PATH, SchedulingProfiles
from tests.scenarios import live_policies
from tests.scenarios.profile_world import World, wait_watched
from tests.scenarios.replicas import wait_until
from tests.scheduler.extenders.scripted_extender import Reply, Stage, says

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.controlplane.control_plane import ControlPlane
    from tests.scheduler.extenders.scripted_extender import ScriptedExtender

pytestmark = pytest.mark.controlplane

HELD = "held"
"""A pod over which an extender thinks until it is let go on."""

PODS_A_CHANGE = 40
ROUNDS = 4


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


def serve(
    stage: Stage, passing: str, best: str, **more: Callable[[Any], Reply]
) -> ScriptedExtender:
    """Serve an extender that lets two nodes pass and likes one of them best."""

    def filtered(asked: Any) -> Reply:
        names = asked["NodeNames"] or [each["metadata"]["name"] for each in asked["Nodes"]["items"]]
        kept = [name for name in names if name in (passing, best)]
        whole = {"items": [{"metadata": {"name": name}} for name in kept]}
        failed = {name: "not licensed" for name in names if name not in kept}
        answer = {"NodeNames": kept} if asked["NodeNames"] else {"Nodes": whole}
        reply = says({**answer, "FailedNodes": failed})(asked)
        return replace(reply, holds=asked["Pod"]["metadata"]["name"] == HELD)

    scores = [{"Host": passing, "Score": 1}, {"Host": best, "Score": 10}]
    return stage.serve(filter=filtered, prioritize=says(scores), **more)


def entry(server: ScriptedExtender, **more: Any) -> dict[str, Any]:
    """Return an extender as a SchedulingProfile has it."""
    return {
        "urlPrefix": server.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 100,
        "nodeCacheCapable": True,
        "httpTimeout": "10s",
        **more,
    }


def allowing(*servers: ScriptedExtender) -> OperatorOptions:
    """Return what lets SchedulingProfiles have these extenders and no others."""
    urls = tuple(each.url for each in servers)
    return OperatorOptions(enabled=True, extender_urls=urls)


def asked_about(server: ScriptedExtender) -> set[str]:
    """Return the pods that an extender was asked about, whatever the question."""
    return {
        asked["PodName"] if verb == "bind" else asked["Pod"]["metadata"]["name"]
        for verb, asked in server.asked
    }


def settle(world: World, name: str, **spec: Any) -> dict[str, Any]:
    """Create or change a SchedulingProfile; return its status when that is in force."""
    if any(each["metadata"]["name"] == name for each in world.api.list_all(PATH)):
        world.profiles.patch(name, spec)
    else:
        world.profiles.create(name, {"schedulerName": name, **spec})
    return world.profiles.wait_settled(name)


@pytest.mark.parametrize("by_name", [True, False], ids=["by-name", "whole-nodes"])
def test_its_extender_filters_and_scores_its_pods_and_no_others(
    world: World, stage: Stage, *, by_name: bool
) -> None:
    name = f"asks-{by_name}".lower()
    extender = serve(stage, "n1", "n2")
    with world.berth(operator=allowing(extender)) as berth:
        wait_watched(berth)
        settle(world, name, extenders=[entry(extender, nodeCacheCapable=by_name)])
        world.place(5, name)
        world.place(5, "berth")
    assert world.nodes_of(name) == {"n2"}
    assert asked_about(extender) == world.names_of(name)
    assert set(extender.verbs()) == {"filter", "prioritize"}


def test_another_extender_takes_over(world: World, stage: Stage) -> None:
    first, second = serve(stage, "n0", "n1"), serve(stage, "n2", "n3")
    with world.berth(operator=allowing(first, second)) as berth:
        wait_watched(berth)
        settle(world, "exchanged", extenders=[entry(first)])
        world.place(5, "exchanged")
        before = world.names_of("exchanged")
        settle(world, "exchanged", extenders=[entry(second)])
        world.place(5, "exchanged")
    assert asked_about(first) == before
    assert asked_about(second) == world.names_of("exchanged") - before
    assert world.nodes_of("exchanged") == {"n1", "n3"}


@pytest.mark.parametrize("left", [[], None], ids=["none", "those-of-the-file"])
def test_an_extender_that_is_taken_out_is_asked_no_more(
    world: World, stage: Stage, left: list[Any] | None
) -> None:
    name = "without" if left is None else "with-none"
    extender = serve(stage, "n0", "n1")
    with world.berth(operator=allowing(extender)) as berth:
        wait_watched(berth)
        settle(world, name, extenders=[entry(extender)])
        world.place(3, name)
        before = world.names_of(name)
        settle(world, name, extenders=left)
        world.place(20, name)
    assert asked_about(extender) == before
    assert not world.nodes_of(name) <= {"n0", "n1"}


def test_the_extender_of_a_deleted_profile_is_asked_no_more(world: World, stage: Stage) -> None:
    extender = serve(stage, "n0", "n1")
    with world.berth(operator=allowing(extender)) as berth:
        wait_watched(berth)
        world.profiles.create("passing", {"schedulerName": "berth", "extenders": [entry(extender)]})
        world.profiles.wait_settled("passing")
        world.place(3, "berth")
        asked = asked_about(extender)
        assert len(asked) == 3
        world.profiles.delete("passing")
        wait_until(lambda: not berth.app.profiles.known.statuses(), "it is forgotten")
        world.place(20, "berth")
    assert asked_about(extender) == asked


def test_extenders_that_cannot_be_used_leave_those_before_them(world: World, stage: Stage) -> None:
    extender = serve(stage, "n0", "n1")
    with world.berth(operator=allowing(extender)) as berth:
        wait_watched(berth)
        settle(world, "kept", extenders=[entry(extender)])
        tls = {"tlsConfig": {"caData": "Z2FyYmFnZQ=="}}
        status = settle(world, "kept", extenders=[entry(extender, **tls)])
        assert status["activeGeneration"] == 1
        message = world.profiles.condition("kept", "Accepted")["message"]
        assert message.startswith("spec.extenders: ")
        assert "certificate authority" in message
        world.place(3, "kept")
    assert asked_about(extender) == world.names_of("kept")
    assert world.nodes_of("kept") == {"n1"}


def test_an_extender_that_is_not_allowed_is_never_asked(world: World, stage: Stage) -> None:
    extender, stranger = serve(stage, "n0", "n1"), serve(stage, "n2", "n3")
    with world.berth(operator=allowing(extender)) as berth:
        wait_watched(berth)
        settle(world, "limited", extenders=[entry(extender)])
        status = settle(world, "limited", extenders=[entry(stranger)])
        assert status["activeGeneration"] == 1
        message = world.profiles.condition("limited", "Accepted")["message"]
        assert message.startswith("spec.extenders[0].urlPrefix: ")
        world.place(3, "limited")
    assert asked_about(extender) == world.names_of("limited")
    assert stranger.asked == []


def test_a_cycle_and_its_binding_end_with_the_extender_that_they_began_with(
    world: World, stage: Stage
) -> None:
    def bind(asked: Any) -> Reply:
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        metadata = {"name": asked["PodName"], "uid": asked["PodUID"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        world.api.post(path, body)
        return says({})(asked)

    before, after = serve(stage, "n0", "n1", bind=bind), serve(stage, "n2", "n3")
    with world.berth(operator=allowing(before, after)) as berth:
        wait_watched(berth)
        settle(world, "turning", extenders=[entry(before, bindVerb="bind")])
        world.api.create_many([make_pod(HELD, cpu="1m", scheduler_name="turning")])
        wait_until(lambda: before.verbs() == ["filter"], "the extender thinks")
        assert settle(world, "turning", extenders=[entry(after)])["activeGeneration"] == 2
        stage.call(before.release())
        wait_until(lambda: world.nodes_of("turning") == {"n1"}, "the pod is bound")
        assert before.verbs() == ["filter", "prioritize", "bind"]
        assert after.asked == []
        world.place(3, "turning")
    assert asked_about(before) == {HELD}
    assert asked_about(after) == world.names_of("turning") - {HELD}


def test_while_pods_come_no_extender_is_asked_that_was_not_in_force_when_a_cycle_began(
    fresh_control_plane: ControlPlane, stage: Stage
) -> None:
    plane = fresh_control_plane
    # Both let n1 pass: so there is a node where both are asked.
    first, second = serve(stage, "n0", "n1"), serve(stage, "n1", "n2")
    # What each policy asks; that of the file, which is left when there is no object, asks nobody.
    askers: dict[str, set[ScriptedExtender]] = defaultdict(set)
    with BlockingApi(plane.admin_kubeconfig) as api:
        plane.berth_kubeconfig()
        profiles = SchedulingProfiles(plane)
        profiles.install()
        api.create_many(make_node(f"n{i}", cpu="64", pods="10000") for i in range(5))
        log = plane.folder / "berth.log"
        berth = live_policies.start_berth(plane, log, extenders=(first.url, second.url))
        created = 0

        def create_some() -> None:
            nonlocal created
            names = [f"pod-{created + i:04}" for i in range(PODS_A_CHANGE)]
            api.create_many(
                make_pod(name, cpu="1m", scheduler_name=live_policies.NAME) for name in names
            )
            created += PODS_A_CHANGE

        try:
            api.wait_until(lambda: "scheduling" in live_policies.events_of(log), "berth schedules")
            for number in range(ROUNDS):
                name = f"turn-{number}"
                create_some()
                spec = {"schedulerName": live_policies.NAME, "extenders": [entry(first)]}
                profiles.create(name, spec)
                askers[f"schedulingprofile/{name}@1"] = {first}
                profiles.wait_settled(name)
                for generation, extenders in enumerate(([second], [], [second, first]), start=2):
                    create_some()
                    profiles.patch(name, {"extenders": [entry(each) for each in extenders]})
                    askers[f"schedulingprofile/{name}@{generation}"] = set(extenders)
                    profiles.wait_settled(name)
                create_some()
                profiles.delete(name)
            api.wait_bound(created, timeout_s=live_policies.PATIENCE_S)
            live_policies.wait_until(
                api, lambda: len(live_policies.scheduled_events(api)) >= created, "there are Events"
            )
        finally:
            berth.terminate()
        events = live_policies.scheduled_events(api)
    lines = live_policies.log_lines(log)
    assert live_policies.check_policies(lines, events, set()) == []
    wanted: dict[str, set[ScriptedExtender]] = defaultdict(set)
    policies = set()
    for line in lines:
        if line["event"] == "cycle":
            policies.add(line["policy"])
            wanted[line["pod"].partition("/")[2]] |= askers[line["policy"]]
    assert len(wanted) == created
    for server in (first, second):
        assert asked_about(server) == {pod for pod, servers in wanted.items() if server in servers}
        assert asked_about(server)
    assert len(policies) > ROUNDS

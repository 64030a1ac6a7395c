"""SchedulingProfiles on a real API server: taken over, refused, lost and found."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from scheduler.cli import main
from scheduler.config import GoDuration, default_config
from scheduler.profiles.available_plugins import PluginSupply, SupplyOptions
from scheduler.profiles.config_reload import ConfigSource
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.history import GOOD, digest_of
from tests.controlplane.access import NAMESPACE
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_pod
from tests.scenarios.profile_world import (
    Gate,
    World,
    kill_kopf,
    known,
    make_world,
    wait_watched,
    watch_of,
)
from tests.scenarios.replicas import LEASE_PATH, wait_until
from tests.scenarios.running_berth import RunningBerth, without_election

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from scheduler.config import SchedulerConfig
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

WITHOUT_A_NODE = {"plugins": {"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}}
MISTAKE = "spec.plugins.filter.enabled[0].name: there is no plugin 'NoSuchPlugin'"


@pytest.fixture
def fresh(fresh_control_plane: ControlPlane) -> Iterator[World]:
    """A world whose API server does not know the kind."""
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield make_world(fresh_control_plane, api)


def metric(berth: RunningBerth, line: str) -> float:
    text = berth.app.metrics.render()[0].decode()
    (value,) = [each for each in text.splitlines() if each.startswith(f"{line} ")]
    return float(value.rpartition(" ")[2])


# --- taking over ------------------------------------------------------------------------------


def test_a_profile_is_taken_over_and_says_so(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("fast", {"schedulerName": "fast", "percentageOfNodesToScore": 50})
        status = world.profiles.wait_settled("fast")
        conditions = {each["type"]: each["status"] for each in status["conditions"]}
        assert conditions == {"Accepted": "True", "Active": "True", "Degraded": "False"}
        assert status["activeGeneration"] == 1
        assert world.place(3, "fast") < 60


def test_a_change_is_taken_over(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("changed", {"schedulerName": "changed"})
        world.profiles.wait_settled("changed")
        world.profiles.patch("changed", {"percentageOfNodesToScore": 10})
        status = world.profiles.wait_settled("changed")
        assert status["activeGeneration"] == 2
        assert [each["generation"] for each in status["history"]] == [2, 1]


def test_those_that_were_there_before_decide_from_the_first_pod_on(world: World) -> None:
    world.profiles.create("before", {"schedulerName": "berth"})
    with world.berth() as berth:
        wait_until(lambda: berth.is_ready, "berth is ready")
        assert known(berth) == {"before": 1}


def test_a_bad_generation_leaves_the_good_one_running_and_names_the_mistake(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("broken", {"schedulerName": "broken"})
        world.profiles.wait_settled("broken")
        world.profiles.patch("broken", WITHOUT_A_NODE)
        assert world.profiles.wait_settled("broken")["activeGeneration"] == 1
        degraded = world.profiles.condition("broken", "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "LastGoodRunning")
        assert MISTAKE in degraded["message"]
        world.place(1, "broken")


def test_the_last_good_generation_outlives_a_restart(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("kept", {"schedulerName": "kept"})
        world.profiles.wait_settled("kept")
        world.profiles.patch("kept", WITHOUT_A_NODE)
        world.profiles.wait_settled("kept")
    with world.berth() as berth:
        wait_until(lambda: berth.is_ready, "berth is ready again")
        assert known(berth) == {"kept": 1}
        world.place(1, "kept")


def test_whoever_writes_statuses_cannot_choose_what_runs(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = {"schedulerName": "chosen", "percentageOfNodesToScore": 7}
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("chosen", {"schedulerName": "chosen"})
        world.profiles.wait_settled("chosen")
        world.profiles.wait_sealed("chosen", 1)
        world.profiles.patch("chosen", WITHOUT_A_NODE)
        history = world.profiles.wait_settled("chosen")["history"]
    entries = [{**history[0], "generation": 0, "spec": forged}, {**history[0], "spec": forged}]
    for entry in entries:
        status = {"history": [entry, *history]}
        digests = {"annotations": {GOOD: digest_of(entry)}}
        world.profiles.patch_status("chosen", {"metadata": digests, "status": status})
        with world.berth() as berth:
            wait_until(lambda: berth.is_ready, "berth is ready again")
            assert known(berth) == {"chosen": 1}
            running = berth.app.profiles.known.frameworks()
            assert [each.percentage_of_nodes_to_score for each in running] == [0, 0]
    admin = str(world.plane.admin_kubeconfig)
    world.profiles.patch_status("chosen", {"status": {"history": entries}})
    assert main(["rollback", "chosen", "--kubeconfig", admin]) == 1
    assert "has no good generation" in capsys.readouterr().err


def test_what_is_deleted_gives_way_to_the_file(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("passing", {"schedulerName": "berth"})
        world.profiles.wait_settled("passing")
        world.profiles.delete("passing")
        wait_until(lambda: not known(berth), "the profile is forgotten")
        world.place(1, "berth")


def test_those_without_the_labels_are_somebody_elses(world: World) -> None:
    ours = OperatorOptions(enabled=True, selector={"scheduler": "ours"})
    with world.berth(operator=ours) as berth:
        wait_watched(berth)
        world.profiles.create("theirs", {"schedulerName": "theirs"})
        world.profiles.create("ours", {"schedulerName": "ours"}, labels={"scheduler": "ours"})
        world.profiles.wait_settled("ours")
        assert known(berth) == {"ours": 1}
        assert "status" not in world.profiles.get("theirs")


def test_python_is_refused_unless_it_is_allowed(world: World) -> None:
    source = {"configMap": {"name": "plugins", "key": "a.py"}}
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("snake", {"schedulerName": "snake", "python": [source]})
        world.profiles.wait_settled("snake")
        message = world.profiles.condition("snake", "Accepted")["message"]
        assert message.startswith("spec.python[0].configMap: ")
        assert "--allow-python-profiles" in message


PYTHON = """
class OnlyOne:
    reason = "is not the one"

    def filter_one(self, pod, node):
        return node.name == "%s"
"""
SOURCE = {"configMap": {"name": "berth-plugins", "key": "only_one.py"}}


def test_python_in_a_config_map_decides_and_is_taken_over_when_it_changes(world: World) -> None:
    namespace = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    world.profiles.grant_config_maps("berth-plugins")
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "berth-plugins", "namespace": NAMESPACE},
        "data": {"only_one.py": PYTHON % "n1"},
    }
    world.api.post(namespace, config_map)
    supply = PluginSupply(SupplyOptions(installed=True, allow_python=True, namespace=NAMESPACE))
    operator = OperatorOptions(enabled=True, allow_python=True, namespace=NAMESPACE)
    source = ConfigSource(without_election)
    with world.berth(operator=operator, supply=supply, source=source):
        world.profiles.create("snake", {"schedulerName": "snake", "python": [SOURCE]})
        assert world.profiles.wait_settled("snake")["activeGeneration"] == 1
        assert "OnlyOne" in world.profiles.get("snake")["status"]["runningPlugins"]
        world.place(3, "snake")
        assert world.nodes_of("snake") == {"n1"}
        world.api.patch(f"{namespace}/berth-plugins", {"data": {"only_one.py": PYTHON % "n2"}})

        def is_taken_over() -> bool:
            world.place(1, "snake")
            return "n2" in world.nodes_of("snake")

        wait_until(is_taken_over, "the new code decides")
    assert world.nodes_of("snake") == {"n1", "n2"}


# --- when kopf, its way or its kind is gone ----------------------------------------------------


def test_where_the_kind_is_not_installed_pods_are_placed(fresh: World) -> None:
    with fresh.berth() as berth:
        wait_until(lambda: berth.is_ready, "berth is ready")
        fresh.place(20, "berth")
        # Not even the right to ask is there yet.
        assert (watch_of(berth).kopf_is_up, watch_of(berth).restarts) == (False, 0)
        fresh.profiles.install()
        fresh.profiles.create("late", {"schedulerName": "late"})
        assert fresh.profiles.wait_settled("late")["activeGeneration"] == 1


def test_where_the_kind_is_deleted_pods_are_placed(fresh: World) -> None:
    fresh.profiles.install()
    with fresh.berth() as berth:
        wait_watched(berth)
        fresh.profiles.create("doomed", {"schedulerName": "doomed"})
        fresh.profiles.wait_settled("doomed")
        fresh.profiles.remove_kind()
        wait_until(lambda: not known(berth), "the profile is forgotten")
        fresh.place(100, "berth")
        wait_until(lambda: not watch_of(berth).kopf_is_up, "kopf has ended")
        fresh.place(100, "berth")
        fresh.profiles.install_kind()
        fresh.profiles.create("doomed", {"schedulerName": "doomed"})
        fresh.profiles.wait_settled("doomed")
        fresh.place(1, "doomed")


def test_kopf_killed_under_load_costs_no_pod_and_comes_back(world: World) -> None:
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("steady", {"schedulerName": "steady"})
        world.profiles.wait_settled("steady")
        loading = loaded(world, ["berth", "steady"], 400)
        kill_kopf(watch_of(berth))
        wait_until(lambda: watch_of(berth).restarts == 1, "kopf's end is noticed")
        loading.result(240)
        wait_watched(berth)
        assert metric(berth, "berth_kopf_restarts_total") == 1
        assert metric(berth, "berth_kopf_up") == 1
        world.profiles.patch("steady", {"percentageOfNodesToScore": 10})
        assert world.profiles.wait_settled("steady")["activeGeneration"] == 2
        assert len(berth.mismatches(world.api)) == 0


def test_kopf_cut_off_alone_costs_no_pod_and_changes_arrive_late(
    world: World, tmp_path: Path
) -> None:
    with Gate(world) as gate:
        way = gate.kubeconfig(tmp_path)
        options = OperatorOptions(enabled=True, kopf_kubeconfig=str(way))
        with world.berth(operator=options) as berth:
            wait_watched(berth)
            world.profiles.create("cut", {"schedulerName": "cut"})
            world.profiles.wait_settled("cut")
            gate.close()
            wait_until(lambda: not watch_of(berth).kopf_is_up, "kopf's silence is noticed")
            assert metric(berth, "berth_kopf_up") == 0
            loading = loaded(world, ["berth", "cut"], 400)
            world.profiles.patch("cut", {"percentageOfNodesToScore": 10})
            loading.result(240)
            assert known(berth) == {"cut": 1}
            gate.open()
            assert world.profiles.wait_settled("cut")["activeGeneration"] == 2


# --- replicas ---------------------------------------------------------------------------------


def electing() -> SchedulerConfig:
    config = default_config("berth")
    election = msgspec.structs.replace(
        config.leader_election,
        resource_namespace=NAMESPACE,
        lease_duration=GoDuration(4_000_000_000),
        renew_deadline=GoDuration(3_000_000_000),
        retry_period=GoDuration(500_000_000),
    )
    given = frozenset({"leaderElection.resourceNamespace"})
    return msgspec.structs.replace(config, leader_election=election, given=given)


def test_a_standby_knows_the_policies_and_writes_nothing(world: World) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "berth", "namespace": NAMESPACE},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
    }
    world.api.post(LEASE_PATH.rpartition("/")[0], lease)
    try:
        with world.berth(config=electing()) as berth:
            wait_watched(berth)
            world.profiles.create("quiet", {"schedulerName": "quiet"})
            wait_until(lambda: known(berth) == {"quiet": 1}, "the standby knows it")
            assert berth.app.operator is not None
            assert berth.app.operator.writer.written == 0
            assert "status" not in world.profiles.get("quiet")
            world.api.patch(LEASE_PATH, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
            # It leads now, and says what it has known for long.
            assert world.profiles.wait_settled("quiet")["activeGeneration"] == 1
    finally:
        world.plane.call("DELETE", LEASE_PATH)


# --- people -----------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that are no log lines of a berth in this process."""
    return [each for each in capsys.readouterr().out.splitlines() if not each.startswith("20")]


def test_berth_profiles_shows_what_runs_and_why_not(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = str(world.plane.admin_kubeconfig)
    with world.berth() as berth:
        wait_watched(berth)
        world.profiles.create("good", {"schedulerName": "good"})
        world.profiles.create("poor", {"schedulerName": "poor"})
        world.profiles.wait_settled("poor")
        world.profiles.patch("poor", WITHOUT_A_NODE)
        world.profiles.wait_settled("poor")
        world.profiles.wait_settled("good")
    assert main(["profiles", "--kubeconfig", admin]) == 0
    heading, good, poor = (line.split() for line in said(capsys))
    assert heading[:5] == ["NAME", "SCHEDULER", "STATE", "GENERATION", "RUNNING"]
    assert good[:5] == ["good", "good", "Active", "1", "1"]
    assert poor[:5] == ["poor", "poor", "Degraded", "2", "1"]
    assert main(["profiles", "poor", "--kubeconfig", admin]) == 0
    assert MISTAKE in capsys.readouterr().out


def test_berth_rollback_returns_to_the_last_good_generation(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = str(world.plane.admin_kubeconfig)
    with world.berth() as berth:
        wait_watched(berth)
        for percentage in (10, 20):
            spec = {"schedulerName": "back", "percentageOfNodesToScore": percentage}
            if percentage == 10:
                world.profiles.create("back", spec)
            else:
                world.profiles.patch("back", spec)
            world.profiles.wait_settled("back")
        world.profiles.patch("back", WITHOUT_A_NODE)
        world.profiles.wait_settled("back")
        assert main(["rollback", "back", "--kubeconfig", admin]) == 0
        assert said(capsys) == ["generation 2 of back is generation 4 now, and decides"]
        assert "plugins" not in world.profiles.get("back")["spec"]
        assert main(["rollback", "back", "--to", "1", "--kubeconfig", admin]) == 0
        assert world.profiles.get("back")["spec"]["percentageOfNodesToScore"] == 10
        capsys.readouterr()
        assert main(["rollback", "back", "--to", "3", "--kubeconfig", admin]) == 1
        assert "generation 3 of SchedulingProfile back is not stored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["rollback", "nobody"], "there is no SchedulingProfile nobody", id="rollback"),
        pytest.param(["profiles", "nobody"], "there is no SchedulingProfile nobody", id="profiles"),
    ],
)
def test_what_is_not_there_is_named(
    world: World, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--kubeconfig", str(world.plane.admin_kubeconfig)]) == 1
    assert capsys.readouterr().err == f"berth: {message}\n"


# --- faults -----------------------------------------------------------------------------------


def loaded(world: World, scheduler_names: list[str], count: int) -> Future[None]:
    """Create pods, some 200 a second, and wait for all to be placed, on another thread."""

    async def load() -> None:
        for number in range(count):
            name = scheduler_names[number % len(scheduler_names)]
            pod = make_pod(
                f"load-{id(load)}-{number}",
                cpu="1m",
                scheduler_name=name,
                labels={"group": f"load-{id(load)}"},
            )
            await world.api.client.create_many([pod])
            await asyncio.sleep(0.005)
        await world.api.client.wait_bound(
            count, label_selector=f"group=load-{id(load)}", timeout_s=180
        )

    return world.api.start(load())

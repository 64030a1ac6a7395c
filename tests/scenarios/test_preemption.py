"""Preemption on a real API server, judged by its audit log.

scheduler_perf's two workloads with fewer nodes; ``python -m tests.scenarios.preemption_kinds``
plays them in full, beside kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.kinds import POD_DISRUPTION_BUDGETS
from tests.bench.contenders import Berth
from tests.controlplane.access import USER
from tests.controlplane.audit import accepted_deletes
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.preemption_kinds import VICTIMS_PER_PREEMPTOR, play_async, play_basic
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from tests.scenarios.preemption_kinds import Outcome

pytestmark = pytest.mark.controlplane

NODES = 40
PREEMPTORS = 5


@pytest.fixture(scope="module")
def basic(controlplane_binaries: None) -> Outcome:
    with ControlPlane() as plane:
        return play_basic(plane, Berth(), nodes=NODES)


@pytest.fixture(scope="module")
def while_others_come(controlplane_binaries: None) -> Outcome:
    with ControlPlane() as plane:
        return play_async(plane, Berth(), nodes=NODES, preemptors=PREEMPTORS)


class TestAsManyPreemptorsAsNodes:
    def test_all_of_them_are_bound(self, basic: Outcome) -> None:
        assert basic.bound_preemptors == NODES

    def test_no_more_pods_go_than_have_to(self, basic: Outcome) -> None:
        assert basic.victims == NODES * VICTIMS_PER_PREEMPTOR

    def test_no_victim_is_deleted_twice(self, basic: Outcome) -> None:
        assert basic.deleted_twice == ()

    def test_nobody_else_is_a_victim(self, basic: Outcome) -> None:
        assert basic.strangers == ()


class TestPreemptorsAmongOthers:
    def test_pods_of_no_priority_are_bound_meanwhile(self, while_others_come: Outcome) -> None:
        assert while_others_come.bound_normal == NODES

    def test_all_preemptors_are_bound(self, while_others_come: Outcome) -> None:
        assert while_others_come.bound_preemptors == PREEMPTORS

    def test_no_victim_is_deleted_twice(self, while_others_come: Outcome) -> None:
        assert while_others_come.deleted_twice == ()


def _priority(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


class TestOneVictim:
    """Two full nodes, and one pod that needs one of them."""

    @pytest.fixture
    def scene(self, fresh_control_plane: ControlPlane) -> Any:
        plane = fresh_control_plane
        with (
            BlockingApi(plane.admin_kubeconfig) as api,
            RunningBerth(plane.berth_kubeconfig()) as berth,
        ):
            api.create_many([_priority("high", 10), _priority("middle", 5)])
            api.create_many([make_node("n1"), make_node("n2")])
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            grace = {"terminationGracePeriodSeconds": 600}
            api.create_many([make_pod(f"low-{i}", cpu="4", **grace) for i in range(2)])
            api.wait_bound(2)
            yield plane, api, berth

    @staticmethod
    def pod(api: BlockingApi, name: str) -> dict[str, Any]:
        (found,) = [each for each in api.pods("default") if each["metadata"]["name"] == name]
        return found

    def nominated(self, api: BlockingApi, name: str) -> str:
        return str(self.pod(api, name)["status"].get("nominatedNodeName", ""))

    @staticmethod
    def leaving(api: BlockingApi) -> list[dict[str, Any]]:
        return [each for each in api.pods("default") if "deletionTimestamp" in each["metadata"]]

    def victim(self, api: BlockingApi) -> dict[str, Any]:
        """Return the one pod that leaves; its DELETE may come after the nomination."""
        api.wait_until(lambda: bool(self.leaving(api)), "a pod leaves")
        (found,) = self.leaving(api)
        return found

    def test_the_preemptor_waits_for_it_and_takes_its_place(self, scene):
        plane, api, berth = scene
        api.create_many([make_pod("high", cpu="3", priorityClassName="high")])
        api.wait_until(lambda: bool(self.nominated(api, "high")), "the pod is nominated")
        victim = self.victim(api)
        conditions = {each["type"]: each for each in victim["status"]["conditions"]}
        assert conditions["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
        assert self.nominated(api, "high") == victim["spec"]["nodeName"]
        # What comes and goes meanwhile makes it try again; nobody else has to go for it.
        api.create_many([make_pod(f"passing-{i}", cpu="5") for i in range(5)])
        for i in range(5):
            api.delete(f"/api/v1/namespaces/default/pods/passing-{i}")
        api.wait_until(
            lambda: len(berth.app.known.pods.queue.nominator) == 1, "it is nominated still"
        )
        api.delete(f"/api/v1/namespaces/default/pods/{victim['metadata']['name']}")
        api.wait_until(
            lambda: self.pod(api, "high")["spec"].get("nodeName") == victim["spec"]["nodeName"],
            "the pod is bound",
        )
        deleted = [each.name for each in accepted_deletes(plane.audit_events(), user=USER)]
        assert deleted == [victim["metadata"]["name"]]
        api.wait_until(
            lambda: len(berth.app.known.pods.queue.nominator) == 0, "nobody is nominated"
        )

    def test_a_more_important_pod_takes_its_node_and_the_other_goes_elsewhere(self, scene):
        plane, api, _ = scene
        api.create_many([make_pod("middle", cpu="3", priorityClassName="middle")])
        api.wait_until(lambda: bool(self.nominated(api, "middle")), "the pod is nominated")
        node_name = self.nominated(api, "middle")
        victim = self.victim(api)
        selector = {"kubernetes.io/hostname": node_name}
        api.create_many(
            [make_pod("high", cpu="3", priorityClassName="high", nodeSelector=selector)]
        )
        api.wait_until(
            lambda: (
                self.nominated(api, "high") == node_name
                and self.nominated(api, "middle") != node_name
            ),
            "the nomination has gone over",
        )
        api.delete(f"/api/v1/namespaces/default/pods/{victim['metadata']['name']}")
        api.wait_until(
            lambda: self.pod(api, "high")["spec"].get("nodeName") == node_name, "it is bound"
        )
        deletes = accepted_deletes(plane.audit_events(), user=USER)
        assert max(Counter(each.name for each in deletes).values()) == 1

    def test_a_budget_decides_who_goes(self, scene):
        _, api, berth = scene
        spared, victim = sorted(api.pods("default"), key=lambda each: each["metadata"]["name"])
        label = {"metadata": {"labels": {"app": "spared"}}}
        api.patch(f"/api/v1/namespaces/default/pods/{spared['metadata']['name']}", label)
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "spared", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "spared"}}},
        }
        api.create_many([budget])
        budgets = berth.watch(POD_DISRUPTION_BUDGETS)
        api.wait_until(lambda: budgets.get("default", "spared") is not None, "it is known")
        api.create_many([make_pod("high", cpu="3", priorityClassName="high")])
        api.wait_until(lambda: len(self.leaving(api)) == 1, "a victim was chosen")
        (leaving,) = self.leaving(api)
        assert leaving["metadata"]["name"] == victim["metadata"]["name"]

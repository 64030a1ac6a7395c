from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cache.objects import Node, Pod
from cache.pod_info import PodInfo
from cache.resources import resource_amounts
from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
from tests.bench.pod_templates import (
    BEFORE,
    CSI_VOLUMES_PER_NODE,
    MEASURED,
    SCHEDULER_NAME,
    SINGLE_NODE,
    TOO_LARGE,
    VARIED,
)
from tests.bench.runs import chosen
from tests.bench.workloads import BY_NAME, ENOUGH, LARGEST, WORKLOADS, Churn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.bench.workloads import Workload

NODES = 50

every_workload = pytest.mark.parametrize(
    "workload", [pytest.param(each, id=each.name) for each in WORKLOADS]
)


def pods_of(objects: Iterable[dict[str, Any]]) -> list[Pod]:
    return [msgspec.convert(each, Pod) for each in objects if each["kind"] == "Pod"]


def placed(workload: Workload, nodes: int = NODES) -> list[Pod]:
    before = pods_of(workload.pods_before(nodes))
    return [pod for pod in before if pod.spec.node_name]


def to_place(workload: Workload, nodes: int = NODES) -> list[Pod]:
    return pods_of(workload.pods_to_place(workload.counts(nodes)[1]))


class TestEveryWorkload:
    @every_workload
    def test_all_pods_that_count_are_in_the_watched_namespace(self, workload: Workload) -> None:
        assert {pod.metadata.namespace for pod in to_place(workload)} == {MEASURED}

    @every_workload
    def test_all_pods_ask_for_the_name_that_all_contenders_answer_to(
        self, workload: Workload
    ) -> None:
        pods = to_place(workload) + placed(workload)
        assert {pod.spec.scheduler_name for pod in pods} == {SCHEDULER_NAME}

    @every_workload
    def test_names_are_unique(self, workload: Workload) -> None:
        objects = [
            *workload.ground.objects(NODES),
            *workload.objects,
            *workload.pods_before(NODES),
            *workload.pods_to_place(30),
        ]
        names = Counter(
            (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
            for each in objects
        )
        assert names.most_common(1)[0][1] == 1

    @every_workload
    def test_pods_that_run_are_on_nodes_that_exist(self, workload: Workload) -> None:
        nodes = {each["metadata"]["name"] for each in workload.ground.objects(NODES)}
        assert {pod.spec.node_name for pod in placed(workload)} <= nodes

    @every_workload
    def test_pods_that_run_are_as_many_as_it_says(self, workload: Workload) -> None:
        assert len(placed(workload)) == workload.counts(NODES)[0]

    @every_workload
    def test_no_node_is_overfull(self, workload: Workload) -> None:
        room = {
            each["metadata"]["name"]: resource_amounts(
                msgspec.convert(each, Node).status.allocatable, ""
            )
            for each in workload.ground.objects(NODES)
            if each["kind"] == "Node"
        }
        taken: dict[str, Counter[str]] = {name: Counter() for name in room}
        for pod in placed(workload):
            taken[pod.spec.node_name].update({**PodInfo(pod).requests, "pods": 1})
        for name, amounts in taken.items():
            assert all(amount <= room[name][each] for each, amount in amounts.items()), name

    @every_workload
    def test_there_are_not_more_pods_to_place_beyond_the_largest_size(
        self, workload: Workload
    ) -> None:
        assert workload.counts(LARGEST)[1] == workload.counts(3 * LARGEST)[1]

    @every_workload
    @pytest.mark.parametrize("nodes", [100, 500, 1000])
    def test_on_few_nodes_there_are_enough_pods_or_as_many_as_fit(
        self, workload: Workload, nodes: int
    ) -> None:
        share, fitting = workload.shares[1] * nodes, workload.fits * nodes
        expected = min(max(share, ENOUGH), fitting) if workload.fits else share
        assert workload.counts(nodes)[1] == max(round(expected), 1)

    @pytest.mark.parametrize(
        "workload",
        [
            pytest.param(each, id=each.name)
            for each in WORKLOADS
            if each.fits and not each.ground.single
        ],
    )
    def test_what_comes_on_few_nodes_fits_by_its_requests(self, workload: Workload) -> None:
        room, asked = Counter[str](), Counter[str]()
        for each in workload.ground.objects(100):
            if each["kind"] == "Node":
                amounts = msgspec.convert(each, Node).status.allocatable
                room.update(resource_amounts(amounts, ""))
        for pod in placed(workload, 100) + to_place(workload, 100):
            asked.update({**PodInfo(pod).requests, "pods": 1})
        assert all(asked[each] <= room[each] for each in ("cpu", "memory", "pods"))


class TestSomeWorkloads:
    def test_there_are_as_many_as_names(self) -> None:
        assert len(BY_NAME) == len(WORKLOADS)

    def test_preemption_finds_full_nodes_at_every_size(self) -> None:
        workload = BY_NAME["PreemptionAsync"]
        for nodes in (500, 15_000):
            assert workload.counts(nodes)[0] == 4 * nodes

    @pytest.mark.parametrize("name", ["PodAntiAffinity", "MixedBasePod"])
    def test_pods_that_keep_apart_are_apart(self, name: str) -> None:
        green = Counter(
            pod.spec.node_name
            for pod in placed(BY_NAME[name])
            if pod.metadata.labels.get("color") == "green"
        )
        assert green.most_common(1)[0][1] == 1

    def test_pods_that_want_together_are_together(self) -> None:
        hosts = {pod.spec.node_name for pod in placed(BY_NAME["PreferredPodAffinity"])}
        assert len(hosts) == 2

    def test_requests_vary(self) -> None:
        assert len({tuple(template.requests.items()) for template in VARIED}) == 40

    def test_claims_are_bound_to_their_volumes(self) -> None:
        objects = list(BY_NAME["CSIPVs"].pods_to_place(3))
        claims = [
            msgspec.convert(each, PersistentVolumeClaim)
            for each in objects
            if each["kind"] == "PersistentVolumeClaim"
        ]
        volumes = {
            each["metadata"]["name"]: msgspec.convert(each, PersistentVolume)
            for each in objects
            if each["kind"] == "PersistentVolume"
        }
        assert [claim.spec.volume_name for claim in claims] == list(volumes)

    def test_each_node_says_how_many_volumes_it_takes(self) -> None:
        objects = list(BY_NAME["CSIPVs"].ground.objects(2))
        counts = [
            each["spec"]["drivers"][0]["allocatable"]["count"]
            for each in objects
            if each["kind"] == "CSINode"
        ]
        assert counts == [CSI_VOLUMES_PER_NODE] * 2

    def test_gated_pods_wait_elsewhere(self) -> None:
        before = pods_of(BY_NAME["WhileGated"].pods_before(NODES))
        gated = [pod for pod in before if pod.spec.scheduling_gates]
        assert len(gated) == 2 * NODES
        assert BEFORE not in {pod.metadata.namespace for pod in gated}

    def test_a_workload_of_one_node_has_one(self) -> None:
        nodes = [each["metadata"]["name"] for each in BY_NAME["WhileGated"].ground.objects(NODES)]
        assert nodes == [SINGLE_NODE]

    def test_what_comes_and_goes_has_a_new_name_each_time(self) -> None:
        churn = Churn(1.0, TOO_LARGE, node=True, service=True)
        assert [each["kind"] for each in churn.objects(1)] == ["Node", "Pod", "Service"]
        assert churn.objects(1)[0]["metadata"]["name"] != churn.objects(2)[0]["metadata"]["name"]


class TestChoosing:
    def test_all_unless_named(self) -> None:
        assert sorted(each.name for each in chosen("")) == sorted(BY_NAME)

    def test_those_with_the_same_nodes_follow_each_other(self) -> None:
        names = [each.name for each in chosen("Basic,CSIPVs,Varied")]
        assert names == ["Basic", "Varied", "CSIPVs"]

    def test_an_unknown_one_is_named(self) -> None:
        with pytest.raises(ValueError, match="'Bsic'"):
            chosen("Bsic")


WITH_CLAIMS = [each for each in WORKLOADS if each.device_claim is not None]


class TestDevices:
    @pytest.mark.parametrize("workload", [pytest.param(each, id=each.name) for each in WITH_CLAIMS])
    def test_each_pod_uses_a_claim_that_is_created_before_it(self, workload: Workload) -> None:
        claims: set[str] = set()
        for each in workload.pods_to_place(30):
            if each["kind"] == "ResourceClaim":
                claims.add(each["metadata"]["name"])
            else:
                (use,) = each["spec"]["resourceClaims"]
                assert use["resourceClaimName"] in claims
        assert workload.device_claim is not None
        assert len(claims) == 30 // workload.device_claim.shared_by

    @pytest.mark.parametrize(
        ("name", "devices"),
        [
            ("ResourceClaim", 10),
            ("ConsumableCapacity", 20),
            ("Partitionable", 20 * 6),
            ("PartitionableBacktracking", 8),
            ("ExtendedResourceScoring", 20),
        ],
    )
    def test_there_are_devices_for_all_pods(self, name: str, devices: int) -> None:
        workload = BY_NAME[name]
        published = sum(
            len(each["spec"].get("devices", ()))
            for each in workload.ground.objects(NODES)
            if each["kind"] == "ResourceSlice"
        )
        assert published == devices * NODES
        assert published >= workload.counts(NODES)[1]

    @pytest.mark.parametrize(
        ("name", "count"),
        [
            ("ExtendedResource", 25),
            ("ExtendedResource50", 50),
            ("ImplicitExtendedResource", 25),
            ("ExtendedResourceScoring", 1),
        ],
    )
    def test_every_extended_resource_that_is_requested_has_a_class(
        self, name: str, count: int
    ) -> None:
        workload = BY_NAME[name]
        classes = [each for each in workload.ground.objects(1) if each["kind"] == "DeviceClass"]
        provided = {each["spec"].get("extendedResourceName") for each in classes} | {
            f"deviceclass.resource.kubernetes.io/{each['metadata']['name']}" for each in classes
        }
        requested = {resource for each in workload.pods for resource in each.requests}
        assert len(requested) == count
        assert requested <= provided

    @pytest.mark.parametrize(
        ("name", "allocated"),
        [
            ("SteadyStateEmpty", 0),
            ("SteadyStateHalf", 5 * NODES),
            ("SteadyStateFull", 10 * NODES - 10),
            ("Partitionable", 20 * NODES),
        ],
    )
    def test_devices_in_use_exist_and_have_one_claim_each(self, name: str, allocated: int) -> None:
        workload = BY_NAME[name]
        published = {
            (each["spec"]["pool"]["name"], one["name"])
            for each in workload.ground.objects(NODES)
            if each["kind"] == "ResourceSlice"
            for one in each["spec"].get("devices", ())
        }
        used = [
            (result["pool"], result["device"])
            for each in workload.pods_before(NODES)
            if each["kind"] == "ResourceClaim"
            for result in each["status"]["allocation"]["devices"]["results"]
        ]
        assert len(used) == len(set(used)) == allocated
        assert set(used) <= published

    def test_claims_tolerate_the_taint_of_all_devices(self) -> None:
        workload = BY_NAME["DeviceTaintToleration"]
        taints = {
            taint["key"]
            for each in workload.ground.objects(1)
            for one in each.get("spec", {}).get("devices", ())
            for taint in one["taints"]
        }
        assert workload.device_claim is not None
        (request,) = workload.device_claim.devices["requests"]
        assert {each["key"] for each in request["exactly"]["tolerations"]} == taints


class TestGangs:
    def test_every_three_pods_follow_the_group_that_needs_all_of_them(self) -> None:
        made = list(BY_NAME["Gangs1000"].pods_to_place(6))
        assert [each["kind"] for each in made] == ["PodGroup", "Pod", "Pod", "Pod"] * 2
        group, *members = made[4:]
        assert group["metadata"]["namespace"] == MEASURED
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        named = {each["spec"]["schedulingGroup"]["podGroupName"] for each in members}
        assert named == {group["metadata"]["name"]}

    @pytest.mark.parametrize("gangs", [1000, 2000, 3000])
    def test_there_are_as_many_as_the_name_says(self, gangs: int) -> None:
        assert BY_NAME[f"Gangs{gangs}"].counts(LARGEST) == (0, 3 * gangs)

    def test_they_come_last_since_their_control_plane_differs(self) -> None:
        assert chosen("Gangs1000,Basic")[-1].name == "Gangs1000"

"""Volumes, claims, Services, controllers and PodDisruptionBudgets of a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.objects import HOSTNAME_LABEL
from tests.hostile.tenant import STORAGE_CLASS, Collection, containers, expression

if TYPE_CHECKING:
    from tests.hostile.tenant import Json, Tenant

COLLECTION = Collection()
_add = COLLECTION.add


def _claim(tenant: Tenant, name: str, **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": tenant.meta(name),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def _of_claims(*names: str) -> list[Json]:
    return [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}}
        for index, name in enumerate(names)
    ]


@_add("3 000 claims that do not exist")
def claims_3000_missing(tenant: Tenant) -> Json:
    return tenant.pod("hostile", volumes=_of_claims(*(f"none-{i}" for i in range(3000))))


@_add("500 claims of a class that nobody provisions for")
def claims_500_waiting(tenant: Tenant) -> list[Json]:
    names = [f"claim-{i}" for i in range(500)]
    made = [_claim(tenant, name, storageClassName=STORAGE_CLASS) for name in names]
    return [*made, tenant.pod("hostile", volumes=_of_claims(*names))]


@_add("one claim with a selector of 3 000 requirements, asked for 3 000 times")
def claim_3000_times(tenant: Tenant) -> list[Json]:
    selector = {"matchExpressions": [expression(f"k{i}", "DoesNotExist") for i in range(3000)]}
    claim = _claim(tenant, "claim", storageClassName=STORAGE_CLASS, selector=selector)
    return [claim, tenant.pod("hostile", volumes=_of_claims(*["claim"] * 3000))]


@_add("2 000 ephemeral volumes, whose claims nobody makes")
def ephemeral_volumes_2000(tenant: Tenant) -> Json:
    spec = _claim(tenant, "", storageClassName=STORAGE_CLASS)["spec"]
    found = [
        {"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}} for i in range(2000)
    ]
    return tenant.pod("hostile", volumes=found)


@_add("5 000 inline volumes of CSI drivers that do not exist")
def csi_volumes_5000(tenant: Tenant) -> Json:
    found = [{"name": f"v{i}", "csi": {"driver": f"d{i}.example.com"}} for i in range(5000)]
    return tenant.pod("hostile", nodeSelector={"absent": ""}, volumes=found)


@_add("5 000 disks of a cloud, named in the pod")
def inline_disks_5000(tenant: Tenant) -> Json:
    found = [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"disk-{i}"}} for i in range(5000)]
    return tenant.pod("hostile", volumes=found)


@_add("5 000 disks of a cloud on a running pod")
def running_inline_disks_5000(tenant: Tenant) -> Json:
    found = [
        {"name": f"v{i}", "awsElasticBlockStore": {"volumeID": f"vol-{i}"}} for i in range(5000)
    ]
    return tenant.running("hostile", volumes=found)


@_add("8 000 volumes of ConfigMaps and Secrets that do not exist")
def config_volumes_8000(tenant: Tenant) -> Json:
    found = [
        {"name": f"v{i}", "configMap": {"name": f"m{i}"}}
        if i % 2
        else {"name": f"v{i}", "secret": {"secretName": f"s{i}"}}
        for i in range(8000)
    ]
    return tenant.pod("hostile", nodeSelector={"absent": ""}, volumes=found)


@_add("1 000 Services that select a pod that waits, which spreads by them by default")
def services_1000(tenant: Tenant) -> list[Json]:
    labels = {f"k{i}": "v" for i in range(1000)}
    made: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": tenant.meta(f"s{i}"),
            "spec": {"clusterIP": "None", "selector": {f"k{i}": "v"}, "ports": [{"port": 80}]},
        }
        for i in range(1000)
    ]
    return [*made, tenant.pod("hostile", labels=labels)]


@_add("ten Services of 5 000 keys each, all of which a pod that waits has")
def services_with_5000_keys(tenant: Tenant) -> list[Json]:
    labels = {f"k{i}": "v" for i in range(5000)}
    made: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": tenant.meta(f"s{i}"),
            "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]},
        }
        for i in range(10)
    ]
    return [*made, tenant.pod("hostile", labels=labels)]


@_add("a ReplicaSet with a selector of 3 000 requirements, and a pod that it owns")
def replica_set_with_3000_requirements(tenant: Tenant) -> list[Json]:
    keys = [expression(f"k{i}", "DoesNotExist") for i in range(3000)]
    template = tenant.pod("x", labels={"app": "a"})
    made = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": tenant.meta("web"),
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "a"}, "matchExpressions": keys},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": template["spec"]},
        },
    }
    owned = tenant.pod("hostile", labels={"app": "a"})
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "00000000-0000-4000-8000-000000000001",
            "controller": True,
        }
    ]
    return [made, owned]


@_add("300 PodDisruptionBudgets of 300 requirements each, and a pod that may preempt")
def disruption_budgets_300(tenant: Tenant) -> list[Json]:
    keys = [expression(f"k{i}", "DoesNotExist") for i in range(300)]
    made: list[Json] = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": tenant.meta(f"b{i}"),
            "spec": {"maxUnavailable": 0, "selector": {"matchExpressions": keys}},
        }
        for i in range(300)
    ]
    large = containers(1, resources={"requests": {"cpu": "3900m"}})
    few = [tenant.running(f"low-{i}", labels={"app": "a"}) for i in range(50)]
    return [*made, *few, tenant.pod("hostile", priorityClassName="tenant-high", containers=large)]


@_add("a pod that may preempt on every node, with 1 000 node affinity terms and 2 000 tolerations")
def preemption_with_many_terms(tenant: Tenant) -> list[Json]:
    terms = [
        {"matchExpressions": [expression(HOSTNAME_LABEL, "NotIn", f"no-{i}")]} for i in range(1000)
    ]
    filling = containers(1, resources={"requests": {"cpu": "3900m"}})
    low = [
        tenant.pod(f"low-{i}", containers=filling, nodeName=name)
        for i, name in enumerate(tenant.node_names[:200])
    ]
    large = tenant.pod(
        "hostile",
        priorityClassName="tenant-high",
        containers=containers(1, resources={"requests": {"cpu": "64"}}),
        tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(2000)],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        },
    )
    return [*low, large]

"""Pods that the tenant puts on a node itself: nobody decides for them, and all others meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL
from tests.hostile.tenant import (
    Collection,
    containers,
    expression,
    preferred,
    required,
    term,
)

if TYPE_CHECKING:
    from tests.hostile.tenant import Json, Tenant

COLLECTION = Collection()
_add = COLLECTION.add


@_add("a running pod with 1 000 extended resources that no node has")
def running_unknown_resources_1000(tenant: Tenant) -> Json:
    amounts = {f"example.com/r{i}": "1" for i in range(1000)}
    resources = {"requests": amounts, "limits": amounts}
    return tenant.running("hostile", containers=containers(1, resources=resources))


@_add("ten running pods with 3 000 extended resources each, all different")
def running_unknown_resources_30000(tenant: Tenant) -> list[Json]:
    made = []
    for index in range(10):
        amounts = {f"e{index}.com/r{i}": "1" for i in range(3000)}
        resources = {"requests": amounts, "limits": amounts}
        made.append(
            tenant.running(f"hostile-{index}", containers=containers(1, resources=resources))
        )
    return made


@_add("a running pod with 1 500 required anti-affinity terms")
def running_anti_affinity_1500(tenant: Tenant) -> Json:
    terms = [term(HOSTNAME_LABEL, expression("app", "In", f"a{i}")) for i in range(1500)]
    return tenant.running("hostile", affinity=required("podAntiAffinity", *terms))


@_add("a running pod with 2 000 preferred anti-affinity terms, NotIn over all namespaces")
def running_preferred_not_in_2000(tenant: Tenant) -> Json:
    terms = [
        term(HOSTNAME_LABEL, expression("app", "NotIn", f"a{i}"), namespaceSelector={})
        for i in range(2000)
    ]
    return tenant.running("hostile", affinity=preferred("podAntiAffinity", *terms))


@_add("the same, by zone, on ten running pods")
def running_preferred_not_in_by_zone(tenant: Tenant) -> list[Json]:
    made = []
    for index in range(10):
        terms = [
            term(ZONE_LABEL, expression("app", "NotIn", f"a{index}-{i}"), namespaceSelector={})
            for i in range(1000)
        ]
        made.append(
            tenant.running(f"hostile-{index}", affinity=preferred("podAntiAffinity", *terms))
        )
    return made


@_add("a running pod with 3 000 preferred affinity terms, each of its own topology key")
def running_preferred_topology_keys(tenant: Tenant) -> Json:
    terms = [
        term(f"t{i}", expression("absent", "DoesNotExist"), namespaceSelector={})
        for i in range(3000)
    ]
    return tenant.running("hostile", affinity=preferred("podAffinity", *terms))


@_add("a running pod with 1 500 anti-affinity terms, each of its own namespaceSelector")
def running_namespace_selectors(tenant: Tenant) -> Json:
    terms = [
        term(
            HOSTNAME_LABEL,
            expression("app", "In", "nobody"),
            namespaceSelector={"matchExpressions": [expression(f"k{i}", "DoesNotExist")]},
        )
        for i in range(1500)
    ]
    return tenant.running("hostile", affinity=required("podAntiAffinity", *terms))


@_add("a running pod with one anti-affinity term of 8 000 requirements")
def running_8000_requirements(tenant: Tenant) -> Json:
    found = [expression(f"k{i}", "DoesNotExist") for i in range(8000)]
    found.append(expression("absent", "Exists"))
    affinity = required("podAntiAffinity", term(HOSTNAME_LABEL, *found, namespaceSelector={}))
    return tenant.running("hostile", affinity=affinity)


@_add("a running pod with 10 000 labels")
def running_labels_10000(tenant: Tenant) -> Json:
    return tenant.running("hostile", labels={f"k{i}": "v" for i in range(10_000)})


@_add("a running pod with 6 000 host ports")
def running_host_ports_6000(tenant: Tenant) -> Json:
    ports = [{"containerPort": 1 + i, "hostPort": 1 + i} for i in range(6000)]
    return tenant.running("hostile", containers=containers(1, ports=ports))


@_add("a running pod with 3 000 containers")
def running_containers_3000(tenant: Tenant) -> Json:
    requests = {"requests": {"cpu": "1m", "memory": "1Ki"}}
    return tenant.running("hostile", containers=containers(3000, resources=requests))


@_add("1 000 running pods, each on a node of its own that does not exist")
def running_on_imaginary_nodes(tenant: Tenant) -> list[Json]:
    return [tenant.pod(f"hostile-{i}", nodeName=f"nowhere-{i}") for i in range(1000)]


@_add("200 containers of 9.2e18 bytes each on a node")
def running_absurd_sums(tenant: Tenant) -> Json:
    requests = {"requests": {"memory": "9223372036854775807", "cpu": "9223372036854775"}}
    return tenant.running("hostile", containers=containers(200, resources=requests))


@_add("1e102 CPUs on a node")
def running_absurd_quantity(tenant: Tenant) -> Json:
    requests = {"requests": {"cpu": "1e102"}}
    return tenant.running("hostile", containers=containers(1, resources=requests))


@_add(
    "labels of a running pod with 1 500 terms, changed again and again",
    change=lambda n: {"metadata": {"labels": {"turn": f"t{n}"}}},
)
def label_flips_of_running(tenant: Tenant) -> Json:
    terms = [
        term(HOSTNAME_LABEL, expression("app", "NotIn", f"a{i}"), namespaceSelector={})
        for i in range(1500)
    ]
    return tenant.running(
        "hostile", labels={"turn": "t"}, affinity=preferred("podAntiAffinity", *terms)
    )


@_add(
    "a running pod with 1 000 unknown resources, resized again and again",
    resized=True,
    change=lambda n: {
        "spec": {
            "containers": [{"name": "c0", "resources": {"requests": {"cpu": f"{1 + n % 9}m"}}}]
        }
    },
)
def resize_of_running(tenant: Tenant) -> Json:
    amounts = {f"example.com/r{i}": "1" for i in range(1000)}
    resources = {"requests": {**amounts, "cpu": "1m"}, "limits": amounts}
    return tenant.running("hostile", containers=containers(1, resources=resources))


@_add(
    "a running pod with fresh resources and labels each time, deleted and made again",
    comes_and_goes=True,
)
def running_comes_and_goes(tenant: Tenant) -> Json:
    amounts = {f"example.com/r{i}": "1" for i in range(500)}
    terms = [
        term(HOSTNAME_LABEL, expression("app", "NotIn", f"a{i}"), namespaceSelector={})
        for i in range(500)
    ]
    return tenant.running(
        "hostile",
        labels={f"k{i}": "v" for i in range(500)},
        affinity=preferred("podAntiAffinity", *terms),
        containers=containers(1, resources={"requests": amounts, "limits": amounts}),
    )

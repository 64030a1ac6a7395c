"""Pods that wait for the scheduler and are expensive to decide for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.objects import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL
from tests.hostile.tenant import (
    Collection,
    containers,
    expression,
    node_affinity,
    preferred,
    preferred_node_affinity,
    required,
    spread,
    term,
)

if TYPE_CHECKING:
    from tests.hostile.tenant import Json, Tenant

COLLECTION = Collection()
_add = COLLECTION.add
_KEYS = (HOSTNAME_LABEL, ZONE_LABEL, "kubernetes.io/os", "kubernetes.io/arch")


def _key(index: int) -> str:
    return _KEYS[index % len(_KEYS)]


# --- node selectors and node affinity


@_add("nodeSelector of 3 000 keys that no node has")
def node_selector_3000_keys(tenant: Tenant) -> Json:
    return tenant.pod("hostile", nodeSelector={f"k{i}": "" for i in range(3000)})


@_add("nodeSelector of 40 000 keys that no node has")
def node_selector_40000_keys(tenant: Tenant) -> Json:
    return tenant.pod("hostile", nodeSelector={f"k{i}": "" for i in range(40_000)})


@_add("one node affinity term of 5 000 NotIn on keys that all nodes have")
def node_affinity_5000_expressions(tenant: Tenant) -> Json:
    found = [expression(_key(i), "NotIn", f"no-{i}") for i in range(5000)]
    found.append(expression("absent", "Exists"))
    return tenant.pod("hostile", affinity=node_affinity({"matchExpressions": found}))


@_add("one node affinity term of 5 000 NotIn on keys that no node has")
def node_affinity_5000_absent_keys(tenant: Tenant) -> Json:
    found = [expression(f"k{i}", "NotIn", "x") for i in range(5000)]
    return tenant.pod("hostile", affinity=node_affinity({"matchExpressions": found}))


@_add("8 000 node affinity terms, each of a key that no node has")
def node_affinity_8000_terms(tenant: Tenant) -> Json:
    terms = [{"matchExpressions": [expression(f"k{i}", "Exists")]} for i in range(8000)]
    return tenant.pod("hostile", affinity=node_affinity(*terms))


@_add("400 node affinity terms of 20 expressions on keys that all nodes have")
def node_affinity_400_terms_of_20(tenant: Tenant) -> Json:
    terms = [
        {
            "matchExpressions": [
                *(expression(_key(j), "NotIn", f"no-{i}-{j}") for j in range(19)),
                expression(HOSTNAME_LABEL, "In", f"nowhere-{i}"),
            ]
        }
        for i in range(400)
    ]
    return tenant.pod("hostile", affinity=node_affinity(*terms))


@_add("node affinity In with 40 000 hostnames that do not exist")
def node_affinity_in_40000_values(tenant: Tenant) -> Json:
    found = expression(HOSTNAME_LABEL, "In", *(f"nowhere-{i}" for i in range(40_000)))
    return tenant.pod("hostile", affinity=node_affinity({"matchExpressions": [found]}))


@_add("10 000 Gt and Lt on the hostname, which is no number")
def node_affinity_gt_lt_10000(tenant: Tenant) -> Json:
    terms = [
        {"matchExpressions": [expression(HOSTNAME_LABEL, ("Gt", "Lt")[i % 2], str(i))]}
        for i in range(10_000)
    ]
    return tenant.pod("hostile", affinity=node_affinity(*terms))


@_add("10 000 terms of matchFields on the names of nodes that do not exist")
def match_fields_10000(tenant: Tenant) -> Json:
    terms = [
        {"matchFields": [expression("metadata.name", "In", f"nowhere-{i}")]} for i in range(10_000)
    ]
    return tenant.pod("hostile", affinity=node_affinity(*terms))


@_add("one term of 8 000 matchFields NotIn, which leaves all nodes but those it names")
def match_fields_not_in_8000(tenant: Tenant) -> Json:
    fields = [expression("metadata.name", "NotIn", f"nowhere-{i}") for i in range(8000)]
    fields.append(expression("metadata.name", "In", "nowhere"))
    return tenant.pod("hostile", affinity=node_affinity({"matchFields": fields}))


@_add("5 000 preferred node affinity terms on keys that all nodes have")
def preferred_node_affinity_5000(tenant: Tenant) -> Json:
    terms = [{"matchExpressions": [expression(_key(i), "NotIn", f"no-{i}")]} for i in range(5000)]
    return tenant.pod("hostile", affinity=preferred_node_affinity(*terms))


@_add("8 000 preferred node affinity terms, each of its own key that no node has")
def preferred_node_affinity_8000_keys(tenant: Tenant) -> Json:
    terms = [{"matchExpressions": [expression(f"k{i}", "DoesNotExist")]} for i in range(8000)]
    return tenant.pod("hostile", affinity=preferred_node_affinity(*terms))


# --- affinity to pods


@_add("2 000 required anti-affinity terms, each of its own selector")
def anti_affinity_2000_selectors(tenant: Tenant) -> Json:
    terms = [term(HOSTNAME_LABEL, expression("app", "In", f"a{i}")) for i in range(2000)]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("2 000 required anti-affinity terms, each of its own label key")
def anti_affinity_2000_label_keys(tenant: Tenant) -> Json:
    terms = [term(HOSTNAME_LABEL, expression(f"k{i}", "Exists")) for i in range(2000)]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("3 000 required anti-affinity terms, each of its own topology key")
def anti_affinity_3000_topology_keys(tenant: Tenant) -> Json:
    terms = [term(f"t{i}", expression("app", "Exists")) for i in range(3000)]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("1 500 required anti-affinity terms that match no pod, NotIn over all namespaces")
def anti_affinity_1500_not_in_everywhere(tenant: Tenant) -> Json:
    everywhere: Json = {"namespaceSelector": {}}
    terms = [
        term(
            ZONE_LABEL,
            expression("app", "NotIn", f"a{i}"),
            expression("absent", "Exists"),
            **everywhere,
        )
        for i in range(1500)
    ]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("2 000 required affinity terms, each of its own selector")
def affinity_2000_selectors(tenant: Tenant) -> Json:
    terms = [term(ZONE_LABEL, expression("app", "NotIn", f"a{i}")) for i in range(2000)]
    terms.append(term(ZONE_LABEL, expression("absent", "Exists")))
    return tenant.pod("hostile", affinity=required("podAffinity", *terms))


@_add("2 000 preferred anti-affinity terms, NotIn over all namespaces")
def preferred_anti_affinity_2000(tenant: Tenant) -> Json:
    terms = [
        term(HOSTNAME_LABEL, expression("app", "NotIn", f"a{i}"), namespaceSelector={})
        for i in range(2000)
    ]
    return tenant.pod("hostile", affinity=preferred("podAntiAffinity", *terms))


@_add("1 500 anti-affinity terms, each of its own namespaceSelector")
def anti_affinity_1500_namespace_selectors(tenant: Tenant) -> Json:
    terms = [
        term(
            HOSTNAME_LABEL,
            expression("app", "Exists"),
            namespaceSelector={"matchExpressions": [expression(f"k{i}", "DoesNotExist")]},
        )
        for i in range(1500)
    ]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("60 anti-affinity terms of 500 namespaces each")
def anti_affinity_namespace_lists(tenant: Tenant) -> Json:
    terms = [
        term(
            HOSTNAME_LABEL,
            expression("app", "Exists"),
            namespaces=[f"team-{i}-{j}" for j in range(500)],
        )
        for i in range(60)
    ]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("1 000 anti-affinity terms with matchLabelKeys and mismatchLabelKeys")
def anti_affinity_match_label_keys(tenant: Tenant) -> Json:
    labels = {f"k{i}": f"v{i}" for i in range(2000)}
    terms = [
        term(
            HOSTNAME_LABEL,
            expression("app", "Exists"),
            matchLabelKeys=[f"k{i}"],
            mismatchLabelKeys=[f"k{1000 + i}"],
        )
        for i in range(1000)
    ]
    affinity = required("podAntiAffinity", *terms)
    return tenant.pod("hostile", labels=labels, affinity=affinity)


@_add("one anti-affinity term whose selector has 8 000 requirements")
def anti_affinity_8000_requirements(tenant: Tenant) -> Json:
    found = [expression(f"k{i}", "DoesNotExist") for i in range(8000)]
    affinity = required("podAntiAffinity", term(HOSTNAME_LABEL, *found, namespaceSelector={}))
    return tenant.pod("hostile", affinity=affinity)


@_add("one affinity term whose selector has 40 000 values")
def affinity_40000_values(tenant: Tenant) -> Json:
    found = expression("app", "In", *(f"a{i}" for i in range(40_000)))
    affinity = required("podAffinity", term(HOSTNAME_LABEL, found, namespaceSelector={}))
    return tenant.pod("hostile", affinity=affinity)


@_add("1 000 affinity terms that the pod itself matches")
def affinity_1000_to_itself(tenant: Tenant) -> Json:
    terms = [term(ZONE_LABEL, expression("app", "NotIn", f"a{i}")) for i in range(1000)]
    terms.append(term("absent", expression("app", "In", "me")))
    return tenant.pod("hostile", labels={"app": "me"}, affinity=required("podAffinity", *terms))


# --- topology spread


@_add("1 000 hard spread constraints, each of its own key that no node has")
def spread_1000_absent_keys(tenant: Tenant) -> Json:
    found = [spread(f"t{i}", expression("app", "Exists")) for i in range(1000)]
    return tenant.pod("hostile", topologySpreadConstraints=found)


@_add("6 000 hard spread constraints, each of its own key that no node has")
def spread_6000_absent_keys(tenant: Tenant) -> Json:
    found = [spread(f"t{i}") for i in range(6000)]
    return tenant.pod("hostile", topologySpreadConstraints=found)


@_add("6 000 soft spread constraints, each of its own key that no node has")
def spread_soft_6000_keys(tenant: Tenant) -> Json:
    found = [spread(f"t{i}", soft=True) for i in range(6000)]
    return tenant.pod("hostile", topologySpreadConstraints=found)


@_add("hard and soft constraints on all keys of nodes, each with a selector of 3 000 requirements")
def spread_large_selectors(tenant: Tenant) -> Json:
    keys = [expression(f"k{i}", "DoesNotExist") for i in range(3000)]
    found = [
        spread(HOSTNAME_LABEL, *keys, minDomains=2_000_000_000, nodeTaintsPolicy="Honor"),
        spread(ZONE_LABEL, *keys, nodeAffinityPolicy="Ignore"),
        spread(HOSTNAME_LABEL, *keys, soft=True),
        spread(ZONE_LABEL, *keys, soft=True, nodeTaintsPolicy="Honor"),
    ]
    return tenant.pod("hostile", topologySpreadConstraints=found)


@_add("1 000 soft spread constraints with matchLabelKeys")
def spread_match_label_keys(tenant: Tenant) -> Json:
    labels = {f"k{i}": f"v{i}" for i in range(1000)}
    found = [spread(f"t{i}", soft=True, matchLabelKeys=[f"k{i}"]) for i in range(1000)]
    return tenant.pod("hostile", labels=labels, topologySpreadConstraints=found)


@_add("spread by hostname, Honor, beside 5 000 node affinity terms and 5 000 tolerations")
def spread_with_expensive_inclusion(tenant: Tenant) -> Json:
    terms = [
        {"matchExpressions": [expression(HOSTNAME_LABEL, "NotIn", f"no-{i}")]} for i in range(5000)
    ]
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(5000)]
    return tenant.pod(
        "hostile",
        affinity=node_affinity(*terms),
        tolerations=tolerations,
        topologySpreadConstraints=[
            spread(REGION_LABEL, nodeTaintsPolicy="Honor"),
            spread(HOSTNAME_LABEL, nodeTaintsPolicy="Honor", minDomains=5000),
        ],
    )


# --- tolerations, ports, containers, images


@_add("15 000 tolerations")
def tolerations_15000(tenant: Tenant) -> Json:
    found = [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(15_000)]
    return tenant.pod("hostile", tolerations=found)


@_add("6 000 host ports")
def host_ports_6000(tenant: Tenant) -> Json:
    ports = [{"containerPort": 1 + i, "hostPort": 1 + i} for i in range(6000)]
    return tenant.pod("hostile", containers=containers(1, ports=ports))


@_add("3 000 containers that request something")
def containers_3000(tenant: Tenant) -> Json:
    requests = {"requests": {"cpu": "1m", "memory": "1Ki", "ephemeral-storage": "1"}}
    return tenant.pod("hostile", containers=containers(3000, resources=requests))


@_add("2 000 init containers, every other one a sidecar")
def init_containers_2000(tenant: Tenant) -> Json:
    found = containers(2000, resources={"requests": {"cpu": "1m"}})
    for index, each in enumerate(found):
        each["name"] = f"i{index}"
        if index % 2:
            each["restartPolicy"] = "Always"
    return tenant.pod("hostile", initContainers=found)


@_add("2 500 images with names of 250 characters")
def images_2500_long_names(tenant: Tenant) -> Json:
    found = containers(2500)
    for index, each in enumerate(found):
        each["image"] = f"{'registry' * 30}/{index:06}"
    return tenant.pod("hostile", containers=found)


# --- resources


@_add("1 000 extended resources that no node has")
def unknown_resources_1000(tenant: Tenant) -> Json:
    amounts = {f"example.com/r{i}": "1" for i in range(1000)}
    resources = {"requests": amounts, "limits": amounts}
    return tenant.pod("hostile", containers=containers(1, resources=resources))


@_add("10 000 extended resources that no node has")
def unknown_resources_10000(tenant: Tenant) -> Json:
    amounts = {f"a.b/r{i}": "1" for i in range(10_000)}
    resources = {"requests": amounts, "limits": amounts}
    return tenant.pod("hostile", containers=containers(1, resources=resources))


@_add("200 containers of 9.2e18 bytes each, the sum of which is no 64-bit number")
def absurd_sums(tenant: Tenant) -> Json:
    requests = {"requests": {"memory": "9223372036854775807", "cpu": "9223372036854775"}}
    return tenant.pod("hostile", containers=containers(200, resources=requests))


@_add("1e30 CPUs, 1e30 bytes, and a billionth of a CPU")
def absurd_quantities(tenant: Tenant) -> Json:
    found = containers(3)
    for each, cpu in zip(found, ("1e30", "1n", "1u"), strict=True):
        each["resources"] = {"requests": {"cpu": cpu, "memory": "1e30"}}
    return tenant.pod("hostile", containers=found)


@_add("1 000 waiting pods with resources of the whole pod, each of another size")
def pod_level_resources(tenant: Tenant) -> list[Json]:
    return [
        tenant.pod(
            f"hostile-{i}",
            resources={"requests": {"cpu": f"{100 + i}", "memory": f"{i + 1}Gi"}},
            containers=containers(2, resources={"requests": {"cpu": "1m"}}),
        )
        for i in range(1000)
    ]


# --- metadata and the rest


@_add("10 000 labels")
def labels_10000(tenant: Tenant) -> Json:
    return tenant.pod("hostile", labels={f"k{i}": "v" for i in range(10_000)})


@_add("annotations of 256 KiB in unusual characters")
def annotations_unusual(tenant: Tenant) -> Json:
    texts = ("\u202e\u0000\U0001f9e8\ufdd0\u0301", '"\\\n\t{}', "\u5f62" * 40)
    made = tenant.pod("hostile", nodeSelector={"absent": ""})
    made["metadata"]["annotations"] = {f"a{i}": texts[i % 3] * 2 for i in range(2000)}
    return made


@_add(
    "5 000 scheduling gates, of which one is taken away by the second",
    change=lambda n: {"spec": {"schedulingGates": [{"name": f"g{i}"} for i in range(5000 - n)]}},
)
def scheduling_gates_5000(tenant: Tenant) -> Json:
    return tenant.pod("hostile", schedulingGates=[{"name": f"g{i}"} for i in range(5000)])


@_add("3 000 owner references")
def owner_references_3000(tenant: Tenant) -> Json:
    made = tenant.pod("hostile", nodeSelector={"absent": ""})
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{i}", "uid": f"uid-{i}"}
        for i in range(3000)
    ]
    return made


@_add("names, keys and values as long as they may be, 1 000 of each")
def longest_names(tenant: Tenant) -> Json:
    prefix = ".".join(["d" * 60] * 4)
    return tenant.pod(
        ".".join(["p" * 60] * 4),
        labels={f"{prefix}/{i:063}": f"{i:063}" for i in range(1000)},
        nodeSelector={f"{prefix}/{i:063}": f"{i:063}" for i in range(1000)},
    )


@_add(
    "a finalizer that nobody removes, on a pod that is deleted and still waits", comes_and_goes=True
)
def finalizer_that_stays(tenant: Tenant) -> Json:
    made = tenant.pod("hostile", nodeSelector={f"k{i}": "" for i in range(1000)})
    made["metadata"]["finalizers"] = [f"example.com/f{i}" for i in range(100)]
    return made


@_add("10 000 environment variables and a preStop command of 200 kB")
def environment_and_pre_stop(tenant: Tenant) -> Json:
    stop = {"preStop": {"exec": {"command": ["true", *(["x" * 100] * 2000)]}}}
    env = [{"name": f"E{i}", "value": "v" * 20} for i in range(10_000)]
    return tenant.pod(
        "hostile", nodeSelector={"absent": ""}, containers=containers(1, env=env, lifecycle=stop)
    )


@_add("1 000 resource claims, which are not built yet")
def resource_claims_1000(tenant: Tenant) -> Json:
    # The API server takes any number of claims that no container asks for.
    claims = [{"name": f"c{i}", "resourceClaimTemplateName": "none"} for i in range(1000)]
    return tenant.pod("hostile", resourceClaims=claims)


# --- many, again and again


def _two_terms(tenant: Tenant, index: int) -> Json:
    return tenant.pod(
        f"hostile-{index}",
        labels={"app": f"a{index}"},
        nodeSelector={"absent": ""},
        affinity=required(
            "podAntiAffinity",
            term(HOSTNAME_LABEL, expression("app", "In", f"a{index}")),
            term(ZONE_LABEL, expression("app", "In", f"b{index}")),
        ),
    )


@_add("2 000 waiting pods of two anti-affinity terms each, all different")
def waiting_2000_with_two_terms(tenant: Tenant) -> list[Json]:
    return [_two_terms(tenant, index) for index in range(2000)]


@_add("ten waiting pods of 500 anti-affinity terms each, which any pod that starts may wake")
def waiting_10_with_500_terms(tenant: Tenant) -> list[Json]:
    terms = [
        term(HOSTNAME_LABEL, expression("app", "NotIn", f"a{i}"), namespaceSelector={})
        for i in range(500)
    ]
    affinity = {**required("podAffinity", *terms, term("absent", expression("app", "Exists")))}
    return [tenant.pod(f"hostile-{i}", affinity=affinity) for i in range(10)]


@_add(
    "labels of a waiting pod with 1 500 terms, changed again and again",
    change=lambda n: {"metadata": {"labels": {"turn": f"t{n}"}}},
)
def label_flips_of_waiting(tenant: Tenant) -> Json:
    terms = [term(HOSTNAME_LABEL, expression("app", "In", f"a{i}")) for i in range(1500)]
    return tenant.pod(
        "hostile",
        labels={"turn": "t"},
        nodeSelector={"absent": ""},
        affinity=required("podAntiAffinity", *terms),
    )


@_add(
    "a pod of 2 000 anti-affinity terms, deleted and made again all the time", comes_and_goes=True
)
def anti_affinity_comes_and_goes(tenant: Tenant) -> Json:
    terms = [term(HOSTNAME_LABEL, expression(f"k{i}", "Exists")) for i in range(2000)]
    return tenant.pod("hostile", affinity=required("podAntiAffinity", *terms))


@_add("priority of the tenant's choice: 300 pods of the highest class it may name")
def highest_priority(tenant: Tenant) -> list[Json]:
    found = containers(1, resources={"requests": {"cpu": "3900m"}})
    return [
        tenant.pod(
            f"hostile-{i}",
            priorityClassName="tenant-high",
            containers=found,
            nodeSelector={"absent": ""},
        )
        for i in range(300)
    ]

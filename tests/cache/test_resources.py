from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from cache.objects import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Quantity,
    ResourceRequirements,
)
from cache.quantity import INT64_MAX
from cache.resources import (
    DEFAULT_MEMORY_REQUEST,
    DEFAULT_MILLI_CPU_REQUEST,
    MalformedObjectError,
    is_extended_resource_name,
    is_qualified_name,
    is_scalar_resource_name,
    pod_amounts,
    resource_amounts,
)
from tests import strategies

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1024 * 1024
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def requesting(**requests: Quantity) -> ResourceRequirements:
    return ResourceRequirements(requests=requests)


def container(name: str = "main", **requests: Quantity) -> Container:
    return Container(name=name, resources=requesting(**requests))


def sidecar(name: str, **requests: Quantity) -> Container:
    return Container(name=name, resources=requesting(**requests), restart_policy="Always")


def pod(
    *containers: Container,
    init: tuple[Container, ...] = (),
    overhead: Mapping[str, Quantity] | None = None,
    level: ResourceRequirements | None = None,
    status: PodStatus | None = None,
) -> Pod:
    return Pod(
        spec=PodSpec(
            containers=containers,
            init_containers=init,
            overhead=overhead or {},
            resources=level,
        ),
        status=status or PodStatus(),
    )


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        pytest.param("example.com/gpu", True, True, id="extended"),
        pytest.param("cpu", False, False, id="basic"),
        pytest.param("gpu", False, False, id="without a prefix"),
        pytest.param("hugepages-2Mi", False, True, id="huge pages"),
        pytest.param("attachable-volumes-csi-x", False, True, id="attachable volumes"),
        pytest.param("kubernetes.io/batteries", False, True, id="native"),
        pytest.param("node.kubernetes.io/batteries", False, True, id="native subdomain"),
        pytest.param("requests.example.com/gpu", False, False, id="of a quota"),
        pytest.param("Example.com/gpu", False, False, id="upper-case prefix"),
        pytest.param("example.com/a/b", False, False, id="two slashes"),
        pytest.param("example.com/", False, False, id="nothing after the slash"),
        pytest.param("/gpu", False, False, id="nothing before the slash"),
        pytest.param("example.com/" + "x" * 63, True, True, id="longest name"),
        pytest.param("example.com/" + "x" * 64, False, False, id="name too long"),
        pytest.param("x." * 121 + "x/gpu", True, True, id="longest prefix with requests."),
        pytest.param("x." * 122 + "x/gpu", False, False, id="prefix too long with requests."),
    ],
)
def test_which_names_are_counted(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended_resource_name(name), is_scalar_resource_name(name)) == (extended, scalar)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("app", True, id="name"),
        pytest.param("a_b/app", False, id="underscore in the prefix"),
        pytest.param("a.b-c/App_1", True, id="prefix and name"),
        pytest.param("", False, id="empty"),
        pytest.param("-app", False, id="starts with a dash"),
        pytest.param("app.", False, id="ends with a dot"),
        pytest.param("a..b/app", False, id="empty part of the prefix"),
        pytest.param("app\n", False, id="ends with a line feed"),
    ],
)
def test_which_names_are_qualified(name: str, expected: bool) -> None:
    assert is_qualified_name(name) is expected


# --- amounts ----------------------------------------------------------------------------------


def test_amounts_are_milli_cores_for_cpu_and_base_units_for_all_others() -> None:
    amounts = resource_amounts({"cpu": "1.5", "memory": "1Ki", "storage": 7, "pods": "110"}, "x")
    assert amounts == {"cpu": 1500, "memory": 1024, "storage": 7, "pods": 110}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod(container()), {}, id="nothing"),
        pytest.param(
            pod(container(cpu="100m", memory="1Mi")), {"cpu": 100, "memory": MIB}, id="one"
        ),
        pytest.param(pod(container(cpu="0")), {"cpu": 0}, id="zero is kept"),
        pytest.param(
            pod(container(**{"example.com/gpu": "2", "hugepages-2Mi": "4Mi", "odd": "1"})),
            {"example.com/gpu": 2, "hugepages-2Mi": 4 * MIB},
            id="names that do not count are left out",
        ),
        pytest.param(
            pod(container(cpu="100m"), container("b", cpu="1", memory="1")),
            {"cpu": 1100, "memory": 1},
            id="containers add up",
        ),
        pytest.param(
            pod(container(cpu="0.5m"), container("b", cpu="0.5m")),
            {"cpu": 1},
            id="rounded once, after adding up",
        ),
        pytest.param(
            pod(container(memory="8Ei"), container("b", memory="8Ei")),
            {"memory": INT64_MAX},
            id="sums saturate",
        ),
        pytest.param(
            pod(container(cpu="1"), init=(container("i", cpu="3"), container("j", cpu="2"))),
            {"cpu": 3000},
            id="largest init container",
        ),
        pytest.param(
            pod(container(cpu="4"), init=(container("i", cpu="3", memory="1"),)),
            {"cpu": 4000, "memory": 1},
            id="each resource has its own maximum",
        ),
        pytest.param(
            pod(container(cpu="1"), init=(sidecar("s", cpu="2"),)),
            {"cpu": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            pod(
                container(cpu="1"),
                init=(sidecar("s", cpu="2"), container("i", cpu="5")),
            ),
            {"cpu": 7000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod(
                container(cpu="1"),
                init=(container("i", cpu="5"), sidecar("s", cpu="2")),
            ),
            {"cpu": 5000},
            id="an init container is gone before the sidecars after it",
        ),
        pytest.param(
            pod(container(cpu="1"), overhead={"cpu": "250m", "memory": "1"}),
            {"cpu": 1250, "memory": 1},
            id="overhead",
        ),
        pytest.param(
            pod(
                container(cpu="1", memory="2"),
                init=(container("i", cpu="9"),),
                level=requesting(cpu="3"),
                overhead={"cpu": "1"},
            ),
            {"cpu": 4000, "memory": 2},
            id="a pod-level request replaces the sum, not the overhead",
        ),
        pytest.param(
            pod(container(cpu="1"), level=requesting(**{"example.com/gpu": "3"})),
            {"cpu": 1000},
            id="only cpu, memory and huge pages can be requested for the pod",
        ),
        pytest.param(
            pod(
                container(**{"hugepages-2Mi": "2Mi"}), level=requesting(**{"hugepages-2Mi": "6Mi"})
            ),
            {"hugepages-2Mi": 6 * MIB},
            id="pod-level huge pages",
        ),
    ],
)
def test_a_pod_requests_what_it_needs_at_its_hungriest(one: Pod, expected: dict[str, int]) -> None:
    assert pod_amounts(one)[0] == expected


def resized(
    *, reason: str = "", resources: ResourceRequirements | None, **allocated: Quantity
) -> PodStatus:
    return PodStatus(
        conditions=(
            (PodCondition(type="PodResizePending", status="True", reason=reason),) if reason else ()
        ),
        container_statuses=(
            ContainerStatus(name="main", resources=resources, allocated_resources=allocated),
        ),
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(resized(resources=None, cpu="9"), 2000, id="no report, so the spec counts"),
        pytest.param(resized(resources=requesting(cpu="2")), 2000, id="at rest"),
        pytest.param(resized(resources=requesting(cpu="3")), 3000, id="still holds more"),
        pytest.param(resized(resources=requesting(cpu="1")), 2000, id="about to take more"),
        pytest.param(resized(resources=requesting(cpu="1"), cpu="4"), 4000, id="was granted more"),
        pytest.param(
            resized(resources=requesting(cpu="1"), reason="Infeasible"),
            1000,
            id="what is infeasible does not count",
        ),
        pytest.param(
            resized(resources=requesting(cpu="1"), reason="Infeasible", cpu="1500m"),
            1500,
            id="what was granted before does",
        ),
        pytest.param(
            resized(resources=requesting(cpu="1"), reason="Deferred"), 2000, id="deferred counts"
        ),
    ],
)
def test_while_a_container_is_resized_the_largest_amount_counts(
    status: PodStatus, expected: int
) -> None:
    assert pod_amounts(pod(container(cpu="2"), status=status))[0] == {"cpu": expected}


def test_a_resize_counts_for_sidecars_but_not_for_ordinary_init_containers() -> None:
    statuses = tuple(
        ContainerStatus(name=name, resources=requesting(cpu="8")) for name in ("s", "i")
    )
    one = pod(
        container(cpu="1"),
        init=(container("i", cpu="1"), sidecar("s", cpu="1")),
        status=PodStatus(init_container_statuses=statuses),
    )
    assert pod_amounts(one)[0] == {"cpu": 9000}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(PodStatus(), {"cpu": 2000}, id="no report"),
        pytest.param(PodStatus(resources=requesting(cpu="3")), {"cpu": 3000}, id="holds more"),
        pytest.param(
            PodStatus(resources=requesting(cpu="1"), allocated_resources={"cpu": "4"}),
            {"cpu": 4000},
            id="was granted more",
        ),
        pytest.param(
            PodStatus(
                resources=requesting(memory="1"),
                conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),),
            ),
            {"cpu": 0},
            id="infeasible and not reported is nothing",
        ),
    ],
)
def test_while_the_pod_is_resized_the_largest_amount_counts(
    status: PodStatus, expected: dict[str, int]
) -> None:
    amounts, *_ = pod_amounts(pod(container(), level=requesting(cpu="2"), status=status))
    assert amounts == expected


@pytest.mark.parametrize(
    ("one", "cpu", "memory"),
    [
        pytest.param(pod(container(cpu="1", memory="5")), 1000, 5, id="both requested"),
        pytest.param(
            pod(container()), DEFAULT_MILLI_CPU_REQUEST, DEFAULT_MEMORY_REQUEST, id="neither"
        ),
        pytest.param(pod(container(cpu="0", memory="0")), 0, 0, id="an explicit zero stays"),
        pytest.param(
            pod(container(), container("b", cpu="1")),
            1100,
            2 * DEFAULT_MEMORY_REQUEST,
            id="each container has its default",
        ),
        pytest.param(
            pod(container(cpu="50m", memory="1"), init=(container("i"),)),
            100,
            DEFAULT_MEMORY_REQUEST,
            id="init containers too",
        ),
        pytest.param(
            pod(container(), overhead={"cpu": "1"}),
            1100,
            DEFAULT_MEMORY_REQUEST,
            id="overhead comes on top",
        ),
        pytest.param(
            pod(container(), level=requesting(cpu="1")),
            1000,
            DEFAULT_MEMORY_REQUEST,
            id="a pod-level request replaces the default",
        ),
        pytest.param(
            pod(container(memory="7"), container("b"), level=requesting(cpu="1")),
            1000,
            7,
            id="with pod-level requests one container's request is enough",
        ),
    ],
)
def test_a_container_without_requests_counts_with_defaults(one: Pod, cpu: int, memory: int) -> None:
    assert pod_amounts(one)[1:] == (cpu, memory)


# --- errors -----------------------------------------------------------------------------------

BAD = requesting(cpu="1", memory="lots")


@pytest.mark.parametrize(
    ("one", "path"),
    [
        pytest.param(
            pod(container(memory="lots")),
            "spec.containers[0].resources.requests[memory]",
            id="the only container",
        ),
        pytest.param(
            pod(container(), container("b", memory="lots")),
            "spec.containers[1].resources.requests[memory]",
            id="a container",
        ),
        pytest.param(
            pod(container(), init=(container("i", memory="lots"),)),
            "spec.initContainers[0].resources.requests[memory]",
            id="an init container",
        ),
        pytest.param(
            pod(container(), overhead={"memory": "lots"}), "spec.overhead[memory]", id="overhead"
        ),
        pytest.param(
            pod(container(), level=BAD), "spec.resources.requests[memory]", id="pod-level"
        ),
        pytest.param(
            pod(container(), status=resized(resources=BAD)),
            "status.containerStatuses[0].resources.requests[memory]",
            id="status of a container",
        ),
        pytest.param(
            pod(container(), status=resized(resources=requesting(), memory="lots")),
            "status.containerStatuses[0].allocatedResources[memory]",
            id="allocation of a container",
        ),
        pytest.param(
            pod(container(), level=requesting(cpu="1"), status=PodStatus(resources=BAD)),
            "status.resources.requests[memory]",
            id="status of the pod",
        ),
    ],
)
def test_an_unreadable_quantity_is_an_error_that_names_its_path(one: Pod, path: str) -> None:
    with pytest.raises(MalformedObjectError, match="'lots' is not a quantity") as caught:
        pod_amounts(one)
    assert caught.value.path == path
    assert str(caught.value) == f"{path}: {caught.value.why}"


def test_an_unreadable_amount_is_an_error_that_names_its_path() -> None:
    with pytest.raises(MalformedObjectError) as caught:
        resource_amounts({"cpu": "1", "memory": ""}, "status.allocatable")
    assert caught.value.path == "status.allocatable[memory]"


# --- properties -------------------------------------------------------------------------------


def through_general_path(one: Pod) -> Pod:
    """The same pod, made to look unusual: an init container that requests nothing."""
    spec = one.spec
    return pod(
        *spec.containers,
        init=(*spec.init_containers, container("nothing", cpu="0", memory="0")),
        overhead=spec.overhead,
        level=spec.resources,
        status=one.status,
    )


@PROPERTY
@given(strategies.pods(with_affinity=False, with_status=True))
def test_an_init_container_that_needs_nothing_changes_nothing(one: Pod) -> None:
    other = through_general_path(one)
    assert {"cpu": 0, "memory": 0, **pod_amounts(one)[0]} == pod_amounts(other)[0]


@PROPERTY
@given(strategies.pods(with_affinity=False, with_status=True))
def test_defaults_only_ever_add(one: Pod) -> None:
    requests, cpu, memory = pod_amounts(one)
    assert requests.get("cpu", 0) <= cpu
    assert requests.get("memory", 0) <= memory


def test_pods_of_one_template_share_their_amounts() -> None:
    first, second = (pod(container(cpu="100m", memory="1Gi")) for _ in range(2))
    assert pod_amounts(first)[0] is pod_amounts(second)[0]


@given(strategies.containers())
def test_the_short_way_for_plain_pods_gives_what_the_general_one_gives(one: Container) -> None:
    plain = pod(one)
    general = pod(one, init=(Container(name="i", resources=one.resources),))
    assert pod_amounts(plain) == pod_amounts(general)

from __future__ import annotations

from cache.objects import LabelSelector
from cache.workload_objects import (
    ReplicaSet,
    ReplicationController,
    Service,
    ServiceSpec,
    SetSpec,
    StatefulSet,
    WorkloadMeta,
)
from cache.workloads import Workloads

META = WorkloadMeta("web", "default", "u")
SELECTOR = SetSpec(LabelSelector(match_labels={"app": "a"}))


def test_services_are_found_by_namespace() -> None:
    workloads, service = Workloads(), Service(META, ServiceSpec({"app": "a"}))
    workloads.service_changed(None, service)
    assert workloads.services("default") == (service,)
    assert workloads.services("other") == ()


def test_a_service_without_a_selector_selects_nothing() -> None:
    workloads = Workloads()
    workloads.service_changed(None, Service(META))
    assert workloads.services("default") == ()


def test_a_service_is_replaced_and_forgotten() -> None:
    workloads = Workloads()
    old, new = Service(META, ServiceSpec({"app": "a"})), Service(META, ServiceSpec({"app": "b"}))
    workloads.service_changed(None, old)
    workloads.services("default")
    workloads.service_changed(old, new)
    assert workloads.services("default") == (new,)
    workloads.service_changed(new, None)
    assert workloads.services("default") == ()


def test_controllers_are_found_by_name_until_they_go() -> None:
    workloads = Workloads()
    replica_set, stateful_set = ReplicaSet(META, SELECTOR), StatefulSet(META, SELECTOR)
    controller = ReplicationController(META, ServiceSpec({"app": "a"}))
    workloads.controller_changed(None, replica_set)
    workloads.controller_changed(None, stateful_set)
    workloads.controller_changed(None, controller)
    assert workloads.controller(ReplicaSet, "default", "web") is replica_set
    assert workloads.controller(StatefulSet, "default", "web") is stateful_set
    assert workloads.controller(ReplicationController, "default", "web") is controller
    workloads.controller_changed(replica_set, None)
    workloads.controller_changed(stateful_set, None)
    workloads.controller_changed(controller, None)
    assert workloads.controller(ReplicaSet, "default", "web") is None
    assert workloads.controller(StatefulSet, "default", "web") is None
    assert workloads.controller(ReplicationController, "default", "web") is None


def test_a_status_update_of_a_controller_is_no_new_version() -> None:
    workloads, old = Workloads(), ReplicaSet(META, SELECTOR)
    workloads.controller_changed(None, old)
    version = workloads.version
    workloads.controller_changed(old, ReplicaSet(META, SELECTOR))
    assert workloads.version == version
    workloads.controller_changed(old, ReplicaSet(META, SetSpec()))
    assert workloads.version > version


def test_nothing_is_kept_of_namespaces_without_services() -> None:
    workloads = Workloads()
    for index in range(100):
        namespace = f"ns-{index}"
        assert workloads.services(namespace) == ()
        service = Service(WorkloadMeta("web", namespace, "u"), ServiceSpec({"app": "a"}))
        workloads.service_changed(None, service)
        assert workloads.services(namespace) == (service,)
        workloads.service_changed(service, None)
        assert workloads.services(namespace) == ()
    assert (workloads._services, workloads._listed) == ({}, {})

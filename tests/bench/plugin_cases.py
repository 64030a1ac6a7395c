"""A cluster in which every plugin has something to do, and pods that make each of them do it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cache.objects import (
    Container,
    ContainerRestartRule,
    GCEPersistentDiskVolumeSource,
    Namespace,
    ObjectMeta,
    Volume,
)
from cache.pod_info import PodInfo
from cache.workload_objects import Service, ServiceSpec, WorkloadMeta
from cache.workloads import Workloads
from plugins import names
from plugins.registry import PLUGINS
from tests.builders import cache_of, names_term, node, pod, requirement, term
from tests.device_builders import device_class, resource_claim, resource_slice
from tests.plugins.conformance import Recipe, RecordingHandle
from tests.storage_builders import claim, csi_node, storage_class, storage_of, volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.devices import Devices
    from cache.objects import Node, Pod
    from cache.scheduler_cache import SchedulerCache
    from tests.builders import PodBuilder
    from tests.storage_builders import StorageObject

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

PODS_PER_NODE = 2

_ZONES = 3
_APPS = 20
_IMAGES = 20
_FREE_VOLUMES = 60
_DISKS = 20
_DRIVER = "ebs.csi.aws.com"
_MIB = 2**20


@dataclass(frozen=True)
class Case:
    """A pod with which a plugin has work to do.

    Parameters
    ----------
    id
        The plugin, and what of it the pod asks for.
    plugin
        The plugin's name.
    pod
        A pod without a node.
    args
        The plugin's arguments, as a configuration file has them.
    """

    id: str
    plugin: str
    pod: PodBuilder
    args: dict[str, Any] | None = None

    def recipe(self, num_nodes: int) -> Recipe:
        """Return how to make the plugin in a cluster of so many nodes."""
        return Recipe(PLUGINS[self.plugin], self.args, partial(told_handle, num_nodes))


def told_handle(num_nodes: int) -> RecordingHandle:
    """Lend a namespace, a Service in front of the pods of one app, and storage."""
    workloads = Workloads()
    meta = WorkloadMeta("web", "default", "uid-web")
    workloads.service_changed(None, Service(meta, ServiceSpec({"app": "app-1"})))
    namespace = Namespace(ObjectMeta(name="default", labels={"team": "a"}))
    handle = RecordingHandle([namespace], workloads, storage_of(*_storage(num_nodes)))
    _publish_devices(handle.devices, num_nodes)
    return handle


def _publish_devices(devices: Devices, num_nodes: int) -> None:
    """Publish two devices on each node, of which a claim that is not allocated asks for one."""
    devices.classes.changed(None, device_class("gpu").build())
    devices.claims.changed(None, resource_claim("gpu").request("r", "gpu").build())
    for name in map(node_name, range(num_nodes)):
        local = resource_slice(name, pool=name).on_node(name).devices("gpu-0", "gpu-1")
        devices.slices.changed(None, local.build())


def _storage(num_nodes: int) -> Iterator[StorageObject]:
    """Yield a bound claim for each app, volumes that wait for a claim, and the nodes' limits."""
    for app in range(_APPS):
        yield claim(_claim(app)).bound_to(f"pv-{app}").build()
        yield volume(f"pv-{app}").csi(_DRIVER).bound_to(_claim(app)).build()
    zone = term(requirement(ZONE, "In", "zone-1"))
    yield claim("in-zone").bound_to("pv-in-zone").build()
    in_zone = volume("pv-in-zone").csi(_DRIVER).bound_to("in-zone").zone("zone-1")
    yield in_zone.node_affinity(zone).build()
    yield storage_class("local")
    yield claim("waiting").of_class("local").build()
    for index in range(_FREE_VOLUMES):
        reach = term(requirement(ZONE, "In", f"zone-{index % _ZONES}"))
        free = volume(f"free-{index}").of_class("local").size(f"{index + 1}Gi")
        yield free.node_affinity(reach).build()
    yield claim("alone").access("ReadWriteOncePod").bound_to("pv-alone").build()
    yield volume("pv-alone").access("ReadWriteOncePod").csi(_DRIVER).bound_to("alone").build()
    for index in range(num_nodes):
        yield csi_node(node_name(index)).driver(_DRIVER, limit=39).build()


def _claim(app: int) -> str:
    return f"data-{app}"


def _disk(number: int) -> Volume:
    return Volume(f"disk-{number}", gce_persistent_disk=GCEPersistentDiskVolumeSource(f"{number}"))


def cluster(num_nodes: int) -> SchedulerCache:
    """Return a cache of so many nodes in three zones, two pods on each.

    How many different taint sets, images, label sets of pods and affinity terms there are does
    not depend on the number of nodes; only host names do.
    """
    pods = [
        PodInfo(placed(index, node_name(index % num_nodes)))
        for index in range(PODS_PER_NODE * num_nodes)
    ]
    return cache_of(map(_node, range(num_nodes)), pods)


def node_name(index: int) -> str:
    return f"node-{index:05}"


def _node(index: int) -> Node:
    name = node_name(index)
    made = node(name).zone(f"zone-{index % _ZONES}").label(HOSTNAME, name)
    made = made.label("disk", "ssd" if index % 4 else "hdd").capacity(cpu="8", memory="32Gi")
    if index % 10 == 3:
        made = made.taint("gpu", "a")
    if index % 7 == 4:
        made = made.taint("spot", effect="PreferNoSchedule")
    if index % 50 == 5:
        made = made.unschedulable()
    for each in (index % _IMAGES, (index + 7) % _IMAGES):
        made = made.image(f"registry.test/image-{each}:v1", size_bytes=(100 + 40 * each) * _MIB)
    built = made.build()
    declared = ("RestartAllContainersOnContainerExits",) if index % 2 else ()
    return replace(built, status=replace(built.status, declared_features=declared))


def placed(index: int, host: str) -> Pod:
    """Return the pod that is the ``index``-th to run, on a node."""
    app = f"app-{index % _APPS}"
    made = pod(f"placed-{index}").label("app", app).request(cpu="250m", memory="512Mi").on(host)
    match index % 10:
        case 0:
            made = made.pod_anti_affinity(HOSTNAME, app=app)
        case 1:
            made = made.prefers_pods(10, ZONE, app=app)
        case 2:
            made = made.avoids_pods(10, HOSTNAME, app=app)
        case 3:
            made = made.host_port(8000 + index % 5)
        case 4:
            made = made.pod_affinity(ZONE, app=app)
        case 5:
            made = made.claim(_claim(index // 10 % _APPS))
        case 6:
            made = made.volume(_disk(index // 10 % _DISKS))
        case 7 if index == 7:
            made = made.claim("alone")
    return made.build()


def cases() -> Iterator[Case]:
    """Yield at least one case for each plugin that looks at nodes."""
    plain = pod().label("app", "app-1").request(cpu="250m", memory="512Mi").default_tolerations()
    yield Case("NodeUnschedulable", names.NODE_UNSCHEDULABLE, plain)
    yield Case("NodeName", names.NODE_NAME, plain.on(node_name(9)))
    tolerant = plain.toleration("gpu", "a", operator="Equal", effect="NoSchedule")
    yield Case("TaintToleration", names.TAINT_TOLERATION, tolerant)
    choosy = plain.node_affinity(term(requirement("disk", "In", "ssd", "nvme")))
    choosy = choosy.prefers_node(10, term(requirement(ZONE, "In", "zone-1")))
    yield Case("NodeAffinity", names.NODE_AFFINITY, choosy)
    away = term(requirement(HOSTNAME, "NotIn", node_name(1), node_name(2)))
    yield Case("NodeAffinity, host names", names.NODE_AFFINITY, plain.node_affinity(away))
    named = plain.node_affinity(names_term(node_name(3)))
    yield Case("NodeAffinity, one name", names.NODE_AFFINITY, named)
    yield Case("NodePorts", names.NODE_PORTS, plain.host_port(8003))
    yield Case("NodeResourcesFit", names.NODE_RESOURCES_FIT, plain)
    yield Case("NodeResourcesBalancedAllocation", names.NODE_RESOURCES_BALANCED_ALLOCATION, plain)
    yield Case("ImageLocality", names.IMAGE_LOCALITY, plain.image("registry.test/image-3:v1"))
    hard = plain.spread(ZONE, max_skew=5, app="app-1").spread(HOSTNAME, max_skew=5, app="app-1")
    yield Case("PodTopologySpread, hard", names.POD_TOPOLOGY_SPREAD, hard)
    soft = plain.spread(ZONE, max_skew=5, when_unsatisfiable="ScheduleAnyway", app="app-1")
    soft = soft.spread(HOSTNAME, when_unsatisfiable="ScheduleAnyway", app="app-1")
    yield Case("PodTopologySpread, soft", names.POD_TOPOLOGY_SPREAD, soft)
    yield Case("PodTopologySpread, default", names.POD_TOPOLOGY_SPREAD, plain)
    together = plain.pod_affinity(ZONE, app="app-1")
    yield Case("InterPodAffinity, affinity", names.INTER_POD_AFFINITY, together)
    apart = plain.pod_anti_affinity(HOSTNAME, app="app-1")
    yield Case("InterPodAffinity, anti-affinity", names.INTER_POD_AFFINITY, apart)
    preferring = plain.prefers_pods(5, ZONE, app="app-2").avoids_pods(5, HOSTNAME, app="app-1")
    yield Case("InterPodAffinity, preferred", names.INTER_POD_AFFINITY, preferring)
    about = plain.label("app", "app-0")
    yield Case("InterPodAffinity, terms of others", names.INTER_POD_AFFINITY, about)
    rules = (ContainerRestartRule(action="RestartAllContainers"),)
    sidecar = Container(name="restarting", image="pause", restart_policy_rules=rules)
    restarting = plain.container(sidecar)
    yield Case("NodeDeclaredFeatures", names.NODE_DECLARED_FEATURES, restarting)
    yield Case("VolumeRestrictions, disk", names.VOLUME_RESTRICTIONS, plain.volume(_disk(7)))
    yield Case("VolumeRestrictions, one pod", names.VOLUME_RESTRICTIONS, plain.claim("alone"))
    yield Case("NodeVolumeLimits", names.NODE_VOLUME_LIMITS, plain.claim(_claim(3)))
    yield Case("VolumeBinding, bound", names.VOLUME_BINDING, plain.claim("in-zone"))
    yield Case("VolumeBinding, waiting", names.VOLUME_BINDING, plain.claim("waiting"))
    yield Case("VolumeZone", names.VOLUME_ZONE, plain.claim("in-zone"))
    yield Case("DynamicResources", names.DYNAMIC_RESOURCES, plain.resource_claim("r", "gpu"))

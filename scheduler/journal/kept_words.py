"""The words that a redacted journal keeps: those of the APIs and of Berth itself.

A decision compares strings with these words, so that an alias in their place would change it. They
say nothing about a cluster besides the features that it uses.
"""

from __future__ import annotations

import re
from typing import Final

from cache.csi_translation import IN_TREE_PLUGINS, MIGRATED_PLUGINS
from cache.host_ports import ALL_ADDRESSES
from cache.kept_annotations import MIRROR_ANNOTATION
from cache.label_selectors import METADATA_NAME
from cache.pod_group_objects import (
    GROUP_LABEL,
    PARTIAL_GANG_GRACE,
    PREFERRED_TOPOLOGY_KEY,
    TOPOLOGY_KEY,
    GroupSource,
)
from cache.storage import BETA_STORAGE_CLASS
from plugins.names import IN_TREE
from plugins.registry import PLUGINS

_LABELS: Final = """
    kubernetes.io/hostname kubernetes.io/arch kubernetes.io/os kubernetes.io/metadata.name
    topology.kubernetes.io/zone topology.kubernetes.io/region
    failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region
    topology.ebs.csi.aws.com/zone topology.gke.io/zone topology.cinder.csi.openstack.org/zone
    topology.disk.csi.azure.com/zone
    node.kubernetes.io/instance-type beta.kubernetes.io/instance-type
    node-role.kubernetes.io/control-plane node-role.kubernetes.io/master
    pod-template-hash controller-revision-hash
    statefulset.kubernetes.io/pod-name apps.kubernetes.io/pod-index
    node.kubernetes.io/not-ready node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
    node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure
    node.kubernetes.io/pid-pressure node.kubernetes.io/network-unavailable
    node.kubernetes.io/out-of-service node.cloudprovider.kubernetes.io/uninitialized
"""
"""Keys of labels and taints that Kubernetes itself defines. Their values get aliases."""

_ANNOTATIONS: Final = """
    kubernetes.io/azure-file-resource-group volume.kubernetes.io/selected-node
    pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller
    resource.kubernetes.io/extended-resource-claim resource.kubernetes.io/pod-claim-name
    resource.kubernetes.io/delete-protection
"""

_VALUES: Final = """
    In NotIn Exists DoesNotExist Gt Lt Equal
    NoSchedule PreferNoSchedule NoExecute None DoNotSchedule ScheduleAnyway Honor Ignore
    TCP UDP SCTP Always Never OnFailure NotRequired RestartContainer
    Restart RestartAllContainers PreemptLowerPriority
    Pending Running Succeeded Failed Unknown Available Bound Released Lost Inqueue Scheduled
    Scheduling PreScheduling Finished
    ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block
    Immediate WaitForFirstConsumer kubernetes.io/no-provisioner Managed managed Dedicated Shared
    PodScheduled Initialized ContainersReady Ready DisruptionTarget PodResizePending
    PodResizeInProgress PodReadyToStartContainers MemoryPressure DiskPressure PIDPressure
    NetworkUnavailable True False Unschedulable SchedulerError Infeasible Deferred
    PreemptionByScheduler SchedulingGated Evicted
    ExactCount All FromClass FromClaim PodGroup Pod
    RestartAllContainersOnContainerExits UserNamespacesHostNetworkSupport
    Node ReplicaSet ReplicationController StatefulSet Deployment DaemonSet Job CronJob
    PersistentVolumeClaim PersistentVolume ResourceClaim Service pods
    v1 apps/v1 batch/v1 resource.k8s.io/v1 kubescheduler.config.k8s.io/v1
    system-cluster-critical system-node-critical
    cpu memory ephemeral-storage storage
    LeastAllocated MostAllocated RequestedToCapacityRatio System List 127.0.0.1
"""
"""What fields with a fixed set of values can have, and resources that every node has."""

KEPT: Final[frozenset[str]] = frozenset(
    (
        "",
        *_LABELS.split(),
        *_ANNOTATIONS.split(),
        *_VALUES.split(),
        ALL_ADDRESSES,
        METADATA_NAME,
        GROUP_LABEL,
        TOPOLOGY_KEY,
        PREFERRED_TOPOLOGY_KEY,
        PARTIAL_GANG_GRACE,
        MIGRATED_PLUGINS,
        MIRROR_ANNOTATION,
        BETA_STORAGE_CLASS,
        *(source.value for source in GroupSource),
        *(plugin.name for plugin in IN_TREE_PLUGINS.values()),
        *(plugin.driver for plugin in IN_TREE_PLUGINS.values()),
        *IN_TREE,
        *PLUGINS,
    )
)
"""All of them."""

KEPT_FORMS: Final = re.compile(r"container-\d{1,9}-request-\d{1,9}")
"""Names that kube-scheduler forms itself: those of requests for extended resources."""

ANCHORS: Final = ("cpu", "ephemeral-storage", "hugepages-", "memory", "pods")
"""Kept words that decisions sort together with others: aliases keep their place among them."""

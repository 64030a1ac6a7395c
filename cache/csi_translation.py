"""Translation of in-tree volumes to the CSI volumes that replace them.

The in-tree plugins of these volumes have been removed; a CSI driver serves the volumes, under
another handle and, for some, with another topology label. An annotation of a node's CSINode lists
the in-tree plugins that its drivers replace.

*Source*: k8s.io/csi-translation-lib translate.go and plugins/ (0.36); which plugins count as
migrated: pkg/scheduler/framework/plugins/nodevolumelimits/utils.go, isCSIMigrationOn (1.36).
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

from cache.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from cache.resources import MalformedObjectError
from cache.storage_objects import CSIPersistentVolumeSource, VolumeNodeAffinity
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cache.objects import AzureDiskVolumeSource, Volume
    from cache.storage_objects import CSINode, PersistentVolume, PersistentVolumeSpec

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation of a CSINode that names the in-tree plugins its drivers stand in for."""

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

_ZONES_SEPARATOR: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"


class InTreePlugin(Value, frozen=True):
    """An in-tree volume plugin and the CSI driver that replaces it.

    Attributes
    ----------
    name
        Of the plugin.
    driver
        Of the CSI driver.
    topology_key
        The node label that stands for a zone with the driver; empty when it has none.
    """

    name: str
    driver: str
    topology_key: str = ""


AWS_EBS: Final = InTreePlugin(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
)
GCE_PD: Final = InTreePlugin(
    "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"
)
AZURE_DISK: Final = InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com")
AZURE_FILE: Final = InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com")
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    "topology.cinder.csi.openstack.org/zone",
)
PORTWORX: Final = InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com")
VSPHERE: Final = InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com")

IN_TREE_PLUGINS: Final[Mapping[str, InTreePlugin]] = MappingProxyType(
    {
        plugin.name: plugin
        for plugin in (AWS_EBS, GCE_PD, AZURE_DISK, AZURE_FILE, CINDER, PORTWORX, VSPHERE)
    }
)
"""All of them by name."""

MIGRATED: Final = frozenset({AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX})
"""Those whose volumes kube-scheduler looks at as their drivers know them."""

_EBS_VOLUME: Final = re.compile(r"vol-[^/]*")
_STORAGE_ACCOUNT: Final = re.compile(r"azure-storage-account-(.+)-secret")


_PLUGIN_OF_SOURCE: Final = (
    ("gce_persistent_disk", GCE_PD),
    ("aws_elastic_block_store", AWS_EBS),
    ("cinder", CINDER),
    ("azure_disk", AZURE_DISK),
    ("azure_file", AZURE_FILE),
    ("vsphere_volume", VSPHERE),
    ("portworx_volume", PORTWORX),
)
"""A volume has one source: the API server takes no other."""


def in_tree_plugin(volume: PersistentVolume) -> InTreePlugin | None:
    """Return the in-tree plugin of a volume, or None for any other volume."""
    return None if volume.spec.csi is not None else _plugin_of(volume.spec)


def inline_plugin(volume: Volume) -> InTreePlugin | None:
    """Return the in-tree plugin of a pod's inline volume, or None for any other volume."""
    return _plugin_of(volume)


def _plugin_of(sources: PersistentVolumeSpec | Volume) -> InTreePlugin | None:
    for source, plugin in _PLUGIN_OF_SOURCE:
        if getattr(sources, source) is not None:
            return plugin
    return None


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """Return the names of the in-tree plugins that the drivers of a node replace."""
    named = "" if csi_node is None else csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return _split(named)


@lru_cache(maxsize=32)  # all nodes have one of a few, and only kubelets write them
def _split(named: str) -> frozenset[str]:
    return frozenset(named.split(",")) if named else frozenset()


# --- sources ----------------------------------------------------------------------------------


def csi_source(volume: PersistentVolume) -> CSIPersistentVolumeSource | None:
    """Return the CSI source of a volume, translated for an in-tree one; None for any other.

    Raises
    ------
    MalformedObjectError
        When an in-tree volume cannot be translated.
    """
    spec = volume.spec
    plugin = in_tree_plugin(volume)
    if plugin is None:
        return spec.csi
    handle = _own_handle(spec)
    if spec.gce_persistent_disk is not None:
        handle = _gce_handle(volume, spec.gce_persistent_disk.pd_name)
    elif spec.azure_file is not None:
        handle = _azure_file_handle(volume)
    elif spec.vsphere_volume is not None:
        handle = spec.vsphere_volume.volume_path
    return CSIPersistentVolumeSource(driver=plugin.driver, volume_handle=handle)


def inline_handle(volume: Volume) -> str:
    """Return the driver's handle of an inline volume; its plugin must be in :data:`MIGRATED`.

    Raises
    ------
    MalformedObjectError
        When the volume cannot be translated.
    """
    if volume.gce_persistent_disk is not None:
        disk = volume.gce_persistent_disk.pd_name
        return f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{disk}"
    return _own_handle(volume)


def _own_handle(sources: PersistentVolumeSpec | Volume) -> str:
    """Return the handle that a source contains; empty if it contains none."""
    if sources.aws_elastic_block_store is not None:
        return ebs_volume_id(sources.aws_elastic_block_store.volume_id)
    if sources.cinder is not None:
        return sources.cinder.volume_id
    if sources.azure_disk is not None:
        return _azure_disk_handle(sources.azure_disk)
    return "" if sources.portworx_volume is None else sources.portworx_volume.volume_id


def ebs_volume_id(volume_id: str) -> str:
    """Return the bare id of an EBS volume, which may be written as ``aws://zone/vol-...``.

    Raises
    ------
    MalformedObjectError
        When the text is a URL that does not end in an id.
    """
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        bare = unquote(urlsplit(volume_id).path).strip("/")
    except ValueError:
        bare = ""
    if _EBS_VOLUME.fullmatch(bare) is None:
        raise MalformedObjectError(
            "spec.awsElasticBlockStore.volumeID", f"no EBS volume: {volume_id!r}"
        )
    return bare


def storage_account(secret_name: str) -> str:
    """Return the account that an Azure secret is named after, or the secret's own name."""
    found = _STORAGE_ACCOUNT.search(secret_name)
    return secret_name if found is None else found[1]


def _azure_disk_handle(disk: AzureDiskVolumeSource) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise MalformedObjectError("azureDisk.kind", f"no driver serves {disk.kind!r}")
    return disk.disk_uri


def _gce_handle(volume: PersistentVolume, disk: str) -> str:
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(_ZONES_SEPARATOR)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise MalformedObjectError("metadata.labels", f"{zone!r} is no zone of GCE")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise MalformedObjectError("metadata.labels", "zones of more than one region")
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"


def _azure_file_handle(volume: PersistentVolume) -> str:
    source = volume.spec.azure_file
    assert source is not None  # noqa: S101 - the caller looked
    namespace = source.secret_namespace
    if namespace is None and volume.spec.claim_ref is not None:
        namespace = volume.spec.claim_ref.namespace
    if not namespace:
        raise MalformedObjectError("spec.azureFile.secretNamespace", "no namespace is known")
    group = volume.metadata.annotations.get("kubernetes.io/azure-file-resource-group", "")
    account = storage_account(source.secret_name)
    return f"{group}#{account}#{source.share_name}#{volume.metadata.name}#{namespace}"


# --- topology ---------------------------------------------------------------------------------


def csi_node_affinity(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """Return the affinity to the nodes that reach an in-tree volume through its CSI driver.

    A demand on the zone becomes one on the driver's own zone label; without one, the zones in
    the volume's labels are demanded.

    Raises
    ------
    MalformedObjectError
        When the volume cannot be translated.
    """
    csi_source(volume)
    affinity = volume.spec.node_affinity
    plugin = in_tree_plugin(volume)
    if plugin is None or not plugin.topology_key:
        return affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    zone, region = _topology_labels(volume, terms)
    if any(r.values for r in _expressions(terms) if r.key == zone):
        terms = _with_key(terms, zone, plugin.topology_key)
    elif zone in volume.metadata.labels:
        named = volume.metadata.labels[zone].split(_ZONES_SEPARATOR)
        zones = tuple(sorted({each.strip() for each in named} - {""}))
        if zones:
            demand = NodeSelectorRequirement(key=plugin.topology_key, operator="In", values=zones)
            terms = tuple(
                msgspec.structs.replace(term, match_expressions=(*term.match_expressions, demand))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == BETA_REGION and any(r.values for r in _expressions(terms) if r.key == region):
        terms = _with_key(terms, region, REGION)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _topology_labels(
    volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]
) -> tuple[str, str]:
    keys = {expression.key for expression in _expressions(terms)}
    labels = volume.metadata.labels
    for held in (keys, labels):
        if ZONE in held:
            return ZONE, REGION
        if BETA_ZONE in held:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _expressions(terms: tuple[NodeSelectorTerm, ...]) -> Iterator[NodeSelectorRequirement]:
    for term in terms:
        yield from term.match_expressions


def _with_key(
    terms: tuple[NodeSelectorTerm, ...], old: str, new: str
) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(r, key=new) if r.key == old else r
                for r in term.match_expressions
            ),
        )
        for term in terms
    )

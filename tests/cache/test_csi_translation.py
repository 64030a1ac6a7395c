from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cache.csi_translation import (
    IN_TREE_PLUGINS,
    MIGRATED,
    csi_node_affinity,
    csi_source,
    in_tree_plugin,
    inline_handle,
    inline_plugin,
)
from cache.objects import Volume
from cache.resources import MalformedObjectError
from cache.storage_objects import PersistentVolume, VolumeNodeAffinity

EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE = {"gcePersistentDisk": {"pdName": "disk"}}
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def persistent(
    source: dict[str, Any], labels: dict[str, str] | None = None, *terms: dict[str, list[str]]
) -> PersistentVolume:
    """A volume; each term is node affinity's ``key in values``."""
    spec = dict(source)
    if terms:
        spec["nodeAffinity"] = {
            "required": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": key, "operator": "In", "values": values}
                            for key, values in term.items()
                        ]
                    }
                    for term in terms
                ]
            }
        }
    manifest = {"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}
    return msgspec.convert(manifest, PersistentVolume)


def terms_of(affinity: VolumeNodeAffinity | None) -> list[dict[str, list[str]]]:
    """The node affinity, as the terms of :func:`persistent`."""
    if affinity is None or affinity.required is None:
        return []
    return [
        {each.key: list(each.values) for each in term.match_expressions}
        for term in affinity.required.node_selector_terms
    ]


def handle_of(volume: PersistentVolume) -> str:
    """What the volume's driver calls it."""
    source = csi_source(volume)
    assert source is not None
    return source.volume_handle


SOURCES = [
    pytest.param(EBS, "kubernetes.io/aws-ebs", id="ebs"),
    pytest.param({"azureDisk": {"diskURI": "uri"}}, "kubernetes.io/azure-disk", id="azure-disk"),
    pytest.param({"azureFile": {}}, "kubernetes.io/azure-file", id="azure-file"),
    pytest.param({"cinder": {"volumeID": "c"}}, "kubernetes.io/cinder", id="cinder"),
    pytest.param(GCE, "kubernetes.io/gce-pd", id="gce"),
    pytest.param({"portworxVolume": {"volumeID": "p"}}, "kubernetes.io/portworx-volume", id="px"),
    pytest.param({"vsphereVolume": {}}, "kubernetes.io/vsphere-volume", id="vsphere"),
    pytest.param({"csi": {"driver": "d"}}, None, id="csi"),
]


@pytest.mark.parametrize(("source", "plugin"), SOURCES)
def test_the_plugin_of_a_volume(source: dict[str, Any], plugin: str | None) -> None:
    found = in_tree_plugin(persistent(source))
    assert (None if found is None else found.name) == plugin


@pytest.mark.parametrize(("source", "plugin"), SOURCES)
def test_the_plugin_of_an_inline_volume(source: dict[str, Any], plugin: str | None) -> None:
    found = inline_plugin(msgspec.convert({"name": "v", **source}, Volume))
    assert (None if found is None else found.name) == plugin


def test_files_and_vsphere_are_not_looked_at_as_their_drivers_know_them() -> None:
    others = set(IN_TREE_PLUGINS.values()) - MIGRATED
    assert {each.driver for each in others} == {"file.csi.azure.com", "csi.vsphere.vmware.com"}


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        pytest.param(EBS, {}, "vol-1", id="ebs"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}},
            {},
            "vol-2",
            id="ebs-with-zone",
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws:///vol-3"}}, {}, "vol-3", id="ebs-no-zone"
        ),
        pytest.param(GCE, {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk", id="gce"),
        pytest.param(
            GCE, {ZONE: "z-1-a"}, "projects/UNSPECIFIED/zones/z-1-a/disks/disk", id="gce-zone"
        ),
        pytest.param(
            GCE,
            {ZONE: "other", BETA_ZONE: "z-1-b"},
            "projects/UNSPECIFIED/zones/z-1-b/disks/disk",
            id="gce-beta-zone-goes-first",
        ),
        pytest.param(
            GCE,
            {ZONE: "z-1-a__z-1-b"},
            "projects/UNSPECIFIED/regions/z-1/disks/disk",
            id="gce-regional",
        ),
        pytest.param({"azureDisk": {"diskURI": "/u"}}, {}, "/u", id="azure"),
        pytest.param(
            {"azureDisk": {"diskURI": "/u", "kind": "Managed"}}, {}, "/u", id="azure-managed"
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, {}, "c", id="cinder"),
        pytest.param({"portworxVolume": {"volumeID": "p"}}, {}, "p", id="portworx"),
    ],
)
def test_the_handle_of_a_volume(
    source: dict[str, Any], labels: dict[str, str], handle: str
) -> None:
    assert handle_of(persistent(source, labels)) == handle


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://zone/disk-1"}}, {}, id="ebs-no-volume"
        ),
        pytest.param({"azureDisk": {"kind": "Dedicated"}}, {}, id="azure-unmanaged"),
        pytest.param(GCE, {ZONE: "a__b"}, id="gce-zone-without-region"),
        pytest.param(GCE, {ZONE: "z-1-a__z-2-a"}, id="gce-two-regions"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "aws://[z/vol-1"}}, {}, id="ebs-no-url"),
    ],
)
def test_a_volume_that_makes_no_sense(source: dict[str, Any], labels: dict[str, str]) -> None:
    with pytest.raises(MalformedObjectError):
        csi_source(persistent(source, labels))


@pytest.mark.parametrize(
    ("labels", "before", "after"),
    [
        pytest.param({}, [], [], id="nothing"),
        pytest.param({}, [{ZONE: ["a"]}], [{"topology.ebs.csi.aws.com/zone": ["a"]}], id="renamed"),
        pytest.param(
            {},
            [{BETA_ZONE: ["a"], BETA_REGION: ["r"]}],
            [{"topology.ebs.csi.aws.com/zone": ["a"], REGION: ["r"]}],
            id="beta-region-becomes-region",
        ),
        pytest.param(
            {},
            [{ZONE: ["a"], BETA_REGION: ["r"]}],
            [{"topology.ebs.csi.aws.com/zone": ["a"], BETA_REGION: ["r"]}],
            id="beta-region-beside-a-present-zone-stays",
        ),
        pytest.param(
            {ZONE: "b__a"},
            [],
            [{"topology.ebs.csi.aws.com/zone": ["a", "b"]}],
            id="from-the-label",
        ),
        pytest.param(
            {BETA_ZONE: "a"},
            [{"disk": ["ssd"]}, {"disk": ["hdd"]}],
            [
                {"disk": ["ssd"], "topology.ebs.csi.aws.com/zone": ["a"]},
                {"disk": ["hdd"], "topology.ebs.csi.aws.com/zone": ["a"]},
            ],
            id="the-label-goes-to-every-term",
        ),
        pytest.param(
            {ZONE: "b"},
            [{ZONE: ["a"]}],
            [{"topology.ebs.csi.aws.com/zone": ["a"]}],
            id="affinity-goes-before-the-label",
        ),
    ],
)
def test_the_topology_of_a_translated_volume(
    labels: dict[str, str], before: list[dict[str, list[str]]], after: list[dict[str, list[str]]]
) -> None:
    assert terms_of(csi_node_affinity(persistent(EBS, labels, *before))) == after


def test_a_driver_without_topology_keeps_the_affinity() -> None:
    volume = persistent({"azureDisk": {"diskURI": "u"}}, {ZONE: "b"}, {ZONE: ["a"]})
    assert terms_of(csi_node_affinity(volume)) == [{ZONE: ["a"]}]


@pytest.mark.parametrize(
    ("source", "handle"),
    [
        pytest.param(GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk", id="gce"),
        pytest.param(EBS, "vol-1", id="ebs"),
        pytest.param({"cinder": {"volumeID": "c"}}, "c", id="cinder"),
        pytest.param({"azureDisk": {"diskURI": "u"}}, "u", id="azure"),
        pytest.param({"portworxVolume": {"volumeID": "p"}}, "p", id="portworx"),
    ],
)
def test_the_handle_of_an_inline_volume(source: dict[str, Any], handle: str) -> None:
    assert inline_handle(msgspec.convert({"name": "v", **source}, Volume)) == handle

"""All hostile specs, and what of the cluster they count on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.objects import make_namespace
from tests.hostile import running_pods, volumes_and_services, waiting_pods
from tests.hostile.tenant import STORAGE_CLASS, TENANT

if TYPE_CHECKING:
    from tests.hostile.tenant import HostileSpec, Json

SPECS: tuple[HostileSpec, ...] = (
    *waiting_pods.COLLECTION.specs,
    *running_pods.COLLECTION.specs,
    *volumes_and_services.COLLECTION.specs,
)

BY_NAME = {spec.name: spec for spec in SPECS}


def ground() -> list[Json]:
    """Return what those who run the cluster have made: a namespace and two classes."""
    return [
        make_namespace(TENANT),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "example.com/nobody",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "tenant-high"},
            "value": 1000,
            "description": "what a tenant may name",
        },
    ]

"""What is said of a pod that waits for an object which does not exist yet.

Source: k8s.io/apimachinery api/errors NewNotFound, with the resources that client-go's listers
name (0.36).
"""

from __future__ import annotations


def claim_not_found(name: str) -> str:
    """Return the reason for a PersistentVolumeClaim."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the reason for a PersistentVolume."""
    return f'persistentvolume "{name}" not found'


def storage_class_not_found(name: str) -> str:
    """Return the reason for a StorageClass."""
    return f'storageclass.storage.k8s.io "{name}" not found'

"""VolumeBinding: places pods where their volumes are or can be, and binds volumes before pods."""

from plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]

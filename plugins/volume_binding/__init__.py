"""VolumeBinding: sends pods where their volumes are or can be, and binds these first."""

from plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]

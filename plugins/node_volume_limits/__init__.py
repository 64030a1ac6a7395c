"""NodeVolumeLimits: how many volumes of each driver a node can hold."""

from plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]

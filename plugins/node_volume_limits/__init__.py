"""NodeVolumeLimits: limits the number of volumes of each CSI driver on a node."""

from plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]

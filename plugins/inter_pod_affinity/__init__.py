"""InterPodAffinity: company that pods require, prefer and avoid."""

from plugins.inter_pod_affinity.args import InterPodAffinityArgs
from plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]

"""InterPodAffinity: the pods that a pod requires, prefers or avoids in its topology domain."""

from plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]

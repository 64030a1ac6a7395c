"""The arguments of InterPodAffinity.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go, InterPodAffinityArgs (0.36);
kube-scheduler 1.36, pkg/scheduler/apis/config/v1/defaults.go and
validation/validation_pluginargs.go.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from plugins.framework.args import ArgsError

MAX_HARD_WEIGHT = 100


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What terms of pods that run already are worth in a score.

    Parameters
    ----------
    api_version, kind
        As every argument object may carry them; not looked at here.
    hard_pod_affinity_weight
        The weight of a required affinity term of a pod that runs, 0..100; 0 leaves them out.
    ignore_preferred_terms_of_existing_pods
        Whether a pod without preferences of its own is not scored at all.
    """

    api_version: str = ""
    kind: str = ""
    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self) -> None:
        """Check the arguments.

        Raises
        ------
        ArgsError
            When the weight is out of bounds.
        """
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_HARD_WEIGHT:
            raise ArgsError("hardPodAffinityWeight", f"must be from 0 to 100, not {weight}")

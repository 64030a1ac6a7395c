from __future__ import annotations

import msgspec
import pytest

from plugins.framework.args import ArgsError
from plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.plugins.conformance import RecordingHandle


def test_defaults() -> None:
    args = InterPodAffinityArgs()
    assert args.hard_pod_affinity_weight == 1
    assert args.ignore_preferred_terms_of_existing_pods is False


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_weight_out_of_bounds_is_refused(weight: int) -> None:
    args = msgspec.convert({"hardPodAffinityWeight": weight}, InterPodAffinityArgs)
    with pytest.raises(ArgsError, match=f"^hardPodAffinityWeight: .*not {weight}$"):
        InterPodAffinity(args, RecordingHandle())

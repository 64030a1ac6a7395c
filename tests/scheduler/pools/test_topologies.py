from __future__ import annotations

import pytest

from cache.selector_text import parse_selector
from scheduler.pools.options import PoolOptions
from scheduler.pools.topologies import TopologyGate
from tests.builders import pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"

BY_POOL = PoolOptions("a", parse_selector("pool=a"))
BY_ZONE = PoolOptions("a", parse_selector(f"{ZONE} in (x,y)"))
BY_BOTH = PoolOptions("a", parse_selector(f"{ZONE} in (x,y),pool=a"))
DECLARED = PoolOptions("a", parse_selector("pool=a"), frozenset({ZONE}))


def web():
    return pod("web").label("app", "web")


@pytest.mark.parametrize(
    ("pool", "made", "refused"),
    [
        pytest.param(BY_POOL, web(), "", id="nothing"),
        pytest.param(BY_POOL, web().spread(HOST, app="web"), "", id="spread over hosts"),
        pytest.param(BY_POOL, web().spread(ZONE, app="web"), "spread", id="spread over zones"),
        pytest.param(
            BY_POOL,
            web().spread(ZONE, when_unsatisfiable="ScheduleAnyway", app="web"),
            "",
            id="preferred",
        ),
        pytest.param(BY_ZONE, web().spread(ZONE, app="web"), "", id="zones as a whole"),
        pytest.param(BY_BOTH, web().spread(ZONE, app="web"), "spread", id="a part of the zones"),
        pytest.param(DECLARED, web().spread(ZONE, app="web"), "", id="declared"),
        pytest.param(
            BY_POOL,
            web().spread(ZONE, app="web").node_selector("pool", "a"),
            "",
            id="the pod selects the pool's nodes",
        ),
        pytest.param(
            BY_POOL,
            web().spread(ZONE, app="web").node_selector("pool", "b"),
            "spread",
            id="the pod selects other nodes",
        ),
        pytest.param(BY_POOL, web().pod_affinity(HOST, app="db"), "", id="affinity to a host"),
        pytest.param(BY_POOL, web().pod_affinity(ZONE, app="db"), "pod affinity", id="to a zone"),
        pytest.param(
            BY_POOL, web().pod_anti_affinity(ZONE, app="db"), "anti-affinity", id="from a zone"
        ),
        pytest.param(
            BY_POOL,
            web().pod_anti_affinity(ZONE, app="db").node_selector("pool", "a"),
            "anti-affinity",
            id="affinity looks at all nodes",
        ),
        pytest.param(BY_ZONE, web().pod_anti_affinity(ZONE, app="db"), "", id="whole zones"),
        pytest.param(BY_POOL, web().prefers_pods(5, ZONE, app="db"), "", id="a preference"),
    ],
)
def test_what_reaches_across_pools_is_refused(pool, made, refused):
    status = TopologyGate(pool).check(made.build())
    assert status.is_success is not bool(refused)
    if refused:
        assert refused in status.message
        assert "pool a (" in status.message

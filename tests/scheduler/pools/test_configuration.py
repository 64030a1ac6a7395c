from __future__ import annotations

import pytest

from cache.selector_text import parse_selector
from scheduler.config import ConfigError
from scheduler.pools.configuration import are_disjoint, parse_pools

GOOD = """
apiVersion: scheduling.berth.dev/v1alpha1
kind: PoolConfiguration
handOverAfter: 90s
pools:
  - {name: a, nodeSelector: pool=a, schedulerNames: [berth], leaseName: berth-a}
  - name: b
    nodeSelector: pool in (b,b2)
    schedulerNames: [berth, berth-b]
    leaseName: berth-b
    topologyKeys: [rack]
"""


def test_a_file_is_read():
    options = parse_pools(GOOD, "pools.yaml", "b")
    assert str(options) == "pool b (pool in (b,b2))"
    assert [pool.name for pool in options.pools] == ["a", "b"]
    assert options.pools[1].scheduler_names == {"berth", "berth-b"}
    assert options.topology_keys == {"rack"}
    assert options.hand_over_after_s == 90


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("pool in (b,b2)", "pool in (b,a)", "pools[1].nodeSelector: may select nodes of the pool"),
        ("pool in (b,b2)", "zone=x", "pools[1].nodeSelector: may select nodes of the pool 'a'"),
        ("pool in (b,b2)", "pool in b", "pools[1].nodeSelector: 'pool in b'"),
        ("pool=a", "''", "pools[0].nodeSelector: selects all nodes"),
        ("name: a", "name: b", "pools[1].name: 'b' is another pool already"),
        ("leaseName: berth-b", "topologyKeys: []", "pools[1].leaseName: is needed"),
        ("kind: Pool", "kind: Pond", "kind: must be PoolConfiguration"),
        ("handOverAfter: 90s", "handOverAfter: 0s", "handOverAfter: must be positive"),
        ("name: b", "name: c", "pools: --pool=b is none of them"),
    ],
)
def test_a_mistake_is_named_with_its_path(old, new, told):
    text = GOOD.replace(old, new, 1)
    if "topologyKeys: []" in text:
        text = text.replace("    topologyKeys: [rack]\n", "")
    with pytest.raises(ConfigError) as error:
        parse_pools(text, "pools.yaml", "b")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "disjoint"),
    [
        ("pool=a", "pool=b", True),
        ("pool=a", "pool!=a", True),
        ("pool=a", "!pool", True),
        ("pool=a", "pool", False),
        ("pool in (a,b)", "pool in (b,c)", False),
        ("pool=a,zone=x", "pool=a,zone=y", True),
        ("pool=a", "zone=x", False),
        ("size>5", "size<3", False),
        ("size=4", "size>5", True),
    ],
)
def test_what_can_be_seen_of_two_selectors(one, other, disjoint):
    assert are_disjoint(parse_selector(one), parse_selector(other)) is disjoint
    assert are_disjoint(parse_selector(other), parse_selector(one)) is disjoint

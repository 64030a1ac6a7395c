"""Two processes of ``berth run``, each with a pool of nodes, on a stand-in for an API server."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.bench.large import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    cluster = Cluster(6, 12, 2, tmp_path, hand_over_after="1s")
    try:
        yield cluster
    finally:
        cluster.stop()


def test_each_pool_binds_its_pods_and_hands_on_what_only_the_other_can_run(cluster) -> None:
    first, last = cluster.start(0), cluster.start(1)
    cluster.wait("both lead", lambda: first.is_leading() and last.is_leading())
    cluster.create(4, pool=0)
    cluster.wait("all are bound", lambda: cluster.state()["bound"] == 4)
    assert cluster.state().get("handed on", 0) == 0

    cluster.create(1, cpu=8000)  # belongs to the first one, which has smaller nodes
    cluster.wait("it is bound", lambda: cluster.state()["bound"] == 5)
    assert cluster.state()["handed on"] == 1
    assert cluster.state()["problems"] == []
    assert 'target="p1",reason="full"} 1\n' in first.metrics()
    for replica, name, elsewhere in ((first, "p0", 9), (last, "p1", 8)):
        wanted = f"berth_pods_elsewhere {elsewhere}\n"
        cluster.wait("the watch shows all", lambda: wanted in replica.metrics())  # noqa: B023
        text = replica.metrics()
        assert f'node_pool="{name}",node_selector="example.com/pool={name}"}} 1' in text
        assert 'scheduler_cache_size{type="nodes"} 3' in text
    url = f"http://127.0.0.1:{last.port}/readyz"
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert answer.status == 200

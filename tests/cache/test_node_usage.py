"""What the pods on a node have more of than there is: as a kubelet counts."""

from __future__ import annotations

import pytest

from cache.node_usage import exceeded, overcommitted, usage_for
from tests.builders import node, pod

GPU = "example.com/gpu"
STORAGE = "ephemeral-storage"


@pytest.mark.parametrize(
    ("capacity", "request_", "names", "first"),
    [
        pytest.param({"cpu": "4"}, {"cpu": "4"}, [], "", id="all of it"),
        pytest.param({"cpu": "4"}, {"cpu": "5"}, ["cpu"], "cpu", id="more than all"),
        pytest.param({}, {STORAGE: "1"}, [STORAGE], STORAGE, id="the node does not report it"),
        pytest.param({"cpu": "4"}, {GPU: "1"}, [], "", id="nor an extended resource"),
        pytest.param({GPU: "0"}, {GPU: "1"}, [GPU], "other", id="none of an extended resource"),
        pytest.param(
            {"cpu": "1", "memory": "1Gi", "pods": "0"},
            {"memory": "2Gi", "cpu": "2"},
            ["pods", "memory", "cpu"],
            "pods",
            id="pods first, then as requested",
        ),
    ],
)
def test_what_is_exceeded(capacity, request_, names, first):
    tried = pod("tried").request(request_)
    node_info = node("n1").capacity({"pods": "9", **capacity}).info(tried)
    usage = usage_for(tried.info(), node_info)
    assert exceeded(usage) == names
    assert overcommitted(tried.info(), usage) == first

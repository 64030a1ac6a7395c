from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.paths import resource_of, segment


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        pytest.param("/api/v1/pods", "pods", id="list-all"),
        pytest.param("/api/v1/nodes/n1", "nodes", id="cluster-scoped"),
        pytest.param("/api/v1/nodes/n1/status", "nodes/status", id="cluster-scoped-subresource"),
        pytest.param("/api/v1/namespaces", "namespaces", id="namespaces"),
        pytest.param("/api/v1/namespaces/a", "namespaces", id="one-namespace"),
        pytest.param("/api/v1/namespaces/a/pods/b", "pods", id="one-pod"),
        pytest.param("/api/v1/namespaces/a/pods/b/binding", "pods/binding", id="binding"),
        pytest.param("/apis/events.k8s.io/v1/namespaces/a/events", "events", id="group"),
        pytest.param("/apis/storage.k8s.io/v1/csinodes/x", "csinodes", id="group-cluster-scoped"),
        pytest.param("/version", "version", id="no-resource"),
        pytest.param("/apis", "apis", id="discovery"),
    ],
)
def test_a_path_is_known_by_its_resource(path: str, resource: str) -> None:
    assert resource_of(path) == resource


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        pytest.param("web-0.example", "web-0.example", id="plain"),
        pytest.param("system:node", "system:node", id="with-colon"),
        pytest.param("a/../b", "a%2F..%2Fb", id="slashes"),
        pytest.param("a?b#c", "a%3Fb%23c", id="query-and-fragment"),
        pytest.param("a b\r\nX: y", "a%20b%0D%0AX%3A%20y", id="header-injection"),
        pytest.param("ü", "%C3%BC", id="not-ascii"),
    ],
)
def test_a_name_is_one_segment(name: str, encoded: str) -> None:
    assert segment(name) == encoded


@given(name=st.text(min_size=1))
def test_no_name_leaves_its_segment(name: str) -> None:
    if name in (".", ".."):
        return
    assert not set(segment(name)) & set("/?# \r\n")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_cannot_be_a_segment_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of an object"):
        segment(name)

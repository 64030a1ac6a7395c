from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scheduler.insight.forecast_rights import MAX_NAMESPACES, require_forecast, scope_of
from scheduler.insight.refused import RefusedError
from scheduler.serving.access_reviews import User
from tests.scheduler.what_if.clusters import manifest


class Tenant:
    """A user who may create pods in ``a`` and list those of ``b``."""

    user = User(username="tenant")

    def __init__(self) -> None:
        self.reviews = 0

    async def may(self, verb: str, resource: str, *, namespace: str = "", **_: str) -> bool:
        self.reviews += 1
        return (verb, resource, namespace) in {("create", "pods", "a"), ("list", "pods", "b")}


def pod_in(namespace: str) -> dict[str, Any]:
    found = manifest()
    found["metadata"]["namespace"] = namespace
    return found


OWN = {"objects": [pod_in("a")]}
LIKE = {"add": [{"like": "n1", "count": 1}]}


def refused(question: Any, tenant: Any = None, **shows: bool) -> str:
    """Return what the user may not do; empty if the question is allowed."""
    rights = {"shows_nodes": False, "shows_pods": False, **shows}
    scope = scope_of(json.dumps(question).encode())
    try:
        asyncio.run(require_forecast(tenant or Tenant(), scope, **rights))
    except RefusedError as error:
        return str(error).partition("cannot ")[2] if error.status == 403 else "another refusal"
    return ""


@pytest.mark.parametrize(
    ("question", "why"),
    [
        pytest.param(OWN, "", id="own pods"),
        pytest.param({"podgroup": "b/gang"}, "", id="own group"),
        pytest.param({"objects": [pod_in("b")]}, "create pods in the namespace 'b'", id="listed"),
        pytest.param({"podgroup": "a/gang"}, "list pods in the namespace 'a'", id="unlisted"),
        pytest.param({"objects": [pod_in("a"), pod_in("c")]}, "create pods in", id="one of two"),
        pytest.param({**OWN, "pending": True}, "list pods in all", id="pending pods"),
        pytest.param({**OWN, "config": ""}, "list pods in all", id="a configuration"),
        pytest.param({**OWN, **LIKE}, "get nodes", id="nodes like another"),
        pytest.param({"drain": ["n1"]}, "get nodes", id="a drain"),
        pytest.param({"remove": ["n1"]}, "get nodes", id="a removal"),
    ],
)
def test_what_a_tenant_may_ask(question, why):
    assert refused(question).startswith(why)
    assert bool(refused(question)) is bool(why)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        pytest.param({**OWN, **LIKE}, "", id="own pods on new nodes"),
        pytest.param({"drain": ["n1"]}, "list pods in all", id="a drain"),
        pytest.param({"remove": ["n1"]}, "list pods in all", id="a removal"),
    ],
)
def test_what_a_tenant_who_gets_nodes_may_ask(question, why):
    found = refused(question, shows_nodes=True)
    assert found.startswith(why)
    assert bool(found) is bool(why)


def test_who_lists_all_pods_may_ask_about_them():
    question = {"objects": [pod_in("z")], "pending": True, "config": "x"}
    assert refused(question, shows_pods=True) == ""


def test_many_namespaces_cost_no_reviews():
    tenant = Tenant()
    many = [pod_in(f"n{number}") for number in range(MAX_NAMESPACES + 1)]
    assert refused({"objects": many}, tenant).startswith("list pods in all namespaces")
    assert tenant.reviews == 0


def test_a_mistake_is_refused_with_its_path():
    with pytest.raises(RefusedError) as error:
        scope_of(b'{"objects": [{"metadata": []}]}')
    assert (error.value.status, str(error.value)[:19]) == (422, "objects[0].metadata")

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler.client.api import Api, Permission
from scheduler.client.codec import UndecodableObjectError
from scheduler.client.errors import Action, ApiError, ClientConfigError, classify
from scheduler.kinds import NODES
from tests.scheduler.client.loopback import (
    Loopback,
    RawServer,
    Received,
    free_port,
    json_answer,
    status_answer,
    transport_to,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    from tests.scheduler.client.conftest import Run
    from tests.scheduler.client.loopback import Handler

POD = {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"nodeName": "n1"}}


def call(
    run: Run, handler: Handler, use: Callable[[Api], Awaitable[Any]]
) -> tuple[Any, list[Received]]:
    """Run `use` against a server that answers with `handler`; return also what it was sent."""

    async def main() -> tuple[Any, list[Received]]:
        async with Loopback(handler) as server, transport_to(server.url) as transport:
            return await use(Api(transport)), server.received

    result: tuple[Any, list[Received]] = run(main())
    return result


def answering(value: Any, status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return json_answer(value, status)

    return handler


def refusing(status: int, reason: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(status, reason, "the message")

    return handler


def body_of(received: Received) -> Any:
    return msgspec.json.decode(received.body)


# --- binding ----------------------------------------------------------------------------------


def test_a_bind_carries_the_pods_uid_and_the_node(run: Run) -> None:
    _, (received,) = call(run, answering({}, 201), lambda api: api.bind_pod("ns", "a", "u-1", "n1"))
    assert (received.method, received.path) == ("POST", "/api/v1/namespaces/ns/pods/a/binding")
    assert body_of(received) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "Status", "status": "Success"}, id="status"),
        pytest.param({"kind": "Binding"}, id="binding"),
        pytest.param(["nonsense"], id="nonsense"),
    ],
)
def test_a_bind_succeeds_by_its_http_status_alone(run: Run, body: Any) -> None:
    call(run, answering(body, 201), lambda api: api.bind_pod("ns", "a", "u-1", "n1"))


def test_a_delete_carries_the_pods_uid_and_leaves_its_grace_period(run: Run) -> None:
    _, (received,) = call(run, answering({}, 200), lambda api: api.delete_pod("ns", "a", "u-1"))
    assert (received.method, received.path) == ("DELETE", "/api/v1/namespaces/ns/pods/a")
    assert body_of(received) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u-1"},
    }


def test_names_that_would_lead_elsewhere_stay_names(run: Run) -> None:
    _, (received,) = call(
        run, answering({}, 201), lambda api: api.bind_pod("ns", "../../x?y", 'u"', "n1")
    )
    assert received.path == "/api/v1/namespaces/ns/pods/..%2F..%2Fx%3Fy/binding"
    assert body_of(received)["metadata"]["uid"] == 'u"'


@pytest.mark.parametrize(
    ("status", "action"),
    [
        pytest.param(404, Action.GONE, id="pod-deleted"),
        pytest.param(409, Action.CONFLICT, id="another-uid-or-bound"),
        pytest.param(403, Action.FORBIDDEN, id="right-withdrawn"),
        pytest.param(429, Action.RETRY, id="throttled"),
        pytest.param(500, Action.SETTLE, id="storage-timed-out"),
    ],
)
def test_a_refused_bind_says_what_to_do(run: Run, status: int, action: Action) -> None:
    with pytest.raises(ApiError) as caught:
        call(run, refusing(status, "Reason"), lambda api: api.bind_pod("ns", "a", "u", "n1"))
    assert classify(caught.value, 0, random.Random(1)).action is action


def test_a_bind_whose_answer_is_lost_has_to_be_settled(run: Run) -> None:
    async def main() -> None:
        async with RawServer(b"") as server, transport_to(server.url) as transport:
            await Api(transport).bind_pod("ns", "a", "u", "n1")

    with pytest.raises(ApiError) as caught:
        run(main())
    assert caught.value.ambiguous


# --- what is served ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group_version", "path"),
    [
        pytest.param("v1", "/api/v1", id="the-core-group"),
        pytest.param("apps/v1", "/apis/apps/v1", id="another"),
    ],
)
def test_the_resources_of_a_group_are_asked_for(run: Run, group_version: str, path: str) -> None:
    listed = {"resources": [{"name": "pods", "kind": "Pod"}, {"name": "pods/binding"}]}
    served, (received,) = call(
        run, answering(listed), lambda api: api.served_resources(group_version)
    )
    assert served == {"pods", "pods/binding"}
    assert (received.method, received.path) == ("GET", path)


def test_a_group_that_is_not_there_has_no_resources(run: Run) -> None:
    served, _ = call(run, refusing(404, "NotFound"), lambda api: api.served_resources("apps/v9"))
    assert served == frozenset()


def test_a_group_whose_list_is_null_has_no_resources(run: Run) -> None:
    answer = answering({"resources": None})
    assert call(run, answer, lambda api: api.served_resources("apps/v1"))[0] == frozenset()


def test_a_server_that_does_not_say_what_it_serves_is_an_error(run: Run) -> None:
    with pytest.raises(ApiError, match="the message"):
        call(run, refusing(403, "Forbidden"), lambda api: api.served_resources("apps/v1"))


# --- pods -------------------------------------------------------------------------------------


def test_a_pod_is_read_as_it_is_stored(run: Run) -> None:
    pod, (received,) = call(run, answering(POD), lambda api: api.get_pod("ns", "a"))
    assert (pod.metadata.uid, pod.spec.node_name) == ("u", "n1")
    # Without a resourceVersion the API server asks its storage, not its cache.
    assert received.path == "/api/v1/namespaces/ns/pods/a"


def test_a_pod_that_is_not_there_is_none(run: Run) -> None:
    pod, _ = call(run, refusing(404, "NotFound"), lambda api: api.get_pod("ns", "a"))
    assert pod is None


def test_a_pod_that_cannot_be_had_is_not_none(run: Run) -> None:
    with pytest.raises(ApiError):
        call(run, refusing(503, "ServiceUnavailable"), lambda api: api.get_pod("ns", "a"))


def test_a_pod_that_cannot_be_understood_is_not_none(run: Run) -> None:
    with pytest.raises(UndecodableObjectError, match=r"spec\.nodeName"):
        call(run, answering({"spec": {"nodeName": 5}}), lambda api: api.get_pod("ns", "a"))


def test_a_status_patch_carries_the_uid_and_its_nulls(run: Run) -> None:
    patch = {"nominatedNodeName": None, "conditions": [{"type": "PodScheduled"}]}
    _, (received,) = call(
        run, answering(POD), lambda api: api.patch_pod_status("ns", "a", "u-1", patch)
    )
    assert (received.method, received.path) == ("PATCH", "/api/v1/namespaces/ns/pods/a/status")
    assert received.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert body_of(received) == {"metadata": {"uid": "u-1"}, "status": patch}


# --- events -----------------------------------------------------------------------------------


def test_an_event_is_created_under_its_name(run: Run) -> None:
    body = {"metadata": {"name": "a.1"}, "reason": "Scheduled"}
    _, (received,) = call(run, answering(body, 201), lambda api: api.create_event("ns", body))
    assert received.path == "/apis/events.k8s.io/v1/namespaces/ns/events"
    assert body_of(received) == body


def test_an_event_is_counted_up_by_a_merge_patch(run: Run) -> None:
    patch = {"series": {"count": 2}}
    _, (received,) = call(run, answering({}), lambda api: api.patch_event("ns", "a.1", patch))
    assert (received.method, received.path) == (
        "PATCH",
        "/apis/events.k8s.io/v1/namespaces/ns/events/a.1",
    )
    assert received.headers["Content-Type"] == "application/merge-patch+json"
    assert body_of(received) == patch


# --- lists ------------------------------------------------------------------------------------


def test_a_page_brings_its_objects_undecoded(run: Run) -> None:
    body = {
        "metadata": {"resourceVersion": "7", "continue": "next"},
        "items": [{"metadata": {"name": "n1"}}, {"metadata": 5}],
    }
    page, _ = call(run, answering(body), lambda api: api.list_page(NODES))
    assert (page.metadata.resource_version, page.metadata.continue_) == ("7", "next")
    assert [bytes(item) for item in page.items] == [
        b'{"metadata":{"name":"n1"}}',
        b'{"metadata":5}',
    ]


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param({}, "limit=500", id="first-page"),
        pytest.param({"continue_": "a/b="}, "limit=500&continue=a%2Fb%3D", id="next-page"),
        pytest.param({"limit": 5}, "limit=5", id="small-page"),
    ],
)
def test_a_page_is_asked_for(run: Run, options: dict[str, Any], query: str) -> None:
    _, (received,) = call(run, answering({}), lambda api: api.list_page(NODES, **options))
    assert received.path == f"/api/v1/nodes?{query}"


def test_a_list_without_items_is_empty(run: Run) -> None:
    page, _ = call(run, answering({"items": None}), lambda api: api.list_page(NODES))
    assert not page.items


def test_what_is_no_list_is_an_error(run: Run) -> None:
    with pytest.raises(ApiError, match="BadResponse"):
        call(run, answering(["x"]), lambda api: api.list_page(NODES))


# --- the start --------------------------------------------------------------------------------


def test_the_servers_version_is_its_git_version(run: Run) -> None:
    version, _ = call(
        run, answering({"major": "1", "gitVersion": "v1.36.3"}), lambda api: api.check_server()
    )
    assert version == "v1.36.3"


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        pytest.param(refusing(401, "Unauthorized"), "does not accept the credentials", id="401"),
        pytest.param(refusing(503, "Down"), "answered 503 Down: the message", id="503"),
        pytest.param(answering({"hello": "world"}), "not a Kubernetes API server's", id="other"),
    ],
)
def test_a_server_that_does_not_work_is_one_clear_sentence(
    run: Run, handler: Handler, sentence: str
) -> None:
    with pytest.raises(ClientConfigError, match=sentence) as caught:
        call(run, handler, lambda api: api.check_server())
    assert str(caught.value).startswith("the API server at http://127.0.0.1:")
    assert "\n" not in str(caught.value)


def test_a_server_that_keeps_its_version_secret_is_there(run: Run) -> None:
    version, _ = call(run, refusing(403, "Forbidden"), lambda api: api.check_server())
    assert version == "unknown"


def test_a_server_that_is_not_there_is_one_clear_sentence(run: Run) -> None:
    async def main() -> None:
        async with transport_to(f"http://127.0.0.1:{free_port()}") as transport:
            await Api(transport).check_server()

    with pytest.raises(ClientConfigError, match=r"gives no answer: no connection to 127\.0\.0\.1"):
        run(main())


def test_missing_permissions_are_those_that_the_server_denies(run: Run) -> None:
    async def handler(request: web.Request) -> web.Response:
        review = msgspec.json.decode(await request.read())
        attributes = review["spec"]["resourceAttributes"]
        allowed = (attributes["resource"], attributes["subresource"]) != ("pods", "binding")
        return json_answer({"status": {"allowed": allowed}}, 201)

    watch = Permission("watch", "pods")
    bind = Permission("create", "pods/binding")
    lease = Permission("update", "leases", "coordination.k8s.io", "kube-system", "berth")
    missing, received = call(
        run, handler, lambda api: api.missing_permissions([watch, bind, lease])
    )
    assert missing == [bind]
    asked = [body_of(one)["spec"]["resourceAttributes"] for one in received]
    assert {
        "verb": "update",
        "group": "coordination.k8s.io",
        "resource": "leases",
        "subresource": "",
        "namespace": "kube-system",
        "name": "berth",
    } in asked


@pytest.mark.parametrize(
    ("permission", "text"),
    [
        pytest.param(
            Permission("create", "pods/binding"), "create pods/binding in all namespaces", id="core"
        ),
        pytest.param(
            Permission("update", "leases", "coordination.k8s.io", "kube-system", "berth"),
            "update leases.coordination.k8s.io 'berth' in namespace 'kube-system'",
            id="named",
        ),
    ],
)
def test_a_permission_reads_as_a_right(permission: Permission, text: str) -> None:
    assert str(permission) == text

"""The fake API server keeps the promises of the real one that tests build upon."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler.client.credentials import Credentials
from scheduler.client.errors import ApiError
from scheduler.client.transport import Transport
from tests.fakes.api_objects import merge
from tests.fakes.api_server import FakeApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

PODS = "/api/v1/pods"
WEB = "/api/v1/namespaces/default/pods/web"
STRATEGIC = "application/strategic-merge-patch+json"


class Client:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __call__(
        self, method: str, path: str, body: object = None, *, content_type: str = "", **query: str
    ) -> Any:
        response = await self._transport.request(
            method,
            path,
            query=list(query.items()),
            body=None if body is None else msgspec.json.encode(body),
            content_type=content_type or "application/json",
        )
        return msgspec.json.decode(response.body)

    async def lines(self, path: str, count: int, **query: str) -> list[tuple[str, Any]]:
        """Return type and object of the first `count` events of a watch."""
        data = b""
        async with self._transport.stream(
            path, query=[("watch", "true"), *query.items()]
        ) as stream:
            async for chunk in stream.chunks():
                data += chunk
                if data.count(b"\n") >= count:
                    break
        events = [msgspec.json.decode(line) for line in data.split(b"\n")[:count] if line]
        return [(event["type"], event["object"]) for event in events]


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[FakeApiServer, Client]]:
    async with FakeApiServer() as server:
        transport = Transport(Credentials(server.url), user_agent="test")
        try:
            yield server, Client(transport)
        finally:
            await transport.close()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 30))


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Pending"}}


def test_versions_come_from_one_counter() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            first = await client("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
            second = server.create("pods", pod())
            versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second)]
            assert versions == [server.version - 1, server.version]

    run(main)


def test_pages_show_the_state_of_the_first_page() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            for name in ("a", "b", "c"):
                server.create("pods", pod(name))
            first = await client("GET", PODS, limit="2")
            server.delete("pods", "c")
            rest = await client(
                "GET", PODS, limit="2", **{"continue": first["metadata"]["continue"]}
            )
            names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
            assert names == ["a", "b", "c"]
            assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    run(main)


def test_a_page_after_a_compaction_is_gone() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            for name in ("a", "b", "c"):
                server.create("pods", pod(name))
            first = await client("GET", PODS, limit="2")
            server.create("pods", pod("d"))
            server.compact()
            with pytest.raises(ApiError) as error:
                await client("GET", PODS, limit="2", **{"continue": first["metadata"]["continue"]})
            assert error.value.status == 410

    run(main)


def test_a_list_from_the_future_is_refused() -> None:
    async def main() -> None:
        async with serving() as (_, client):
            with pytest.raises(ApiError, match="Too large resource version") as error:
                await client("GET", PODS, resourceVersion="99", resourceVersionMatch="NotOlderThan")
            assert (error.value.status, error.value.retry_after_s) == (504, 1)

    run(main)


def test_a_watch_begins_after_its_version() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod("a"))
            version = str(server.version)
            server.create("pods", pod("b"))
            server.delete("pods", "a")
            events = await client.lines(PODS, 2, resourceVersion=version)
            assert [(kind, obj["metadata"]["name"]) for kind, obj in events] == [
                ("ADDED", "b"),
                ("DELETED", "a"),
            ]
            assert events[1][1]["metadata"]["resourceVersion"] == str(server.version)

    run(main)


def test_a_watch_from_before_a_compaction_ends_with_an_error_event() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod("a"))
            server.create("pods", pod("b"))
            server.compact()
            ((kind, status),) = await client.lines(PODS, 1, resourceVersion="2")
            assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")

    run(main)


def test_initial_events_end_with_a_bookmark() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod("a"))
            events = await client.lines(
                PODS, 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan"
            )
            assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK"]
            metadata = events[1][1]["metadata"]
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert metadata["resourceVersion"] == str(server.version)

    run(main)


def test_crossing_a_selector_is_coming_or_going() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod("a"))
            version = str(server.version)
            server.patch("pods", "a", {"spec": {"nodeName": "n1"}})
            server.patch("pods", "a", {"spec": {"nodeName": None}})
            events = await client.lines(
                PODS, 2, resourceVersion=version, fieldSelector="spec.nodeName="
            )
            assert [kind for kind, _ in events] == ["DELETED", "ADDED"]

    run(main)


def binding(uid: str | None = None, node: str = "n1") -> dict[str, Any]:
    metadata = {"name": "web"} | ({"uid": uid} if uid is not None else {})
    return {"metadata": metadata, "target": {"kind": "Node", "name": node}}


def test_a_binding_binds() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            uid = server.create("pods", pod())["metadata"]["uid"]
            answer = await client("POST", f"{WEB}/binding", binding(uid))
            bound = server.get("pods", "web")
            assert answer["status"] == "Success"
            assert bound["spec"]["nodeName"] == "n1"
            assert bound["status"]["conditions"][0]["type"] == "PodScheduled"

    run(main)


@pytest.mark.parametrize(
    ("spec", "metadata", "uid"),
    [
        pytest.param({}, {}, "another", id="another UID"),
        pytest.param({"nodeName": "n9"}, {}, None, id="bound already"),
        pytest.param({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, None, id="being deleted"),
        pytest.param({"schedulingGates": [{"name": "g"}]}, {}, None, id="gated"),
    ],
)
def test_a_binding_that_conflicts(
    spec: dict[str, Any], metadata: dict[str, Any], uid: str | None
) -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", {"metadata": {"name": "web", **metadata}, "spec": spec})
            with pytest.raises(ApiError) as error:
                await client("POST", f"{WEB}/binding", binding(uid))
            assert error.value.status == 409

    run(main)


def test_a_binding_of_nothing_is_not_found() -> None:
    async def main() -> None:
        async with serving() as (_, client):
            with pytest.raises(ApiError) as error:
                await client("POST", f"{WEB}/binding", binding())
            assert error.value.status == 404

    run(main)


def test_a_status_patch_merges_conditions_by_type() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod())
            for kind, status in (("PodScheduled", "False"), ("Ready", "True"), ("Ready", "False")):
                body = {"status": {"conditions": [{"type": kind, "status": status}]}}
                await client("PATCH", f"{WEB}/status", body, content_type=STRATEGIC)
            conditions = server.get("pods", "web")["status"]["conditions"]
            assert [(item["type"], item["status"]) for item in conditions] == [
                ("PodScheduled", "False"),
                ("Ready", "False"),
            ]

    run(main)


def test_a_strategic_patch_deletes_one_item_of_a_list_by_its_key() -> None:
    claim = {"status": {"reservedFor": [{"uid": "a"}, {"uid": "b"}]}}

    merge(claim, {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]}})

    assert claim == {"status": {"reservedFor": [{"uid": "b"}]}}


def test_a_patch_that_changes_nothing_makes_no_version() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod())
            before = server.version
            await client("PATCH", f"{WEB}/status", {"status": {"phase": "Pending"}})
            assert server.version == before

    run(main)


def test_an_update_of_an_old_version_conflicts() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
            old = server.create("leases", {"metadata": {"name": "l"}, "spec": {}})
            await client("PUT", path, {**old, "spec": {"holderIdentity": "a"}})
            with pytest.raises(ApiError) as error:
                await client("PUT", path, {**old, "spec": {"holderIdentity": "b"}})
            assert error.value.status == 409

    run(main)


def test_an_event_with_a_generated_name_is_created() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            path = "/apis/events.k8s.io/v1/namespaces/default/events"
            await client(
                "POST", path, {"metadata": {"generateName": "web."}, "reason": "Scheduled"}
            )
            (event,) = server.objects("events")
            assert event["metadata"]["name"].startswith("web.")

    run(main)


def test_a_graceful_deletion_only_marks_a_bound_pod() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.graceful_deletion = True
            server.create("pods", pod(nodeName="n1"))
            await client("DELETE", WEB)
            assert "deletionTimestamp" in server.get("pods", "web")["metadata"]

    run(main)


def test_a_lost_answer_is_carried_out() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            server.create("pods", pod())
            server.faults.lose_answer("pods", "bind")
            with pytest.raises(ApiError) as error:
                await client("POST", f"{WEB}/binding", binding())
            assert error.value.ambiguous
            assert server.get("pods", "web")["spec"]["nodeName"] == "n1"

    run(main)


def test_a_held_request_waits() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            hold = server.faults.hold("pods", "list")
            waiting = asyncio.create_task(client("GET", PODS))
            await hold.arrived.wait()
            assert not waiting.done()
            hold.release()
            assert (await waiting)["items"] == []

    run(main)


def test_requests_are_recorded() -> None:
    async def main() -> None:
        async with serving() as (server, client):
            await client("GET", PODS, labelSelector="app=web")
            with pytest.raises(ApiError):
                await client("POST", f"{WEB}/binding", binding("u1"))
            (record,) = server.requests_of("bind", "pods")
            assert (record.namespace, record.name, record.status) == ("default", "web", 404)
            assert record.body["metadata"]["uid"] == "u1"
            assert [record.verb for record in server.requests] == ["list", "bind"]

    run(main)


def test_a_path_that_is_not_served_is_not_found() -> None:
    async def main() -> None:
        async with serving() as (_, client):
            with pytest.raises(ApiError) as error:
                await client("GET", "/apis/example.com/v1/frobs")
            assert error.value.status == 404

    run(main)

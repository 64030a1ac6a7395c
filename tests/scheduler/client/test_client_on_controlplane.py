"""The client against a real API server, with the rights that berth ships with."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from scheduler.client.api import Api, Permission
from scheduler.client.codec import Decoder
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError, ClientConfigError
from scheduler.client.transport import Transport
from scheduler.kinds import PODS
from scheduler.pools.ownership import POOL, ROUND
from tests.controlplane.objects import make_namespace, make_pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from cache.objects import Pod
    from tests.controlplane.control_plane import ControlPlane
    from tests.scheduler.client.conftest import Run

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.parametrize("run", ["uvloop"], indirect=True),  # the loop of production
]


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.berth_kubeconfig()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    name = f"client-{secrets.token_hex(4)}"
    control_plane.call("POST", "/api/v1/namespaces", make_namespace(name))
    return name


@pytest.fixture
def pod(control_plane: ControlPlane, namespace: str) -> str:
    """Make a pod "web" in `namespace` and return its UID."""
    return make(control_plane, namespace, "web")


def make(control_plane: ControlPlane, namespace: str, name: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/pods"
    made = control_plane.call("POST", path, make_pod(name, namespace=namespace))
    uid: str = made["metadata"]["uid"]
    return uid


def stored(control_plane: ControlPlane, namespace: str) -> dict[str, Any]:
    return control_plane.call("GET", f"/api/v1/namespaces/{namespace}/pods/web")


@contextlib.asynccontextmanager
async def transport_of(kubeconfig: Path) -> AsyncIterator[Transport]:
    transport = Transport(await load_credentials(str(kubeconfig)), user_agent="berth/test")
    try:
        yield transport
    finally:
        await transport.close()


def call(run: Run, kubeconfig: Path, use: Callable[[Api], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with transport_of(kubeconfig) as transport:
            return await use(Api(transport))

    return run(main())


def refusal(run: Run, kubeconfig: Path, use: Callable[[Api], Awaitable[Any]]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(run, kubeconfig, use)
    return caught.value


# --- binding ----------------------------------------------------------------------------------


def test_a_pod_is_bound(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    call(run, kubeconfig, lambda api: api.bind_pod(namespace, "web", pod, "n1"))
    assert stored(control_plane, namespace)["spec"]["nodeName"] == "n1"


def test_a_pod_of_the_same_name_is_not_bound_in_its_place(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    error = refusal(run, kubeconfig, lambda api: api.bind_pod(namespace, "web", "old-uid", "n1"))
    assert (error.status, error.ambiguous) == (409, False)
    assert "nodeName" not in stored(control_plane, namespace)["spec"]


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_bound_pod_is_not_bound_again(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str, node: str
) -> None:
    call(run, kubeconfig, lambda api: api.bind_pod(namespace, "web", pod, "n1"))
    error = refusal(run, kubeconfig, lambda api: api.bind_pod(namespace, "web", pod, node))
    assert error.status == 409
    assert 'already assigned to node "n1"' in error.message


def test_a_pod_that_was_written_since_is_not_bound_by_its_version(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    version = stored(control_plane, namespace)["metadata"]["resourceVersion"]
    words = {POOL: "b", ROUND: "1:a"}
    written = call(
        run, kubeconfig, lambda api: api.annotate_pending_pod(namespace, "web", pod, words, version)
    )
    metadata = stored(control_plane, namespace)["metadata"]
    assert metadata["annotations"] == words
    assert metadata["resourceVersion"] == written
    error = refusal(
        run,
        kubeconfig,
        lambda api: api.bind_pod(namespace, "web", pod, "n1", resource_version=version),
    )
    assert (error.status, error.ambiguous) == (409, False)
    assert "nodeName" not in stored(control_plane, namespace)["spec"]
    call(
        run,
        kubeconfig,
        lambda api: api.bind_pod(namespace, "web", pod, "n1", resource_version=written),
    )
    assert stored(control_plane, namespace)["spec"]["nodeName"] == "n1"


def test_a_pod_that_was_written_since_is_not_handed_on(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    version = stored(control_plane, namespace)["metadata"]["resourceVersion"]
    call(run, kubeconfig, lambda api: api.bind_pod(namespace, "web", pod, "n1"))
    error = refusal(
        run,
        kubeconfig,
        lambda api: api.annotate_pending_pod(namespace, "web", pod, {POOL: "b"}, version),
    )
    assert error.status == 409
    assert "annotations" not in stored(control_plane, namespace)["metadata"]


def test_a_pod_that_is_not_there_is_not_bound(run: Run, kubeconfig: Path, namespace: str) -> None:
    error = refusal(run, kubeconfig, lambda api: api.bind_pod(namespace, "none", "uid", "n1"))
    assert error.status == 404


def test_many_pods_are_bound_at_once(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    uids = {f"web-{i}": make(control_plane, namespace, f"web-{i}") for i in range(60)}

    async def bind_all(api: Api) -> None:
        async with asyncio.TaskGroup() as group:
            for name, uid in uids.items():
                group.create_task(api.bind_pod(namespace, name, uid, f"node-of-{name}"))

    call(run, kubeconfig, bind_all)
    pods = control_plane.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert {item["metadata"]["name"]: item["spec"]["nodeName"] for item in pods} == {
        name: f"node-of-{name}" for name in uids
    }


# --- reading ----------------------------------------------------------------------------------


def test_a_pod_is_read(run: Run, kubeconfig: Path, namespace: str, pod: str) -> None:
    found: Pod = call(run, kubeconfig, lambda api: api.get_pod(namespace, "web"))
    assert (found.metadata.uid, found.spec.scheduler_name) == (pod, "berth")


def test_a_pod_that_is_not_there_is_none(run: Run, kubeconfig: Path, namespace: str) -> None:
    assert call(run, kubeconfig, lambda api: api.get_pod(namespace, "none")) is None


def test_pages_bring_every_pod_once(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    made = {make(control_plane, namespace, f"web-{i}") for i in range(7)}
    decoder = Decoder(PODS.struct)

    async def list_all(api: Api) -> list[str]:
        uids: list[str] = []
        token = ""
        while True:
            page = await api.list_page(PODS, limit=3, continue_=token)
            pods = [decoder.decode(item) for item in page.items or ()]
            uids += [pod.metadata.uid for pod in pods if pod.metadata.namespace == namespace]
            token = page.metadata.continue_
            if not token:
                return uids

    assert sorted(call(run, kubeconfig, list_all)) == sorted(made)


def test_a_watch_brings_what_happens(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    async def main() -> dict[str, Any]:
        query = [("watch", "true"), ("fieldSelector", f"metadata.namespace={namespace}")]
        received = b""
        async with (
            transport_of(kubeconfig) as transport,
            transport.stream(PODS.path, query=query, read_timeout_s=20.0) as stream,
        ):
            await asyncio.to_thread(make, control_plane, namespace, "web")
            async for chunk in stream.chunks():
                received += chunk
                if b"\n" in received:
                    break
        event: dict[str, Any] = msgspec.json.decode(received.partition(b"\n")[0])
        return event

    event = run(main())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "web")


# --- writing status and events ----------------------------------------------------------------


def condition(reason: str) -> dict[str, Any]:
    return {
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/0 nodes"}
        ]
    }


def test_a_condition_is_merged_by_its_type(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    async def patch_twice(api: Api) -> None:
        for reason in ("SchedulerError", "Unschedulable"):
            await api.patch_pod_status(namespace, "web", pod, condition(reason))

    call(run, kubeconfig, patch_twice)
    conditions = stored(control_plane, namespace)["status"]["conditions"]
    assert [(one["type"], one["reason"]) for one in conditions] == [
        ("PodScheduled", "Unschedulable")
    ]


def test_a_nomination_is_removed_by_null(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    async def nominate_and_clear(api: Api) -> None:
        for node in ("n1", None):
            await api.patch_pod_status(namespace, "web", pod, {"nominatedNodeName": node})

    call(run, kubeconfig, nominate_and_clear)
    assert "nominatedNodeName" not in stored(control_plane, namespace)["status"]


def test_the_status_of_a_pod_of_the_same_name_is_left_alone(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str, pod: str
) -> None:
    error = refusal(
        run,
        kubeconfig,
        lambda api: api.patch_pod_status(namespace, "web", "old-uid", condition("Unschedulable")),
    )
    assert error.status == 422
    assert "conditions" not in stored(control_plane, namespace)["status"]


def test_an_event_is_created_and_counted_up(
    run: Run, control_plane: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    now = "2026-01-01T00:00:00.000000Z"
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": namespace},
        "eventTime": now,
        "reportingController": "berth",
        "reportingInstance": "berth-0",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": namespace},
    }

    async def report(api: Api) -> None:
        await api.create_event(namespace, event)
        series = {"series": {"count": 2, "lastObservedTime": now}}
        await api.patch_event(namespace, "web.1", series)

    call(run, kubeconfig, report)
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/web.1"
    assert control_plane.call("GET", path)["series"]["count"] == 2


# --- the start --------------------------------------------------------------------------------


def test_the_server_says_its_version(run: Run, kubeconfig: Path) -> None:
    assert call(run, kubeconfig, lambda api: api.check_server()).startswith("v1.")


def test_rights_that_are_missing_are_named(run: Run, kubeconfig: Path) -> None:
    bind = Permission("create", "pods/binding")
    delete = Permission("delete", "nodes")
    events = Permission("create", "events", "events.k8s.io")
    missing = call(run, kubeconfig, lambda api: api.missing_permissions([bind, delete, events]))
    assert missing == [delete]


@pytest.mark.parametrize(
    ("section", "change", "sentence"),
    [
        pytest.param("users", {"token": "wrong"}, "does not accept the credentials", id="token"),
        pytest.param(
            "clusters",
            {"certificate-authority-data": None},
            "the certificate of 127.0.0.1:.* is not trusted",
            id="authority",
        ),
        pytest.param("clusters", {"tls-server-name": "other"}, "not valid for 'other'", id="name"),
    ],
)
def test_a_wrong_kubeconfig_is_one_clear_sentence(
    run: Run, kubeconfig: Path, tmp_path: Path, section: str, change: dict[str, Any], sentence: str
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config[section][0][section[:-1]].update(change)
    wrong = tmp_path / "config"
    wrong.write_text(yaml.safe_dump(config))
    with pytest.raises(ClientConfigError, match=sentence) as caught:
        call(run, wrong, lambda api: api.check_server())
    assert "\n" not in str(caught.value)


# --- faults -----------------------------------------------------------------------------------


def test_a_bind_that_got_no_answer_is_settled_by_reading_the_pod(
    run: Run, fresh_control_plane: ControlPlane
) -> None:
    """The server is stopped in the middle; what it does when it wakes up, the pod tells."""
    uid = make(fresh_control_plane, "default", "web")
    kubeconfig = fresh_control_plane.berth_kubeconfig()

    async def bind(api: Api) -> tuple[ApiError, str]:
        assert await api.get_pod("default", "web") is not None  # the connection is open
        fresh_control_plane.pause_apiserver()
        try:
            with pytest.raises(ApiError) as caught:
                await api.bind_pod("default", "web", uid, "n1", timeout_s=0.3)
        finally:
            fresh_control_plane.resume_apiserver()
        pod = await api.get_pod("default", "web")
        assert pod is not None
        if not pod.spec.node_name:
            await api.bind_pod("default", "web", uid, "n1")
        settled = await api.get_pod("default", "web")
        assert settled is not None
        return caught.value, settled.spec.node_name

    error, node = call(run, kubeconfig, bind)
    assert (error.reason, error.ambiguous) == ("Timeout", True)
    assert node == "n1"


def test_a_killed_server_ends_a_watch_and_refuses_writes_without_doubt(
    run: Run, fresh_control_plane: ControlPlane
) -> None:
    kubeconfig = fresh_control_plane.berth_kubeconfig()

    async def main() -> tuple[str, str, bool]:
        query = [("watch", "true")]
        async with (
            transport_of(kubeconfig) as transport,
            transport.stream(PODS.path, query=query) as stream,
        ):
            fresh_control_plane.kill_apiserver()
            with pytest.raises(ApiError) as watch:
                async for _ in stream.chunks():
                    pass
            with pytest.raises(ApiError) as write:
                await Api(transport).bind_pod("default", "web", "uid", "n1")
            return watch.value.reason, write.value.reason, write.value.ambiguous

    assert run(main()) == ("Disconnected", "Unreachable", False)

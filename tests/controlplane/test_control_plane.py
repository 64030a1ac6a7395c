from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.controlplane.access import RBAC_FILE, USER
from tests.controlplane.api import ApiClient, ApiError, bind
from tests.controlplane.audit import (
    accepted_binds,
    bind_records,
    check_binds,
    forbidden_requests,
)
from tests.controlplane.binaries import ControlPlaneError
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.controlplane.peer import start_kube_scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def admin(control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(control_plane.admin_kubeconfig) as api:
        yield api


@pytest.fixture(scope="module")
def berth(control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(control_plane.berth_kubeconfig()) as api:
        yield api


@pytest.fixture(scope="module")
def victim(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """A server to kill; each test leaves it running, and its pods to the next."""
    with ControlPlane() as control_plane:
        yield control_plane


@pytest.fixture
def namespace(admin: BlockingApi, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = f"t{abs(hash(request.node.nodeid)):x}"
    admin.create_many([make_namespace(name)])
    return name


@pytest.fixture
def node(admin: BlockingApi, namespace: str) -> Iterator[str]:
    """A node that goes with the test."""
    admin.create_many([make_node(namespace)])
    yield namespace
    admin.delete(f"/api/v1/nodes/{namespace}")


async def watch_from(kubeconfig: Path, version: str) -> None:
    """Watch namespaces from `version` and return at the first event."""
    async with (
        ApiClient(kubeconfig) as api,
        contextlib.aclosing(api.watch("/api/v1/namespaces", resource_version=version)) as events,
    ):
        await anext(events)


# --- a server that starts


def test_the_default_namespace_is_there(admin: BlockingApi) -> None:
    assert admin.get("/api/v1/namespaces/default")["status"]["phase"] == "Active"


def test_a_node_keeps_the_status_that_it_is_created_with(admin: BlockingApi, node: str) -> None:
    assert admin.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"] == "4"


def test_a_new_node_is_not_tainted(admin: BlockingApi, node: str) -> None:
    assert "taints" not in admin.get(f"/api/v1/nodes/{node}")["spec"]


def test_objects_are_created_in_the_order_given(admin: BlockingApi, namespace: str) -> None:
    names = [f"p-{i}" for i in range(200)]
    created = admin.create_many(make_pod(name, namespace=namespace) for name in names)
    assert [pod["metadata"]["name"] for pod in created] == names


def test_a_list_is_read_over_its_pages(admin: BlockingApi, namespace: str) -> None:
    admin.create_many(make_pod(f"p-{i}", namespace=namespace) for i in range(501))
    assert len(admin.pods(namespace)) == 501


def test_the_first_refusal_is_raised(admin: BlockingApi, namespace: str) -> None:
    with pytest.raises(ApiError) as refused:
        admin.create_many([make_pod("same", namespace=namespace)] * 2)
    assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")


def test_a_start_that_fails_shows_the_log(controlplane_binaries: None) -> None:
    control_plane = ControlPlane(extra_apiserver_args=["--no-such-flag"])
    with pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver ended.*no-such-flag"):
        control_plane.start()
    assert control_plane.pids == {}


def test_what_is_stopped_leaves_nothing_behind(
    controlplane_binaries: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ControlPlaneError), ControlPlane(extra_apiserver_args=["--no-such-flag"]):
        pass
    assert list(tmp_path.iterdir()) == []


# --- berth's own rights


def test_the_role_has_no_wildcard() -> None:
    rules = [
        value
        for manifest in yaml.safe_load_all(RBAC_FILE.read_text())
        for rule in manifest.get("rules", ())
        for values in rule.values()
        for value in values
    ]
    assert rules
    assert "*" not in rules


@pytest.mark.parametrize("resource", ["nodes", "pods", "namespaces"])
def test_berth_may_list(berth: BlockingApi, resource: str) -> None:
    assert isinstance(berth.list_all(f"/api/v1/{resource}"), list)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("POST", "/api/v1/namespaces/default/pods", make_pod("x"), id="create-pod"),
        pytest.param("PATCH", "/api/v1/namespaces/default/pods/x", {}, id="patch-pod"),
        pytest.param("DELETE", "/api/v1/namespaces/default/pods", None, id="delete-all-pods"),
        pytest.param("DELETE", "/api/v1/nodes/x", None, id="delete-node"),
        pytest.param("PATCH", "/api/v1/nodes/x", {}, id="patch-node"),
        pytest.param("GET", "/api/v1/secrets", None, id="list-secrets"),
    ],
)
def test_berth_may_not(
    control_plane: ControlPlane, berth: BlockingApi, method: str, path: str, body: Any
) -> None:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        berth.run(berth.client.request(method, path, body, content_type=content_type))
    assert refused.value.status == 403
    denied = forbidden_requests(control_plane.audit_events(), user=USER)
    assert path in {request.path for request in denied}


# --- the audit log


def test_the_log_shows_berths_bind(
    control_plane: ControlPlane, admin: BlockingApi, berth: BlockingApi, namespace: str, node: str
) -> None:
    (pod,) = admin.create_many([make_pod("web", namespace=namespace)])
    uid = pod["metadata"]["uid"]
    berth.post(*bind(namespace, "web", uid, node))
    (record,) = accepted_binds(control_plane.audit_events())[uid]
    assert (record.namespace, record.name, record.node, record.user) == (
        namespace,
        "web",
        node,
        USER,
    )


@pytest.mark.parametrize(
    ("uid", "times"),
    [
        pytest.param("", 2, id="already-bound"),
        pytest.param("00000000-0000-0000-0000-000000000000", 1, id="another-pods-uid"),
    ],
)
def test_a_refused_bind_is_logged_and_not_accepted(
    control_plane: ControlPlane,
    admin: BlockingApi,
    berth: BlockingApi,
    namespace: str,
    node: str,
    uid: str,
    times: int,
) -> None:
    (pod,) = admin.create_many([make_pod("web", namespace=namespace)])
    path, body = bind(namespace, "web", uid or pod["metadata"]["uid"], node)
    for _ in range(times - 1):
        berth.post(path, body)
    with pytest.raises(ApiError) as refused:
        berth.post(path, body)
    assert refused.value.status == 409
    codes = [
        record.code
        for record in bind_records(control_plane.audit_events())
        if record.namespace == namespace
    ]
    assert codes == [201] * (times - 1) + [409]


def test_a_server_without_audit_says_so(controlplane_binaries: None) -> None:
    with pytest.raises(ControlPlaneError, match="without an audit log"):
        next(ControlPlane(audit=False).audit_events())


# --- faults made on purpose


def test_a_killed_server_comes_back_with_its_data(victim: ControlPlane) -> None:
    with BlockingApi(victim.admin_kubeconfig) as api:
        (before,) = api.create_many([make_pod("kept")])
        victim.kill_apiserver()
        victim.start_apiserver()
        assert api.get("/api/v1/namespaces/default/pods/kept") == before


def test_the_audit_log_goes_on_over_a_restart(victim: ControlPlane) -> None:
    with BlockingApi(victim.admin_kubeconfig) as api:
        pods = api.create_many([make_pod("first"), make_pod("second")])
        for pod in pods:
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            api.post(*bind("default", name, uid, "anywhere"))
            victim.kill_apiserver()
            victim.start_apiserver()
        events = list(victim.audit_events())
        assert accepted_binds(events).keys() >= {pod["metadata"]["uid"] for pod in pods}
        assert check_binds(events, user="admin", pods=api.pods()) == []


def test_every_version_is_gone_after_force_gone(victim: ControlPlane) -> None:
    kubeconfig = victim.admin_kubeconfig
    with BlockingApi(kubeconfig) as api:
        # The newest version there is: nothing but force_gone itself happens after it.
        newest = api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
        victim.force_gone()
        with pytest.raises(ApiError) as gone:
            api.run(watch_from(kubeconfig, newest))
    assert (gone.value.status, gone.value.reason) == (410, "Expired")


def test_a_continue_token_is_gone_after_compaction(victim: ControlPlane) -> None:
    with BlockingApi(victim.admin_kubeconfig) as api:
        page = api.get("/api/v1/namespaces", limit="1")
        victim.force_gone()
        with pytest.raises(ApiError) as gone:
            api.get("/api/v1/namespaces", limit="1", **{"continue": page["metadata"]["continue"]})
    assert (gone.value.status, gone.value.reason) == (410, "Expired")


def test_without_a_watch_cache_compaction_is_enough(controlplane_binaries: None) -> None:
    with (
        ControlPlane(watch_cache=False) as control_plane,
        BlockingApi(control_plane.admin_kubeconfig) as api,
    ):
        newest = api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
        control_plane.compact_etcd()
        with pytest.raises(ApiError) as gone:
            api.run(watch_from(control_plane.admin_kubeconfig, newest))
    assert (gone.value.status, gone.value.reason) == (410, "Expired")


def test_a_paused_server_answers_when_it_goes_on(victim: ControlPlane) -> None:
    async def ask_while_paused() -> tuple[bool, Any]:
        async with ApiClient(victim.admin_kubeconfig) as api:
            victim.pause_apiserver()
            asked = asyncio.create_task(api.get("/readyz"))
            answered, _ = await asyncio.wait({asked}, timeout=0.2)
            victim.resume_apiserver()
            return bool(answered), await asked

    assert asyncio.run(ask_while_paused()) == (False, "ok")


def test_wait_bound_survives_a_restart(victim: ControlPlane) -> None:
    async def scenario() -> int:
        async with ApiClient(victim.admin_kubeconfig) as api:
            await api.create_many([make_namespace("waited")])
            pods = await api.create_many(make_pod(n, namespace="waited") for n in ("one", "two"))
            one, two = (pod["metadata"]["uid"] for pod in pods)
            waiting = asyncio.create_task(api.wait_bound(2, namespace="waited"))
            await api.post(*bind("waited", "one", one, "anywhere"))
            await asyncio.to_thread(victim.force_gone)
            await api.post(*bind("waited", "two", two, "anywhere"))
            return len((await waiting).nodes)

    assert asyncio.run(scenario()) == 2


# --- processes


def test_a_server_outlives_the_thread_that_started_it(victim: ControlPlane) -> None:
    victim.kill_apiserver()
    starter = threading.Thread(target=victim.start_apiserver)
    starter.start()
    starter.join()
    assert victim.call("GET", "/readyz") == {"text": "ok"}


def test_no_server_outlives_the_process_that_started_it(
    controlplane_binaries: None, tmp_path: Path
) -> None:
    program = (
        "import os, signal\n"
        "from tests.controlplane.control_plane import ControlPlane\n"
        "control_plane = ControlPlane()\n"
        "control_plane.start()\n"
        "print(*control_plane.pids.values(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        # The data folder, which nobody can remove after a SIGKILL, goes with the test's own.
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in answer.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "a server is still running"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- the peer


def test_the_peer_binds_its_own_pods_only(victim: ControlPlane) -> None:
    with BlockingApi(victim.admin_kubeconfig) as api:
        api.create_many([make_node("node"), make_namespace("peer")])
        api.create_many(
            [make_pod("ours", namespace="peer")]
            + [
                make_pod(f"its-{i}", namespace="peer", scheduler_name="default-scheduler")
                for i in range(3)
            ]
        )
        peer = start_kube_scheduler(victim)
        try:
            api.wait_bound(3, namespace="peer")
        finally:
            peer.terminate()
        bound = {p["metadata"]["name"] for p in api.pods("peer") if "nodeName" in p["spec"]}
    assert bound == {"its-0", "its-1", "its-2"}

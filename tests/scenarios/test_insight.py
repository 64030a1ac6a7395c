"""Questions to a berth that schedules, by users that a real API server knows.

They come as users' do: through the API server to the leader's port, with kubeconfigs of several
kinds. What stands for a kubelet forwards ports only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from scheduler.cli import main
from scheduler.serving.options import ServingOptions
from tests.controlplane.access import NAMESPACE
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.forwarding_kubelet import ForwardingKubelet
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth
from tests.scenarios.test_standby import SHORT, electing
from tests.scheduler.serving.client_authorities import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

CLIENTS, PROXIES = Authority("clients"), Authority("proxies")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SERVING = ServingOptions(bind_address="127.0.0.1", secure_port=0)
LEADER = "berth-0"

ASKS = {"": [("pods/portforward", "get"), ("pods/portforward", "create")]}
READS_PODS = {"": [("pods", "get"), ("pods", "list")]}

TENANT, VIEWER, AUDITOR, OUTSIDER = "tenant", "viewer", "auditor", "outsider"
USERS = (TENANT, VIEWER, AUDITOR, OUTSIDER)


class World:
    """A control plane, a leader, and pods that wait in two namespaces."""

    def __init__(self, plane: ControlPlane, api: BlockingApi, folder: Path) -> None:
        self.plane = plane
        self.api = api
        self.folder = folder

    def arrange(self, kubelet: ForwardingKubelet) -> None:
        host = make_node("host", cpu="1", taints=[{"key": "host", "effect": "NoSchedule"}])
        self.api.create_many([host, make_node("small", cpu="1")])
        self.api.patch("/api/v1/nodes/host/status", {"status": kubelet.node_status()})
        for namespace in ("team-a", "team-b"):
            self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for replica in (LEADER, "berth-1"):
            container = {
                "name": "berth",
                "image": "berth",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
            security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
            made = make_pod(
                replica,
                namespace=NAMESPACE,
                nodeName="host",
                containers=[container],
                securityContext=security,
            )
            self.api.create_many([made])
        self._grant("asks", NAMESPACE, USERS[:3], [("pods/portforward", ["get", "create"])])
        self._grant("lease", NAMESPACE, USERS[:3], [("leases", ["get"])], "coordination.k8s.io")
        self._grant("pods", "team-a", (TENANT, VIEWER), [("pods", ["get", "list"])])
        self._grant("nodes", "", (VIEWER,), [("nodes", ["get"])])

    def _grant(self, name: str, namespace: str, users: Any, rules: Any, group: str = "") -> None:
        kind = "Role" if namespace else "ClusterRole"
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        path = f"{where}/{kind.lower()}s"
        made = [{"apiGroups": [group], "resources": [r], "verbs": v} for r, v in rules]
        self.api.post(path, {"metadata": {"name": f"test-{name}"}, "rules": made})
        self.api.post(
            f"{where}/{kind.lower()}bindings",
            {
                "metadata": {"name": f"test-{name}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": kind,
                    "name": f"test-{name}",
                },
                "subjects": [
                    {"kind": "User", "name": u, "apiGroup": "rbac.authorization.k8s.io"}
                    for u in users
                ],
            },
        )

    def by_certificate(self, name: str, *groups: str) -> Path:
        """Return a kubeconfig with a client certificate in place of a token."""
        config = yaml.safe_load(self.plane.admin_kubeconfig.read_text())
        pem = Path(CLIENTS.sign(self.folder, name, *groups)).read_bytes()
        data = base64.b64encode(pem).decode()
        user = {"client-certificate-data": data, "client-key-data": data}
        config["users"][0]["user"] = user
        file = self.folder / f"{name}-certificate.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    def by_exec(self, name: str) -> Path:
        """Return a kubeconfig whose token a program prints."""
        config = yaml.safe_load(self.plane.kubeconfig_of(name).read_text())
        token = config["users"][0]["user"]["token"]
        version = "client.authentication.k8s.io/v1"
        printed = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": token}}
        config["users"][0]["user"] = {
            "exec": {
                "apiVersion": version,
                "command": "echo",
                "args": [json.dumps(printed)],
                "interactiveMode": "Never",
            }
        }
        file = self.folder / f"{name}-exec.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file


@pytest.fixture(scope="module")
def world(controlplane_binaries: None, tmp_path_factory: Any) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("insight")
    for name, authority in (("clients", CLIENTS), ("proxies", PROXIES)):
        (folder / f"{name}.crt").write_text(authority.pem)
    arguments = [
        f"--client-ca-file={folder / 'clients.crt'}",
        f"--requestheader-client-ca-file={folder / 'proxies.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]
    with (
        ControlPlane(users=dict.fromkeys(USERS, ""), extra_apiserver_args=arguments) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        ForwardingKubelet() as kubelet,
    ):
        berth = plane.berth_kubeconfig()
        world = World(plane, api, folder)
        world.arrange(kubelet)
        options = {"config": electing(**SHORT), "serving": SERVING}
        with RunningBerth(berth, identity=f"{LEADER}_1", **options) as leader:
            api.wait_until(lambda: leader.is_ready and leader.app._leads(), "it leads")
            kubelet.addresses[LEADER] = leader.app.server.address
            world.leader = leader
            world.kubelet = kubelet
            world.berth = berth
            for namespace in ("team-a", "team-b"):
                made = make_pod("waits", namespace=namespace, cpu="2")
                api.create_many([made])
            api.wait_until(lambda: _refused(api, 2), "both are refused")
            yield world


def _refused(api: BlockingApi, count: int) -> bool:
    pods = [*api.pods("team-a"), *api.pods("team-b")]
    return sum(bool(each["status"].get("conditions")) for each in pods) == count


class Asked:
    """What a command printed, and its exit status."""

    def __init__(self, capsys: Any, kubeconfig: Path, *arguments: str) -> None:
        self.status = main([*arguments, "--kubeconfig", str(kubeconfig)])
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err


# --- kinds of kubeconfigs ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["token", "certificate", "exec"])
def test_kubeconfigs_that_work(world: World, capsys, kind):
    kubeconfigs = {
        "token": lambda: world.plane.kubeconfig_of(TENANT),
        "certificate": lambda: world.by_certificate(TENANT),
        "exec": lambda: world.by_exec(TENANT),
    }
    asked = Asked(capsys, kubeconfigs[kind](), "why", "team-a/waits")
    assert (asked.status, asked.err) == (0, "")
    assert asked.out.startswith("Pod team-a/waits waits for a change that may help.\n")
    assert "0/2 nodes are available" in asked.out


def test_the_group_of_a_certificate_counts(world: World, capsys):
    kubeconfig = world.by_certificate("jane", "system:masters")
    assert Asked(capsys, kubeconfig, "why", "-n", "team-b", "waits").status == 0


# --- rights ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "pod", "why"),
    [
        pytest.param(TENANT, "team-a/waits", "", id="tenant, own pod"),
        pytest.param(TENANT, "team-b/waits", "forbidden", id="tenant, pod of another"),
        pytest.param(TENANT, "team-b/missing", "forbidden", id="tenant, whether another's exists"),
        pytest.param(TENANT, "team-a/missing", "there is no pod", id="tenant, no such pod"),
        pytest.param(VIEWER, "team-a/waits", "", id="viewer, own pod"),
        pytest.param(AUDITOR, "team-a/waits", "forbidden", id="no right to the pod"),
        pytest.param(
            OUTSIDER, "team-a/waits", "may not read the Lease", id="no right in Berth's namespace"
        ),
        pytest.param("admin", "team-b/waits", "", id="admin"),
    ],
)
def test_who_may_ask_about_a_pod(world: World, capsys, user, pod, why):
    asked = Asked(capsys, world.plane.kubeconfig_of(user), "why", pod, "-o", "json")
    assert why in asked.err
    assert asked.status == (1 if why else 0)


@pytest.mark.parametrize(
    ("user", "sees"),
    [pytest.param(TENANT, False, id="tenant"), pytest.param(VIEWER, True, id="viewer")],
)
def test_nodes_are_named_to_those_who_may_get_nodes(world: World, capsys, user, sees):
    asked = Asked(capsys, world.plane.kubeconfig_of(user), "why", "team-a/waits", "-o", "json")
    assert ("small" in asked.out) is sees


def fetch(world: World, path: str, headers: dict[str, str], certificate: str | None = None) -> int:
    """Return the status of a request straight to the leader's port."""
    context = ssl._create_unverified_context()
    if certificate is not None:
        context.load_cert_chain(certificate)
    request = urllib.request.Request(
        f"https://{world.leader.app.server.address}/insight/v1/{path}", headers=headers
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


QUESTIONS = {
    "own decisions": ("decisions?namespace=team-a", {TENANT, VIEWER, "admin"}),
    "others' decisions": ("decisions?namespace=team-b", {"admin"}),
    "all decisions": ("decisions", {"admin"}),
    "own pending": ("pending?namespace=team-a", {TENANT, VIEWER, "admin"}),
    "all pending": ("pending", {"admin"}),
    "policies": ("policies", {"admin"}),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_who_may_ask_the_other_questions(world: World, question):
    path, allowed = QUESTIONS[question]
    users = (*USERS, "admin")
    statuses = {
        user: fetch(world, path, {"Authorization": f"Bearer {world.plane._tokens[user]}"})
        for user in users
    }
    assert statuses == {user: 200 if user in allowed else 403 for user in users}


@pytest.mark.parametrize(
    ("authority", "name", "status"),
    [
        pytest.param(None, "", 401, id="over no certificate"),
        pytest.param(CLIENTS, "front-proxy", 403, id="over a client's certificate"),
        pytest.param(PROXIES, "other", 401, id="over a proxy's that is not allowed"),
        pytest.param(PROXIES, "front-proxy", 200, id="over the front proxy's"),
    ],
)
def test_a_user_named_in_headers(world: World, authority, name, status):
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    certificate = None if authority is None else authority.sign(world.folder, name)
    assert fetch(world, "pending", headers, certificate) == status


# --- a leader that changes ---------------------------------------------------------------------


def test_a_leader_that_changes_is_asked_again(world: World, capsys):
    """The last test of the file: the leader ends."""
    answers: list[int] = []
    stop = threading.Event()
    kubeconfig = str(world.plane.kubeconfig_of(TENANT))

    def ask() -> None:
        while not stop.is_set():
            answers.append(main(["why", "team-a/waits", "--kubeconfig", kubeconfig]))

    options = {"config": electing(**SHORT), "serving": SERVING}
    with RunningBerth(world.berth, identity="berth-1_1", **options) as heir:
        world.api.wait_until(lambda: heir.is_ready, "the heir stands by")
        world.kubelet.addresses["berth-1"] = heir.app.server.address
        thread = threading.Thread(target=ask)
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(stop.set)
            world.api.wait_until(lambda: len(answers) > 1, "questions are answered")
            world.leader.stop()
            before = len(answers)
            world.api.wait_until(lambda: len(answers) > before + 2, "the heir answers")
    assert set(answers) == {0}, capsys.readouterr().err

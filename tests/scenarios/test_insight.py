"""Questions to a berth that schedules, by users that a real API server knows.

They come as users' do: through the API server to the leader's port, with kubeconfigs of several
kinds. What stands for a kubelet forwards ports only.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from scheduler.cli import main
from scheduler.client.credential_search import load_credentials
from scheduler.insight import leader_client
from scheduler.insight.leader_client import LeaderClient
from scheduler.insight.worker_process import AT_ONCE
from scheduler.serving.certificate import SelfMadeCertificate
from scheduler.serving.options import ServingOptions
from tests.controlplane.access import NAMESPACE
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.forwarding_kubelet import ForwardingKubelet
from tests.controlplane.objects import make_node, make_pod, make_restricted_pod
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


TENANT, VIEWER, AUDITOR, OUTSIDER = "tenant", "viewer", "auditor", "outsider"
OBSERVER = "observer"
"""Lists the pods of all namespaces, and gets no node."""
USERS = (TENANT, VIEWER, AUDITOR, OBSERVER, OUTSIDER)
CROWD = tuple(f"crowd-{number}" for number in range(50))


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
            self.api.create_many([make_restricted_pod(replica, NAMESPACE, "host")])
        # The Role is the chart's.
        self._bind("asks", NAMESPACE, (*USERS[:4], *CROWD), "Role", "berth-asker")
        self._grant("pods", "team-a", (TENANT, VIEWER), [("pods", ["get", "list", "create"])])
        self._grant("crowd", "team-a", CROWD, [("pods", ["get"])])
        self._grant("all", "", (OBSERVER,), [("pods", ["get", "list"])])
        self._grant("nodes", "", (VIEWER,), [("nodes", ["get"])])

    def _grant(self, name: str, namespace: str, users: Any, rules: Any) -> None:
        kind = "Role" if namespace else "ClusterRole"
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        path = f"{where}/{kind.lower()}s"
        made = [{"apiGroups": [""], "resources": [r], "verbs": v} for r, v in rules]
        self.api.post(path, {"metadata": {"name": f"test-{name}"}, "rules": made})
        self._bind(name, namespace, users, kind, f"test-{name}")

    def _bind(self, name: str, namespace: str, users: Any, kind: str, role: str) -> None:
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        self.api.post(
            f"{where}/{kind.lower()}bindings",
            {
                "metadata": {"name": f"test-{name}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": kind,
                    "name": role,
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
        ControlPlane(
            users=dict.fromkeys((*USERS, *CROWD), ""), extra_apiserver_args=arguments
        ) as plane,
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
    "own decisions": ("decisions?namespace=team-a", {TENANT, VIEWER, OBSERVER, "admin"}),
    "others' decisions": ("decisions?namespace=team-b", {OBSERVER, "admin"}),
    "all decisions": ("decisions", {OBSERVER, "admin"}),
    "own pending": ("pending?namespace=team-a", {TENANT, VIEWER, OBSERVER, "admin"}),
    "all pending": ("pending", {OBSERVER, "admin"}),
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


# --- what if -----------------------------------------------------------------------------------

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: trial, namespace: {namespace}}}
spec:
  schedulerName: berth
  containers: [{{name: main, resources: {{requests: {{cpu: 500m}}}}}}]
"""
PACKING = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OWN, OTHERS = ("--pod", "{folder}/team-a.yaml"), ("--pod", "{folder}/team-b.yaml")

FORECASTS = {
    "own pods": (OWN, {TENANT, VIEWER, OBSERVER, "admin"}),
    "pods of others": (OTHERS, {OBSERVER, "admin"}),
    "own pods on a new node": ((*OWN, "--add", "1", "--like", "small"), {VIEWER, "admin"}),
    "own pods after all that wait": ((*OWN, "--pending"), {OBSERVER, "admin"}),
    "another configuration": (("--config", "{folder}/new.yaml"), {OBSERVER, "admin"}),
    "a drain": (("--drain", "small"), {"admin"}),
    "a node less": (("--remove", "small"), {"admin"}),
}


def forecast_flags(world: World, flags: tuple[str, ...]) -> list[str]:
    """Return the flags, with the files that they name written."""
    for namespace in ("team-a", "team-b"):
        (world.folder / f"{namespace}.yaml").write_text(POD.format(namespace=namespace))
    (world.folder / "new.yaml").write_text(PACKING)
    return [flag.format(folder=world.folder) for flag in flags]


@pytest.mark.parametrize("question", FORECASTS)
def test_who_may_ask_what_would_happen(world: World, capsys, question):
    flags, allowed = FORECASTS[question]
    arguments = ["what-if", *forecast_flags(world, flags)]
    said = {}
    for user in (TENANT, VIEWER, AUDITOR, OBSERVER, "admin"):
        asked = Asked(capsys, world.plane.kubeconfig_of(user), *arguments)
        said[user] = asked.status == 0
        assert "forbidden" in asked.err or asked.status == 0, asked.err
    assert said == {user: user in allowed for user in said}


@pytest.mark.parametrize(
    ("user", "sees"),
    [pytest.param(TENANT, False, id="tenant"), pytest.param(VIEWER, True, id="viewer")],
)
def test_forecasts_name_nodes_to_those_who_may_get_nodes(world: World, capsys, user, sees):
    arguments = ["what-if", *forecast_flags(world, OWN), "-o", "json"]
    asked = Asked(capsys, world.plane.kubeconfig_of(user), *arguments)
    assert json.loads(asked.out)["placed"] == 1
    assert ("small" in asked.out) is sees


NO_QUOTAS = (
    "Nothing is known of ResourceQuotas and LimitRanges: what they would refuse or fill in was not "
    "considered."
)


def test_the_leader_and_own_lists_say_the_same(world: World, capsys):
    """But for quotas, which the leader does not watch."""
    flags = forecast_flags(world, (*OWN, "--replicas", "5", "--drain", "small"))
    kubeconfig = world.plane.kubeconfig_of("admin")
    asked, listed = (
        Asked(capsys, kubeconfig, "what-if", *flags, *more).out for more in ((), ("--lists",))
    )
    assert asked == f"{listed}\nNote: {NO_QUOTAS}\n"
    asked, listed = (
        json.loads(Asked(capsys, kubeconfig, "what-if", *flags, "-o", "json", *more).out)
        for more in ((), ("--lists",))
    )
    assert asked == {**listed, "notes": [NO_QUOTAS]}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(("--drain", "smal"), "--drain: there is no node 'smal'", id="a node"),
        pytest.param(
            ("--pod", "{folder}/wrong.yaml"),
            "wrong.yaml: spec.containers[0].resources.requests[cpu]: 'much'",
            id="a quantity",
        ),
    ],
)
def test_a_mistake_is_reported_in_the_words_of_the_command(world: World, capsys, flags, sentence):
    wrong = POD.format(namespace="team-a").replace("500m", "much")
    (world.folder / "wrong.yaml").write_text(wrong)
    kubeconfig = world.plane.kubeconfig_of("admin")
    asked = Asked(capsys, kubeconfig, "what-if", *forecast_flags(world, flags))
    assert (asked.status, sentence in asked.err) == (1, True), asked.err


# --- identities --------------------------------------------------------------------------------


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


# --- who answers -------------------------------------------------------------------------------


class ForgedLeader:
    """A server in the leader's place, with a certificate of its own; it records what it is sent."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._context = SelfMadeCertificate().context()
        self._thread = threading.Thread(target=self._serve)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> ForgedLeader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                raw, _ = self._socket.accept()
            except OSError:
                return
            with raw, contextlib.suppress(OSError):
                self.received.append(b"")
                with self._context.wrap_socket(raw, server_side=True) as secure:
                    self.received[-1] = secure.recv(1 << 16)


def test_a_server_in_the_leaders_place_receives_nothing(world: World, capsys, monkeypatch):
    monkeypatch.setattr(leader_client, "PATIENCE_S", 0.5)
    address = world.kubelet.addresses[LEADER]
    with ForgedLeader() as forged:
        world.kubelet.addresses[LEADER] = forged.address
        try:
            asked = Asked(capsys, world.plane.kubeconfig_of(TENANT), "why", "team-a/waits")
        finally:
            world.kubelet.addresses[LEADER] = address
    assert asked.status == 1
    assert asked.err.startswith(
        f"berth: {NAMESPACE}/{LEADER} has another certificate than the Lease {NAMESPACE}/berth "
        "says, and nothing was sent to it: "
    )
    assert forged.received == [b""]


def test_a_leader_that_has_published_no_certificate_is_not_asked(world: World, capsys, monkeypatch):
    monkeypatch.setattr(leader_client, "PATIENCE_S", 0.5)
    lease = {"metadata": {"name": "bare"}, "spec": {"holderIdentity": f"{LEADER}_1"}}
    world.api.post(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", lease)
    kubeconfig = world.plane.kubeconfig_of("admin")
    asked = Asked(capsys, kubeconfig, "why", "team-a/waits", "--lease", "bare")
    assert asked.status == 1
    assert "berth-0 has not published its certificate" in asked.err


def test_an_authority_in_place_of_the_published_certificate(world: World, capsys):
    """The leader's own certificate is signed by itself: as an authority it is a trusted one."""
    authority = world.folder / "leader.crt"
    authority.write_text(world.leader.app.server.certificate)
    kubeconfig = world.plane.kubeconfig_of(TENANT)
    flags = ("why", "team-a/waits", "--leader-ca", str(authority), "--leader-name")
    assert Asked(capsys, kubeconfig, *flags, "localhost").status == 0
    refused = Asked(capsys, kubeconfig, *flags, "berth.berth-system.svc")
    assert (refused.status, refused.out) == (1, "")
    assert "Hostname mismatch" in refused.err


# --- many questions, and large ones ------------------------------------------------------------


async def ask_all(kubeconfigs: list[Path], pod: str) -> list[bytes | BaseException]:
    """Ask about a pod with all kubeconfigs at once."""

    async def ask(kubeconfig: Path) -> bytes:
        client = LeaderClient(await load_credentials(str(kubeconfig)))
        try:
            return await client.ask("why", {"namespace": "team-a", "name": pod, "form": "text"})
        finally:
            await client.close()

    async with asyncio.timeout(120):
        return await asyncio.gather(*map(ask, kubeconfigs), return_exceptions=True)


def worker_processes(world: World) -> list[int]:
    """Return the insight worker of the leader, and its forks."""
    process = world.leader.app.insight._process
    assert process is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [process.pid, *map(int, children)]


def test_fifty_users_who_ask_at_once_are_all_answered(world: World):
    kubeconfigs = [world.plane.kubeconfig_of(user) for user in CROWD]
    answers = asyncio.run(ask_all(kubeconfigs, "waits"))
    assert [type(each) for each in answers] == [bytes] * len(CROWD), answers
    assert len(worker_processes(world)) <= 1 + AT_ONCE


def test_one_connection_serves_several_questions(world: World):
    async def play() -> list[int]:
        client = LeaderClient(await load_credentials(str(world.plane.kubeconfig_of(VIEWER))))
        forwarded = []
        try:
            for _ in range(3):
                await client.ask("pending", {"namespace": "team-a"})
                forwarded.append(world.kubelet.forwarded)
        finally:
            await client.close()
        return forwarded

    before = world.kubelet.forwarded
    assert asyncio.run(play()) == [before + 1] * 3


def test_a_pod_with_forty_thousand_selector_keys(world: World, capsys):
    selector = {f"key-{number}": "value" for number in range(40_000)}
    world.api.create_many([make_pod("large", namespace="team-a", nodeSelector=selector)])
    pods = world.leader.app.watches.pods
    world.api.wait_until(
        lambda: pods.get("team-a", "large") is not None, "the leader knows the pod"
    )
    asked = Asked(capsys, world.plane.kubeconfig_of(VIEWER), "why", "team-a/large")
    assert (asked.status, asked.err) == (0, "")
    assert "didn't match Pod's node affinity/selector" in asked.out
    assert len(asked.out) < 10_000


# --- a leader that changes ---------------------------------------------------------------------


def test_a_leader_that_changes_is_asked_again(world: World, capsys):
    """The last test of the file: the leader ends."""
    answers: list[int] = []
    stop = threading.Event()
    kubeconfig = str(world.plane.kubeconfig_of(TENANT))
    questions = itertools.cycle((["why", "team-a/waits"], ["what-if", *forecast_flags(world, OWN)]))

    def ask() -> None:
        while not stop.is_set():
            answers.append(main([*next(questions), "--kubeconfig", kubeconfig]))

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
            world.api.wait_until(lambda: len(answers) > before + 3, "the heir answers")
    assert set(answers) == {0}, capsys.readouterr().err

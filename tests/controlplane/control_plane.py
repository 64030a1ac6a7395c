"""A real etcd and a real kube-apiserver on free loopback ports, started in a second or two.

What is real: storage, admission, validation, RBAC, service-account tokens, watches, the audit
log. What is absent: kubelets and controllers (nodes are plain objects, nothing but a test deletes
a pod's node or garbage-collects). The ServiceAccount admission plugin is off, since no controller
fills service accounts; so is TaintNodesByCondition, which would taint each new node not-ready.

    with ControlPlane() as control_plane:
        run_something(control_plane.berth_kubeconfig())
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import random
import secrets
import shutil
import socket
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from tests.controlplane.access import grant_access
from tests.controlplane.audit import POLICY, read_events
from tests.controlplane.binaries import ControlPlaneError, find_or_build
from tests.controlplane.certificates import write_certificates
from tests.controlplane.pod_groups import API_SERVER_ARGS
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

ADMIN: Final = "admin"
# User -> group of the static tokens. The component users get their rights from the cluster roles
# that the API server creates at its start.
_STATIC_USERS: Final[Mapping[str, str]] = {
    ADMIN: "system:masters",
    "system:kube-scheduler": "",
    "system:kube-controller-manager": "",
}
# Plugins that rely on controllers, which these tests do not run: see above.
_DISABLED_ADMISSION: Final = ("ServiceAccount", "TaintNodesByCondition")
_READY_DEADLINE_S: Final = 300.0
"""Longer than a start takes beside a dozen busy processes; an end is noticed at once."""
_POLL_S: Final = 0.02
_PORT_ATTEMPTS: Final = 3
_DAY_S: Final = 86_400


class ControlPlane:
    """etcd and kube-apiserver over a data folder of their own.

    Parameters
    ----------
    audit
        Whether the API server writes an audit log (it costs some throughput).
    load
        Lift the API server's limits on requests in flight and priority and fairness, for
        measurements in which the server shall not be what throttles.
    watch_cache
        False serves watches from etcd itself, so that `compact_etcd` alone makes old
        resourceVersions "gone".
    port
        Where the API server listens; 0 takes a free one.
    disabled_admission
        The admission plugins that are off.
    pod_groups
        Whether the alpha API of pod groups is served. Schedulers and the controller manager that
        are started on this control plane get the gates that it needs.
    users
        More users with a static token, each with its group.
    extra_apiserver_args
        Appended to kube-apiserver's command line; of a repeated flag the last one counts, of one
        that takes a list all together.
    keep
        Leave the data folder (logs, audit log, kubeconfigs) behind at the end.

    Concurrency
    -----------
    Reading and calling the API from any thread; start, stop, kill and pause from one at a time.
    The servers end with the process that started them, however it ends.
    """

    def __init__(
        self,
        *,
        audit: bool = True,
        load: bool = False,
        watch_cache: bool = True,
        port: int = 0,
        disabled_admission: Sequence[str] = _DISABLED_ADMISSION,
        pod_groups: bool = False,
        users: Mapping[str, str] | None = None,
        extra_apiserver_args: Sequence[str] = (),
        keep: bool = False,
    ) -> None:
        self.audit = audit
        self._load = load
        self._watch_cache = watch_cache
        self.pod_groups = pod_groups
        self._extra_apiserver_args = tuple(extra_apiserver_args)
        self._keep = keep
        self._port = port
        self._disabled_admission = tuple(disabled_admission)
        self._users = {**_STATIC_USERS, **(users or {})}
        self._tokens = {user: secrets.token_hex(16) for user in self._users}
        self._folder: Path | None = None
        self._binaries: Mapping[str, Path] = {}
        self._etcd: ServerProcess | None = None
        self._apiserver: ServerProcess | None = None
        self._apiserver_starts = 0
        self._etcd_port = self._etcd_peer_port = self._apiserver_port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start both servers; afterwards the API is ready and namespace ``default`` exists.

        Raises
        ------
        ControlPlaneError
            A program cannot be had, ends during its start (with the tail of its log), or is
            not ready within five minutes. Nothing keeps running then.
        """
        if self._folder is not None:
            raise ControlPlaneError("the control plane is already started")
        self._binaries = find_or_build(["etcd", "kube-apiserver"])
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                self._start_once()
                return
            except ControlPlaneError as error:
                # Between choosing a port and binding it, another process may have taken it.
                if "address already in use" not in str(error) or attempt == _PORT_ATTEMPTS:
                    raise

    def stop(self) -> None:
        """End both servers and delete the data folder; a stopped control plane stays stopped."""
        for server in (self._apiserver, self._etcd):
            if server is not None:
                # Nothing of it is used again: no reason to wait for a graceful end.
                server.kill()
        self._apiserver = self._etcd = None
        if self._folder is not None and not self._keep:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        atexit.unregister(self.stop)

    # --- what tests do to the servers

    def kill_apiserver(self) -> None:
        """Kill the API server (SIGKILL): every connection breaks, etcd keeps the data."""
        self._running_apiserver().kill()
        self._apiserver = None

    def start_apiserver(self) -> None:
        """Start the API server again, on the same port over the same etcd; ready afterwards."""
        if self._apiserver is not None:
            raise ControlPlaneError("kube-apiserver is already running")
        self._apiserver_starts += 1
        self._apiserver = ServerProcess(self._apiserver_command(), self.folder / "apiserver.log")
        self._wait_ready()

    def pause_apiserver(self) -> None:
        """Freeze the API server (SIGSTOP): connections stay open and nothing answers."""
        self._running_apiserver().pause()

    def resume_apiserver(self) -> None:
        """Let a frozen API server go on (SIGCONT)."""
        self._running_apiserver().resume()

    def compact_etcd(self) -> int:
        """Forget etcd's history up to now; the revision up to which it is gone.

        Lists at an older resourceVersion and continue tokens answer 410 from then on. Watches do
        not: the API server serves them from its own watch cache, unless it was started with
        ``watch_cache=False``. `force_gone` makes watches fail too.
        """
        # A watch that starts at the compacted revision itself is still served, and a client that
        # has seen revision n starts at n + 1: so the last two revisions must be nobody's.
        for _ in range(2):
            answer = self._etcd_call(
                "put", {"key": _base64("/berth-test/moved-on"), "value": _base64("1")}
            )
        revision = int(answer["header"]["revision"])
        self._etcd_call("compaction", {"revision": str(revision), "physical": True})
        return revision

    def force_gone(self) -> None:
        """Make every resourceVersion handed out so far "410 Gone", for watches too.

        The API server is killed (which cuts all watches), etcd's history compacted, and the API
        server started again: its new watch cache begins at the present, so it knows no older
        resourceVersion, not even one that a bookmark carried.
        """
        self.kill_apiserver()
        self.compact_etcd()
        self.start_apiserver()

    def save_etcd(self) -> None:
        """Keep a copy of etcd's data as it is now, for :meth:`restore_etcd`."""
        etcd = self._running_etcd()
        etcd.pause()
        try:
            shutil.rmtree(self.folder / "etcd-saved", ignore_errors=True)
            shutil.copytree(self.folder / "etcd", self.folder / "etcd-saved")
        finally:
            etcd.resume()

    def restore_etcd(self) -> None:
        """Go back to what was saved, as after a disaster: both servers are killed and started.

        Revisions go back as well; nothing that came after :meth:`save_etcd` has ever been.
        """
        if self._apiserver is not None:
            self.kill_apiserver()
        self._running_etcd().kill()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self.folder / "etcd-saved", self.folder / "etcd")
        self._etcd = ServerProcess(self._etcd_command(), self.folder / "etcd.log")
        self.start_apiserver()

    # --- where things are

    @property
    def folder(self) -> Path:
        """The data folder: logs, keys, kubeconfigs, audit logs."""
        if self._folder is None:
            raise ControlPlaneError("the control plane is not started")
        return self._folder

    @property
    def url(self) -> str:
        """The API server's base URL."""
        return f"https://127.0.0.1:{self._apiserver_port}"

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that signed the API server's."""
        return self.folder / "ca.crt"

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the servers that run, by program name."""
        servers = (self._etcd, self._apiserver)
        return {server.name: server.pid for server in servers if server and server.running}

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig that may do everything; for arranging and checking, never for berth."""
        return self.kubeconfig_of(ADMIN)

    def kubeconfig_of(self, user: str) -> Path:
        """Return the kubeconfig of a user with a static token (``admin``, a component, a node)."""
        return self.kubeconfig_for(self._tokens[user], user.replace(":", "-"))

    def kubeconfig_for(self, token: str, name: str) -> Path:
        """Write and return ``<name>.kubeconfig``, which carries the CA and a bearer token."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": name,
                    "cluster": {
                        "server": self.url,
                        "certificate-authority-data": _base64(self.ca_file.read_text()),
                    },
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}
            ],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def berth_kubeconfig(self, lifetime_s: int = _DAY_S) -> Path:
        """Install ``deploy/rbac.yaml`` and return a kubeconfig of berth's service account.

        The token comes from the TokenRequest API and the rights hold when this returns. Each
        call brings a new token, so that tests can rotate it.
        """
        return self.kubeconfig_for(grant_access(self.call, lifetime_s), "berth")

    def audit_events(self) -> Iterator[dict[str, Any]]:
        """Yield the audit log's finished requests, in the order in which they were logged.

        A request that the API server was killed in may be missing, although it took effect: the
        log line comes after the work. Check binds against the pods in the API as well.
        """
        if not self.audit:
            raise ControlPlaneError("this control plane was started without an audit log")
        for start in range(1, self._apiserver_starts + 1):
            yield from read_events(self._audit_log(start))

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Make one request as admin (or with `token`) and return the decoded answer.

        Raises
        ------
        urllib.error.HTTPError
            The API server refused.
        OSError
            It could not be reached.
        """
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token or self._tokens[ADMIN]}",
                "Content-Type": content_type,
                "Accept": "application/json",
            },
        )
        context = ssl.create_default_context(cafile=str(self.ca_file))
        # A proxy in the environment is for the world outside, not for loopback.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=10) as answer:
            content = answer.read()
        decoded = json.loads(content) if content.startswith(b"{") else {"text": content.decode()}
        assert isinstance(decoded, dict)
        return decoded

    # --- how it starts

    def _start_once(self) -> None:
        # From here on the end of the interpreter, however untidy the test, cleans up.
        atexit.register(self.stop)
        self._folder = folder = Path(tempfile.mkdtemp(prefix="berth-controlplane-"))
        try:
            write_certificates(folder)
            (folder / "audit-policy.yaml").write_text(yaml.safe_dump(POLICY))
            (folder / "tokens.csv").write_text(
                "".join(
                    ",".join(filter(None, (self._tokens[user], user, user, group))) + "\n"
                    for user, group in self._users.items()
                )
            )
            self._etcd_port, self._etcd_peer_port, free_port = free_ports(3)
            self._apiserver_port = self._port or free_port
            self._apiserver_starts = 0
            self._etcd = ServerProcess(self._etcd_command(), folder / "etcd.log")
            self.start_apiserver()  # it waits for etcd by itself
        except BaseException:
            self.stop()
            raise

    def _etcd_command(self) -> list[str | Path]:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._etcd_peer_port}"
        return [
            self._binaries["etcd"],
            "--name=default",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            # The data dies with the test; and a benchmark's history passes the default of 2 GiB.
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
        ]

    def _apiserver_command(self) -> list[str | Path]:
        folder = self.folder
        command: list[str | Path] = [
            self._binaries["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            # Without it the server looks for a default route, and fails where there is none.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._apiserver_port}",
            f"--cert-dir={folder}",
            f"--tls-cert-file={folder / 'apiserver.crt'}",
            f"--tls-private-key-file={folder / 'apiserver.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'sa.pub'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            f"--disable-admission-plugins={','.join(self._disabled_admission)}",
            "--allow-privileged=true",
            f"--watch-cache={str(self._watch_cache).lower()}",
        ]
        if self.audit:
            command += [
                f"--audit-policy-file={folder / 'audit-policy.yaml'}",
                f"--audit-log-path={self._audit_log(self._apiserver_starts)}",
                # One file for each start: no rotation may take evidence away.
                "--audit-log-maxsize=100000",
            ]
        if self._load:
            command += [
                "--enable-priority-and-fairness=false",
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=3000",
            ]
        if self.pod_groups:
            command += API_SERVER_ARGS
        return [*command, *self._extra_apiserver_args]

    def _audit_log(self, start: int) -> Path:
        return self.folder / f"audit-{start}.log"

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _READY_DEADLINE_S
        for path in ("/readyz", "/api/v1/namespaces/default"):
            while True:
                for server in (self._etcd, self._apiserver):
                    if server is not None and not server.running:
                        raise ControlPlaneError(
                            f"{server.name} ended during its start (exit status "
                            f"{server.exit_status}):\n{server.log_tail()}"
                        )
                with contextlib.suppress(OSError):  # HTTPError is one, too
                    self.call("GET", path)
                    break
                if time.monotonic() > deadline:
                    raise ControlPlaneError(
                        f"kube-apiserver did not become ready in {_READY_DEADLINE_S:.0f} s:\n"
                        + self._running_apiserver().log_tail()
                    )
                time.sleep(_POLL_S)

    def _running_etcd(self) -> ServerProcess:
        if self._etcd is None:
            raise ControlPlaneError("etcd is not running")
        return self._etcd

    def _running_apiserver(self) -> ServerProcess:
        if self._apiserver is None:
            raise ControlPlaneError("kube-apiserver is not running")
        return self._apiserver

    def _etcd_call(self, operation: str, body: object) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd_port}/v3/kv/{operation}",
            method="POST",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            decoded = json.load(answer)
        assert isinstance(decoded, dict)
        return decoded


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports that nobody listens on at the moment.

    They lie below the range that the kernel takes for outgoing connections: a client that keeps
    dialling a port of that range while its server is down can connect to itself, and then the
    server cannot have its port back.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            if port not in chosen:
                chosen.append(port)
    return chosen


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

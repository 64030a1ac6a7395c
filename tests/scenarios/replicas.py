"""Replicas of berth as processes, each with a token of its own, that share one Lease."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import yaml

from scheduler.leader_election import ElectionTimes
from tests.controlplane.access import NAMESPACE
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.controlplane.control_plane import ControlPlane

TIMES: Final = ElectionTimes(lease_s=4.0, renew_s=3.0, retry_s=0.5)
LEASE: Final = (NAMESPACE, "berth")
LEASE_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/berth"
LEADS: Final = "leading"
STANDS_BY: Final = "standing by"

_POLL_S: Final = 0.02


class Replica:
    """One start of ``berth run``.

    Parameters
    ----------
    kubeconfig
        Without one, a new one of berth's service account.
    times
        Of its lease.
    flags
        Further ones.

    Attributes
    ----------
    config_file
        Its configuration, which it reloads when it changes.
    """

    def __init__(
        self,
        plane: ControlPlane,
        number: int,
        *,
        kubeconfig: Path | None = None,
        times: ElectionTimes = TIMES,
        flags: Sequence[str] = (),
    ) -> None:
        self.number = number
        kubeconfig = kubeconfig or own_kubeconfig(plane, number)
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "leaderElection": {
                "leaseDuration": f"{times.lease_s}s",
                "renewDeadline": f"{times.renew_s}s",
                "retryPeriod": f"{times.retry_s}s",
                "resourceNamespace": NAMESPACE,
            },
        }
        self.config_file = plane.folder / f"replica-{number}.yaml"
        self.config_file.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "scheduler", "run", "--config", str(self.config_file)]
        command += ["--secure-port", "0", "--insecure-bind-address", "127.0.0.1:0", *flags]
        self._process = ServerProcess(command, plane.folder / f"replica-{number}.log")

    def __str__(self) -> str:
        return f"replica {self.number}"

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield what it has logged so far."""
        for line in self._process.log_file.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield entry

    def has_said(self, event: str) -> bool:
        """Whether it has logged this."""
        return any(line.get("event") == event for line in self.lines())

    def said(self, event: str, field: str) -> str:
        """Return a field of the first line with this event; empty when there is none yet."""
        return next(
            (str(line.get(field, "")) for line in self.lines() if line.get("event") == event), ""
        )

    @property
    def identity(self) -> str:
        """Its name in the Lease."""
        return self.said("waiting for the lease", "identity")

    @property
    def address(self) -> str:
        """Where it serves plain HTTP."""
        return self.said(STANDS_BY, "address")

    @property
    def exit_status(self) -> int | None:
        """None while it runs; 128 + the signal when it was killed."""
        return self._process.exit_status

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def log_tail(self) -> str:
        """Return the end of its log."""
        return self._process.log_tail()

    def end(self) -> None:
        """Make sure that it is gone."""
        self._process.kill()


def own_kubeconfig(plane: ControlPlane, number: int) -> Path:
    """Return a kubeconfig of berth's service account with a token that nobody else has."""
    shared = plane.berth_kubeconfig()
    own = shared.with_name(f"berth-{number}.kubeconfig")
    own.touch(mode=0o600)
    own.write_bytes(shared.read_bytes())
    return own


def wait_until(holds: Callable[[], object], what: str, *, timeout_s: float = 90.0) -> None:
    """Ask again and again; TimeoutError names `what`."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(_POLL_S)

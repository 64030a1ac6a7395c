"""The schedulers that are compared, each on a control plane of its own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.bench.contenders import Berth, KubeScheduler
from tests.bench.process_usage import ProcessUsage
from tests.controlplane import access, peer
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane, free_ports
from tests.controlplane.metrics import metric_sum, scrape
from tests.gangs.gangs import SCHEDULER_NAME
from tests.gangs.writes import writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.contenders import Contender
    from tests.controlplane.server_process import ServerProcess
    from tests.gangs.writes import Written

BERTH: Final = "berth"
KUBE_SCHEDULER: Final = "kube-scheduler"
NAMES: Final = (KUBE_SCHEDULER, BERTH)

_ATTEMPTS: Final = "scheduler_podgroup_schedule_attempts_total"
_SECONDS: Final = "scheduler_podgroup_scheduling_attempt_duration_seconds"
_CACHE: Final = "scheduler_cache_size"


class Attempts(NamedTuple):
    """Attempts for groups by the scheduler's own metrics, since its start.

    Attributes
    ----------
    seconds
        Of all attempts together.
    """

    scheduled: float
    others: float
    seconds: float

    @property
    def total(self) -> float:
        """All attempts."""
        return self.scheduled + self.others

    @property
    def mean_ms(self) -> float:
        """The mean time of an attempt."""
        return 1000 * self.seconds / max(self.total, 1)

    def since(self, before: Attempts) -> Attempts:
        """Return the attempts since an earlier time."""
        return Attempts(*(now - was for now, was in zip(self, before, strict=True)))


@dataclass
class Arena:
    """A control plane, and one scheduler that can be started on it."""

    name: str
    plane: ControlPlane
    api: BlockingApi
    contender: Contender

    @contextlib.contextmanager
    def running(self) -> Iterator[ServerProcess]:
        """Run the scheduler; it is gone afterwards.

        Raises
        ------
        RuntimeError
            It has ended before.
        """
        process = self.contender.start(self.plane)
        try:
            yield process
            if not process.running:
                raise RuntimeError(f"{self.name} has ended:\n{process.log_tail()}")
        finally:
            process.kill()

    def attempts(self) -> Attempts:
        """Return the attempts so far; the scheduler has to run."""
        text = self._metrics()
        total = metric_sum(text, _ATTEMPTS)
        scheduled = metric_sum(text, _ATTEMPTS, result="scheduled")
        return Attempts(scheduled, total - scheduled, metric_sum(text, f"{_SECONDS}_sum"))

    def assumed(self) -> int:
        """Return how many pods the scheduler holds room for without a bind."""
        return int(metric_sum(self._metrics(), _CACHE, type="assumed_pods"))

    def written(self) -> list[Written]:
        """Return what the scheduler has written so far."""
        user = access.USER if self.name == BERTH else peer.USER
        return writes(self.plane.audit_events(), user)

    def _metrics(self) -> str:
        address = self.contender.metrics_address
        assert address is not None
        return scrape(*address)


def cpu_s(process: ServerProcess) -> float:
    """Return the CPU seconds that a process has used."""
    return ProcessUsage.of(process.pid).cpu_s


@contextlib.contextmanager
def arena(name: str) -> Iterator[Arena]:
    """Start a control plane for one of :data:`NAMES`."""
    port = free_ports(1)[0]
    contender: Contender
    if name == BERTH:
        contender = Berth(scheduler_name=SCHEDULER_NAME, http_port=port)
    else:
        contender = KubeScheduler(scheduler_name=SCHEDULER_NAME, https_port=port)
    with (
        ControlPlane(load=True, pod_groups=True) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
    ):
        if name == BERTH:
            plane.berth_kubeconfig()
        yield Arena(name, plane, api, contender)

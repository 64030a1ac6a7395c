"""The pairs of schedulers that are compared: kube-scheduler, and a second scheduler beside it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.bench.contenders import Berth
from tests.controlplane import access, peer
from tests.controlplane.control_plane import free_ports
from tests.controlplane.metrics import scrape
from tests.neighbours.cluster import FIRST, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.server_process import ServerProcess

OTHER_USER: Final = "second-kube-scheduler"
"""The user of the second kube-scheduler, so that the audit log tells the two apart."""

KUBE_SCHEDULERS: Final = "two kube-schedulers"
UNGUARDED: Final = "berth without guard"
"""Nor with the soft reserve, which is off where the guard is."""
GUARDED: Final = "berth with guard"
"""And with the soft reserve."""
PACKING: Final = "berth that packs"
NAMES: Final = (KUBE_SCHEDULERS, UNGUARDED, GUARDED, PACKING)

_MOST_ALLOCATED: Final = {
    "name": "NodeResourcesFit",
    "args": {
        "scoringStrategy": {
            "type": "MostAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    },
}
"""Berth takes the fullest nodes then, kube-scheduler the emptiest."""


class Second(NamedTuple):
    """A scheduler that was started beside kube-scheduler."""

    process: ServerProcess
    metrics_address: tuple[str, str] | None = None


class Pair(NamedTuple):
    """Two schedulers that run: kube-scheduler, and the one beside it."""

    first: ServerProcess
    second: Second

    @property
    def processes(self) -> tuple[ServerProcess, ServerProcess]:
        """Both processes."""
        return self.first, self.second.process

    def metrics(self) -> str:
        """Return the metrics of the second one; empty where it serves none."""
        address = self.second.metrics_address
        return scrape(*address) if address else ""

    def check(self) -> None:
        """Raise RuntimeError if one of them has ended."""
        for process in self.processes:
            if not process.running:
                raise RuntimeError(f"{process.name} has ended:\n{process.log_tail()}")


@contextlib.contextmanager
def pair(contender: str, plane: ControlPlane) -> Iterator[Pair]:
    """Run one of :data:`CONTENDERS`; both schedulers are gone afterwards."""
    with contextlib.ExitStack() as processes:
        first = peer.start_kube_scheduler(plane)
        processes.callback(first.kill)
        second = CONTENDERS[contender](plane)
        processes.callback(second.process.kill)
        yield Pair(first, second)


def _kube_scheduler(plane: ControlPlane) -> Second:
    peer.grant_like(plane, OTHER_USER)
    config = {"profiles": [{"schedulerName": SECOND}]}
    return Second(peer.start_kube_scheduler(plane, config, user=OTHER_USER))


def _berth(
    flags: Sequence[str] = (), plugin_config: Sequence[Mapping[str, Any]] = ()
) -> Callable[[ControlPlane], Second]:
    def start(plane: ControlPlane) -> Second:
        (port,) = free_ports(1)
        berth = Berth(scheduler_name=SECOND, http_port=port, flags=flags)
        return Second(berth.start(plane, plugin_config), berth.metrics_address)

    return start


CONTENDERS: Final[Mapping[str, Callable[[ControlPlane], Second]]] = {
    KUBE_SCHEDULERS: _kube_scheduler,
    UNGUARDED: _berth(["--bind-guard", "false"]),
    GUARDED: _berth(),
    PACKING: _berth(plugin_config=[_MOST_ALLOCATED]),
}
"""What is started beside kube-scheduler, by the name of the pair."""

USERS: Final = {peer.USER: FIRST, OTHER_USER: SECOND, access.USER: SECOND}
"""The scheduler's name by the user who binds."""

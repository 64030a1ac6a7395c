"""A control plane that can go back to a state that it had: every round starts from the same bytes.

What is kept is etcd's data folder, as it would be found after etcd was killed. Going back ends both
servers, puts the folder back and starts them anew, so that no cache, no history and no Event of the
last round is left.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tests.bench.process_usage import ProcessUsage
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

_CALM_SHARE = 0.15
"""Of one core, both servers together: what they take when nobody asks them anything."""

_CALM_DEADLINE_S = 30.0
_LOOK_S = 0.4


class SavedControlPlane(ControlPlane):
    """A control plane for measurements, which is not what throttles.

    A name that was saved stays valid as long as the control plane is not stopped.

    Parameters
    ----------
    pod_groups
        Whether the alpha API of pod groups is served.
    """

    def __init__(self, *, pod_groups: bool = False) -> None:
        super().__init__(load=True, audit=False, pod_groups=pod_groups)

    def save(self, name: str) -> None:
        """Keep what is there now under a name; the servers go on."""
        assert self._etcd is not None
        self.drop(name)
        self._etcd.pause()
        try:
            shutil.copytree(self.folder / "etcd", self._saved(name))
        finally:
            self._etcd.resume()

    def has(self, name: str) -> bool:
        """Whether something was saved under that name."""
        return self._saved(name).exists()

    def drop(self, name: str) -> None:
        """Forget a saved state."""
        shutil.rmtree(self._saved(name), ignore_errors=True)

    def restore(self, name: str) -> None:
        """Go back to a saved state; the servers run afterwards."""
        self._end_servers()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self._saved(name), self.folder / "etcd")
        self._etcd = ServerProcess(self._etcd_command(), self.folder / "etcd.log")
        self.start_apiserver()

    def settle(self) -> None:
        """Wait until the servers have done what they do after a start, or half a minute."""
        deadline_s = time.monotonic() + _CALM_DEADLINE_S
        before_s = self.servers_cpu_s()
        while time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)
            now_s = self.servers_cpu_s()
            if now_s - before_s < _CALM_SHARE * _LOOK_S:
                return
            before_s = now_s

    def servers_cpu_s(self) -> float:
        """Return what both servers have used since they were started."""
        return sum(ProcessUsage.of(pid).cpu_s for pid in self.pids.values())

    def _saved(self, name: str) -> Path:
        return self.folder / "saved" / name

    def _end_servers(self) -> None:
        if self._apiserver is not None:
            self._apiserver.kill()
            self._apiserver = None
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd = None

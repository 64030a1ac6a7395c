"""The schedulers that are measured, each started as a process of its own."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from tests.controlplane.peer import start_kube_scheduler
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.controlplane.control_plane import ControlPlane

QPS = 5000
"""All contenders may send as many requests a second: none is held back by its client."""


_HERE = Path(__file__).parents[2]


def _compile(checkout: Path) -> None:
    """Compile the sources as the image has them, so that no start pays for it."""
    for package in ("cache", "plugins", "scheduler"):
        compileall.compile_dir(checkout / package, quiet=2, workers=1)


def _profile(scheduler_name: str, plugin_config: Sequence[Any]) -> dict[str, Any]:
    more = {"pluginConfig": list(plugin_config)} if plugin_config else {}
    return {"schedulerName": scheduler_name, **more}


class Contender(Protocol):
    """A scheduler that can be started against a control plane."""

    name: str
    scheduler_name: str
    metrics_address: tuple[str, str] | None
    """Host and port, and the scheme; None where it serves none at a known port."""

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        """Start it; it schedules pods that ask for ``scheduler_name``.

        Parameters
        ----------
        plugin_config
            The ``pluginConfig`` of its profile.
        """
        ...


class Berth:
    """berth as users start it, under its own service account.

    Parameters
    ----------
    config
        Laid over its configuration file.
    scheduler_name
        Of its one profile.
    checkout
        Another state of the sources, to be compared with this one; None takes this one.
    http_port
        Where it serves its metrics; 0 takes a free port.
    flags
        Further ones.

    Attributes
    ----------
    program
        What Python runs.
    """

    program: Sequence[str] = ("-m", "scheduler")

    def __init__(
        self,
        config: dict[str, object] | None = None,
        *,
        scheduler_name: str = "berth",
        checkout: Path | None = None,
        http_port: int = 0,
        flags: Sequence[str] = (),
    ) -> None:
        self._http_port = http_port
        address = f"127.0.0.1:{http_port}"
        self.metrics_address = (address, "http") if http_port else None
        self._flags = flags
        self._config = config or {}
        self._checkout = checkout
        self.scheduler_name = scheduler_name
        self.name = "berth" if checkout is None else f"berth@{checkout}"

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        _compile(self._checkout or _HERE)
        kubeconfig = control_plane.berth_kubeconfig()
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
            "profiles": [_profile(self.scheduler_name, plugin_config)],
            **self._config,
        }
        path = control_plane.folder / "berth.yaml"
        path.write_text(yaml.safe_dump(config))
        command = [*self._python(), *self.program, "run", "--config", str(path)]
        command += [*self._local_address(), *self._flags]
        return ServerProcess(command, control_plane.folder / "berth.log")

    def _local_address(self) -> list[str]:
        """Return the flags that serve on loopback; a checkout may be older than HTTPS."""
        if self._checkout is not None and not (self._checkout / "scheduler" / "serving").exists():
            return ["--bind-address", f"127.0.0.1:{self._http_port}"]
        return ["--secure-port", "0", "--insecure-bind-address", f"127.0.0.1:{self._http_port}"]

    def _python(self) -> list[str]:
        if self._checkout is None:
            return [sys.executable]
        # -P: not the folder in which this is run, but the other one.
        folder = self._checkout.resolve()
        return ["/usr/bin/env", f"PYTHONPATH={folder}", sys.executable, "-P"]


class KubeScheduler:
    """The peer, sampling nodes as it does by default, or scoring all of them.

    Parameters
    ----------
    config
        Laid over its configuration file.
    all_nodes
        Score all of them.
    scheduler_name
        Of its one profile.
    https_port
        Where it serves its metrics to everybody; 0 serves nothing.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        all_nodes: bool = False,
        scheduler_name: str = "default-scheduler",
        https_port: int = 0,
    ) -> None:
        self._https_port = https_port
        address = f"127.0.0.1:{https_port}"
        self.metrics_address = (address, "https") if https_port else None
        self.name = "kube-scheduler-all" if all_nodes else "kube-scheduler"
        self.scheduler_name = scheduler_name
        self._config: dict[str, Any] = {"percentageOfNodesToScore": 100} if all_nodes else {}
        self._over = config or {}

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        config = dict(self._config)
        if self.scheduler_name != "default-scheduler" or plugin_config:
            config["profiles"] = [_profile(self.scheduler_name, plugin_config)]
        config |= self._over
        return start_kube_scheduler(control_plane, config, https_port=self._https_port)


class BindOnly:
    """No scheduler at all: it binds what waits to one node after the other, and nothing else.

    What it reaches is what binding alone allows on this machine, or binding and the Events that
    berth sends of its bindings.
    """

    metrics_address = None

    def __init__(self, scheduler_name: str, *, sends_events: bool = False) -> None:
        self.name = "bind-and-events" if sends_events else "bind-only"
        self.scheduler_name = scheduler_name
        self._flags = ["--events"] if sends_events else []

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        kubeconfig = control_plane.berth_kubeconfig()
        command = [sys.executable, "-m", "tests.bench.bind_only", str(kubeconfig)]
        return ServerProcess(
            [*command, self.scheduler_name, *self._flags], control_plane.folder / "bind-only.log"
        )


NAMES = ("kube-scheduler", "berth", "kube-scheduler-all", "bind-only", "bind-and-events")


def contender(name: str, scheduler_name: str, metrics_port: int = 0) -> Contender:
    """Return the contender of that name: one of `NAMES`, or ``berth@FOLDER``.

    Parameters
    ----------
    metrics_port
        Where it serves its metrics, if it does; 0 leaves that to it.

    Raises
    ------
    ValueError
        There is none.
    """
    match name.partition("@"):
        case "berth", "", "":
            return Berth(scheduler_name=scheduler_name, http_port=metrics_port)
        case "berth", "@", folder if (
            folder and (Path(folder) / "scheduler" / "__main__.py").exists()
        ):
            return Berth(
                scheduler_name=scheduler_name, checkout=Path(folder), http_port=metrics_port
            )
        case (("kube-scheduler" | "kube-scheduler-all"), "", ""):
            everything = name.endswith("-all")
            return KubeScheduler(
                all_nodes=everything, scheduler_name=scheduler_name, https_port=metrics_port
            )
        case (("bind-only" | "bind-and-events"), "", ""):
            return BindOnly(scheduler_name, sends_events=name == "bind-and-events")
    raise ValueError(f"there is no contender {name!r}: {', '.join(NAMES)} or berth@FOLDER")

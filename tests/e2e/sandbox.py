"""A machine inside the machine: what runs in it cannot reach out, and goes with it.

A real node makes bridges, mounts, iptables rules, cgroups and processes that outlive their
parents. So all of it runs in namespaces of its own (network, mounts, processes, host name), over a
folder of its own: when the first process in there ends, however it ends, the kernel ends all
others and takes the mounts and the network away. What is left, cgroups and the folder, is removed
by the process outside.

    outside: run_inside(command)     makes the folder, waits, removes what is left
    inside:  enter(folder)           mounts, network; then the command

The addresses are those of a usual cluster, and nobody else's since the network is its own: pods in
10.244.0.0/16 on a bridge that holds ``GATEWAY``, and ``SERVICE_ADDRESS``, the address of the
Service ``kubernetes``, on the loopback device.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

FOLDER_VARIABLE: Final = "BERTH_E2E_FOLDER"
GATEWAY: Final = "10.244.0.1"
SERVICE_ADDRESS: Final = "10.0.0.1"
BRIDGE: Final = "berth0"
_BRIDGE_MAC: Final = "02:00:00:be:57:01"

_PREFIX: Final = "berth-e2e-"
_CGROUPS: Final = Path("/sys/fs/cgroup")
# Programs have their own mind about these folders; in the sandbox they are empty ones of ours.
_HIDDEN: Final = ("/run", "/var/lib", "/var/log", "/etc/cni")
_CGROUP_DEADLINE_S: Final = 20.0


def run_inside(command: Sequence[str], *, keep: bool) -> int:
    """Run `command` as a child of the first process of a new sandbox; its exit status.

    Afterwards nothing of it runs and nothing is left but, if `keep`, its folder.
    """
    remove_remains()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / "pid").write_text(str(os.getpid()))
    # A socket's path has 107 characters at most; kubelet's are long enough by themselves.
    environment = {
        **os.environ,
        FOLDER_VARIABLE: str(folder),
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser()),
    }
    process = subprocess.Popen(
        ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
         "--mount-proc", sys.executable, "-m", "tests.e2e.sandbox", *command],
        env=environment,
    )  # fmt: skip
    try:
        with _ended_by_sigterm():
            return process.wait()
    finally:
        process.kill()
        process.wait()
        _remove_cgroups(folder.name)
        if keep:
            (folder / "pid").unlink()
            sys.stderr.write(f"kept: {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def remove_remains() -> None:
    """Remove what a run left whose outer process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            pid = int((folder / "pid").read_text())
            if Path(f"/proc/{pid}").exists():
                continue
            _remove_cgroups(folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def cgroup_of(folder: Path, node: str) -> str:
    """Make the cgroup below which a kubelet makes its own, in all hierarchies; its path."""
    path = f"/{folder.name}/{node}"
    for hierarchy in _hierarchies():
        (hierarchy / path[1:]).mkdir(parents=True, exist_ok=True)
        # With cgroup v2 a group has the controllers that the one above it hands down.
        if (hierarchy / "cgroup.subtree_control").exists() and hierarchy == _CGROUPS:
            for above in (hierarchy, hierarchy / folder.name):
                (above / "cgroup.subtree_control").write_text("+cpuset +cpu +io +memory +pids")
    return path


def enter(folder: Path) -> None:
    """Hide the machine's folders behind our own and bring the network up. Inside only."""
    _run(["mount", "--make-rshared", "/"])
    # The network devices that sysfs shows are those of whoever mounted it.
    sys_folder = folder / "sys"
    sys_folder.mkdir()
    _run(["mount", "-t", "sysfs", "sysfs", str(sys_folder)])
    _run(["mount", "--rbind", str(_CGROUPS), str(sys_folder / "fs/cgroup")])
    _run(["mount", "--rbind", str(sys_folder), "/sys"])
    for hidden in _HIDDEN:
        if not Path(hidden).is_dir():
            continue
        own = folder / "hidden" / hidden[1:]
        own.mkdir(parents=True)
        _run(["mount", "--bind", str(own), hidden])
    for name in ("/run/lock", "/run/netns", "/var/lib/cni"):
        Path(name).mkdir(parents=True, exist_ok=True)
    _run(["hostname", "berth-e2e"])
    _run(["ip", "link", "set", "lo", "up"])
    _run(["ip", "address", "add", f"{SERVICE_ADDRESS}/32", "dev", "lo"])
    # Of its own accord a bridge takes the lowest address of its ports, another one with each pod
    # that comes and goes: and all the others talk to nobody until their ARP entries expire.
    _run(["ip", "link", "add", BRIDGE, "address", _BRIDGE_MAC, "type", "bridge"])
    _run(["ip", "address", "add", f"{GATEWAY}/16", "dev", BRIDGE])
    _run(["ip", "link", "set", BRIDGE, "up"])


def _hierarchies() -> list[Path]:
    """Return the root of each cgroup hierarchy: one with cgroup v2, one per controller with v1."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path for path in _CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def _remove_cgroups(name: str) -> None:
    deadline = time.monotonic() + _CGROUP_DEADLINE_S
    for hierarchy in _hierarchies():
        root = hierarchy / name
        while root.exists():
            for path, _, _ in os.walk(root, topdown=False):
                # Busy while the last of its processes is on its way out.
                with contextlib.suppress(OSError):
                    Path(path).rmdir()
            if time.monotonic() > deadline:
                sys.stderr.write(f"cannot remove the cgroup {root}\n")
                break
            time.sleep(0.05)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)


def _be_first_process(command: Sequence[str]) -> int:
    """Run `command`, and bury the orphans that the sandbox's first process inherits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has it from the terminal as well
    enter(Path(os.environ[FOLDER_VARIABLE]))
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.execvp(command[0], list(command))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(_be_first_process(sys.argv[1:]))

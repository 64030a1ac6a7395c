"""One server of the control plane as a process that cannot outlive the one that started it.

Between the two stands a small supervisor that holds the other end of a pipe. When the starter is
gone, however it went, the pipe ends and the supervisor kills the server; when the supervisor
itself is killed, the kernel kills the server (``PR_SET_PDEATHSIG``, Linux). The parent-death
signal alone would not do: it fires when the *thread* that forked ends, and tests start servers
from short-lived threads.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import ControlPlaneError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAUSE_DEADLINE_S: Final = 30.0
_POLL_S: Final = 0.005

_SUPERVISOR = """
import os, select, signal, sys
r, w = os.pipe()
os.set_blocking(w, False)
signal.set_wakeup_fd(w, warn_on_full_buffer=False)
signal.signal(signal.SIGCHLD, lambda *_: None)
parent = os.getpid()
child = os.fork()
if child == 0:
    try:
        if sys.platform == "linux":
            import ctypes
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() == parent:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(2, 1)
            os.execv(sys.argv[1], sys.argv[1:])
    finally:
        os._exit(127)
os.write(1, b"%d\\n" % child)
os.close(1)
while True:
    ready, _, _ = select.select([0, r], [], [])
    if r in ready:
        os.read(r, 4096)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
    if 0 in ready and not os.read(0, 1):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os._exit(137)
"""


class ServerProcess:
    """A running program with its log in a file.

    Parameters
    ----------
    command
        The program's path and its arguments.
    log_file
        Receives standard output and standard error, appended.

    Concurrency
    -----------
    Any thread may signal and ask; start and stop belong to one thread at a time.
    """

    def __init__(self, command: Sequence[str | Path], log_file: Path) -> None:
        self.name = Path(command[0]).name
        self.log_file = log_file
        with log_file.open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SUPERVISOR, *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # A Ctrl-C on the terminal is for the starter, which then stops its servers.
                start_new_session=True,
            )
        assert self._supervisor.stdout is not None
        with self._supervisor.stdout as answer:
            line = answer.readline()
        if not line:
            self._close()
            raise ControlPlaneError(f"{self.name} could not be started:\n{self.log_tail()}")
        self.pid = int(line)

    @property
    def running(self) -> bool:
        """Whether the program has not ended (a paused one runs)."""
        return self._supervisor.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The program's exit status (128 + signal when killed), None while it runs."""
        return self._supervisor.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program; nothing happens when it has ended."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def pause(self) -> None:
        """Freeze the program (SIGSTOP), and wait until none of its threads goes on.

        Raises
        ------
        ControlPlaneError
            That takes longer than anything should.
        """
        self.send_signal(signal.SIGSTOP)
        deadline_s = time.monotonic() + _PAUSE_DEADLINE_S
        # Where there is no such folder, the signal has to do.
        while not all(_is_still(thread) for thread in Path(f"/proc/{self.pid}/task").glob("*")):
            if time.monotonic() > deadline_s:
                raise ControlPlaneError(f"{self.name} does not stop")
            time.sleep(_POLL_S)

    def resume(self) -> None:
        """Let a frozen program go on (SIGCONT)."""
        self.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the program at once (SIGKILL, also a paused one) and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        self._supervisor.wait()
        self._close()

    def terminate(self, grace_s: float = 10.0) -> int:
        """End the program with SIGTERM, after `grace_s` seconds with SIGKILL; its exit status."""
        self.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(grace_s)
        self.kill()
        return self._supervisor.returncode

    def log_tail(self, lines: int = 25) -> str:
        """Return the last `lines` lines of the log."""
        text = self.log_file.read_text(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])

    def _close(self) -> None:
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        self._supervisor.wait()


def _is_still(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True  # it has ended
    return state in "TtZX"

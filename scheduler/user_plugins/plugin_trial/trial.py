"""Runs trials: new plugin code first runs in a child process with limits.

The child has the permissions of this process: a trial protects from mistakes, not from attackers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.user_plugins.plugin_trial.trial_messages import (
    ClusterCopy,
    Cost,
    Job,
    Line,
    Suite,
    TrialLimits,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cache.objects import Node, Pod
    from scheduler.user_plugins.plugin_source import PluginSource

_CHILD: Final = "from scheduler.user_plugins.plugin_trial.trial_process import main; main()"
_STARTING: Final = "starting"
_LINE: Final = msgspec.json.Decoder(Line)

MAX_TOLD_PRINTS: Final = 4096
"""Bytes of what the child printed that are kept: its last words."""

MAX_NODES: Final = 300
MAX_PODS: Final = 1500
"""Enough to meet every kind of node that there is, and quick to copy."""

_encode: Final = msgspec.json.Encoder().encode

_SECRETS: Final = ("KUBERNETES_", "KUBECONFIG")
"""What begins so in the environment is none of the child's business."""


def copy_of(nodes: Iterable[Node], pods: Iterable[Pod]) -> ClusterCopy:
    """Return a copy of some nodes, and of some of the pods on them.

    *Cost*: some 10 us for each object that is copied, and a look at every other.
    """
    some = list(islice(nodes, MAX_NODES))
    names = {node.metadata.name for node in some}
    on_them = (pod for pod in pods if pod.spec.node_name in names)
    return ClusterCopy(
        tuple(msgspec.Raw(_encode(node)) for node in some),
        tuple(msgspec.Raw(_encode(pod)) for pod in islice(on_them, MAX_PODS)),
    )


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What a trial came to. Immutable.

    Parameters
    ----------
    plugins
        The names of the plugins that the source brings.
    problems
        Why the code is not to be used, for people; empty if it may.
    verdicts
        What came of each check, in order.
    costs
        What was measured.
    printed
        The last of what the code printed.
    """

    plugins: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    costs: tuple[Cost, ...] = ()
    printed: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the code may be used."""
        return not self.problems


def try_source(
    source: PluginSource,
    limits: TrialLimits | None = None,
    *,
    suite: Suite = "use",
    args: Mapping[str, dict[str, object]] | None = None,
    cluster: ClusterCopy | None = None,
    sizes: Sequence[int] = (1, 40),
) -> TrialReport:
    """Run the plugins of a source in a child process: in made-up clusters, then in a copy of yours.

    Parameters
    ----------
    args
        By the plugin's name, its arguments as a profile has them; the defaults where there are
        none.
    cluster
        The copy; None for none.
    sizes
        The numbers of nodes of the made-up clusters.

    Notes
    -----
    *Concurrency*: from any thread but the scheduling thread and the I/O thread: it waits.

    *Cost*: about a second, most of it for the child to start.
    """
    limits = limits or TrialLimits()
    job = Job(source, limits, suite, dict(args or {}), tuple(sizes), cluster or ClusterCopy())
    # A machine may be so busy that the child does not even get to the plugin: then once more.
    return (
        _run(job)
        or _run(job)
        or TrialReport(problems=(f"no trial was possible within {limits.wall_s:g} s",))
    )


def _run(job: Job) -> TrialReport | None:
    """Return what a child found; None when time was up before it began."""
    # In memory: a container's file system may be read-only.
    with os.fdopen(os.memfd_create("prints"), "w+b") as prints:
        try:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter, our own code
                [sys.executable, "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=prints,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            return TrialReport(problems=(f"it cannot be tried: {error.strerror}",))
        try:
            output, _ = child.communicate(_encode(job), job.limits.wall_s)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            _kill(child)
            output, _ = child.communicate()
        finally:
            _kill(child)
            if child.stdin is not None:
                # Where time was up before the job was written, it is open still.
                child.stdin.close()
        size = prints.seek(0, os.SEEK_END)
        prints.seek(max(size - MAX_TOLD_PRINTS, 0))
        printed = prints.read().decode(errors="replace")
    lines = list(_lines(output))
    doing = next((line.doing for line in reversed(lines) if line.doing), _STARTING)
    if late and doing == _STARTING:
        return None
    verdicts = tuple(line.verdict for line in lines if line.verdict is not None)
    problems = [line.refused for line in lines if line.refused]
    problems += [str(verdict) for verdict in verdicts if verdict.broken]
    if not any(line.ended for line in lines):
        problems.append(_end_of(child.returncode, doing, job.limits, late=late))
    return TrialReport(
        next((tuple(line.plugins) for line in lines if line.plugins), ()),
        tuple(problems),
        verdicts,
        tuple(line.cost for line in lines if line.cost is not None),
        printed,
    )


def _lines(output: bytes) -> Iterator[Line]:
    """Yield what the child told, but for a line in the middle of which it ended."""
    for raw in output.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield _LINE.decode(raw)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SECRETS)}
    # One thread of a numeric library is enough, and quicker to start.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # However the child ends, what it has printed by then is not in a buffer that ends with it.
    prints = {"PYTHONUNBUFFERED": "1"}
    return kept | threads | prints | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child, and whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _end_of(status: int, doing: str, limits: TrialLimits, *, late: bool) -> str:
    if late:
        return f"it did not come back within {limits.wall_s:g} s ({doing})"
    if status == -signal.SIGXCPU:
        return f"it used more than {limits.cpu_s} s of processor time ({doing})"
    if status == -signal.SIGKILL:
        return f"it was killed, perhaps because memory ran out ({doing})"
    if status < 0:
        return f"it crashed with {signal.Signals(-status).name} ({doing})"
    return f"it ended the process with status {status} ({doing})"

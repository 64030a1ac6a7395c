"""Runs trials: new plugin code first runs in a child process with limits.

The child has the permissions of this process: a trial protects from mistakes, not from attackers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from cache.value import Value
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
"""The number of bytes of the child's output that are kept, from its end."""

MAX_NODES: Final = 300
MAX_PODS: Final = 1500
"""Limits of the copy: enough for every kind of node, and quick to copy."""

_encode: Final = msgspec.json.Encoder().encode

_SECRETS: Final = ("KUBERNETES_", "KUBECONFIG")
"""Prefixes of the environment variables that the child does not get."""


def copy_of(nodes: Iterable[Node], pods: Iterable[Pod]) -> ClusterCopy:
    """Return a copy of some nodes, and of some of the pods on them.

    *Cost*: about 10 us for each copied object, and an iteration over all others.
    """
    some = list(islice(nodes, MAX_NODES))
    names = {node.metadata.name for node in some}
    on_them = (pod for pod in pods if pod.spec.node_name in names)
    return ClusterCopy(
        tuple(msgspec.Raw(_encode(node)) for node in some),
        tuple(msgspec.Raw(_encode(pod)) for pod in islice(on_them, MAX_PODS)),
    )


class TrialReport(Value, frozen=True):
    """The result of a trial. Immutable.

    Parameters
    ----------
    plugins
        The names of the plugins that the source defines.
    problems
        The reasons why the code is refused, as text; empty if it is accepted.
    verdicts
        The result of each check, in order.
    costs
        The measurements.
    printed
        The end of the code's output.
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
    """Run a source's plugins in a child process: in generated clusters, then in a cluster's copy.

    Parameters
    ----------
    args
        The arguments as in a profile, by the plugin's name; other plugins get the defaults.
    cluster
        The copy of a cluster, or None.
    sizes
        The numbers of nodes of the generated clusters.

    Notes
    -----
    *Concurrency*: blocks; any thread except the scheduling thread and the I/O thread.

    *Cost*: about a second, mostly for the start of the child.
    """
    limits = limits or TrialLimits()
    job = Job(source, limits, suite, dict(args or {}), tuple(sizes), cluster or ClusterCopy())
    # On a busy machine the child may not even reach the plugin: then try once more.
    return (
        _run(job)
        or _run(job)
        or TrialReport(problems=(f"no trial was possible within {limits.wall_s:g} s",))
    )


def _run(job: Job) -> TrialReport | None:
    """Return the report of a child; None if the time ran out before the trial began."""
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
                # If the time ran out before the job was written, the pipe is still open.
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
    """Yield the child's lines, except an incomplete last line."""
    for raw in output.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield _LINE.decode(raw)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SECRETS)}
    # One thread of a numeric library is enough, and quicker to start.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # Unbuffered, so that the output is not lost with the child, however it ends.
    prints = {"PYTHONUNBUFFERED": "1"}
    return kept | threads | prints | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and the processes that it has started."""
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

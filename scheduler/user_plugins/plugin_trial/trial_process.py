"""The child process of a trial.

It reads one :class:`~scheduler.user_plugins.plugin_trial.trial_messages.Job`, applies the limits,
runs the code, and writes :class:`~scheduler.user_plugins.plugin_trial.trial_messages.Line`s. The
parent process decides whether the plugin is accepted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plugins.authoring import PolicyClassError
from plugins.framework.args import ArgsError
from scheduler.user_plugins.loading import PluginLoadError, load_source
from scheduler.user_plugins.plugin_errors import told
from scheduler.user_plugins.plugin_trial.conformance import (
    ALL,
    FOR_USE,
    BrokenPromiseError,
    Checks,
    Subject,
)
from scheduler.user_plugins.plugin_trial.costs import costs_of
from scheduler.user_plugins.plugin_trial.sample_cluster import waiting_pods
from scheduler.user_plugins.plugin_trial.trial_cluster import World
from scheduler.user_plugins.plugin_trial.trial_messages import Job, Line, TrialLimits, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.user_plugins.plugin_source import PluginSource

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MAX_WRITTEN_BYTES = 1 << 20
"""The largest size of a file that the child writes, such as that of its output."""


class Trial:
    """Runs one job.

    Parameters
    ----------
    job
        The job.
    output
        The file descriptor for the lines.
    """

    def __init__(self, job: Job, output: int) -> None:
        self._job = job
        self._output = output
        self._doing = ""
        self._source = job.source

    def run(self) -> None:
        """Run the job; a plugin that ends the process ends the run."""
        self.doing("loading its code")
        try:
            classes = load_source(self._source)
        except PluginLoadError as error:
            self._tell(Line(refused=str(error)))
            return
        self._tell(Line(plugins=list(classes)))
        worlds = [World.made_up(size) for size in self._job.sizes]
        copy = self._job.cluster
        if copy.nodes:
            worlds.append(World("a copy of the cluster", copy.nodes, copy.pods, waiting_pods()))
        args = self._job.args
        for name, cls in classes.items():
            subject = self._subject(name, cls, args.get(name, args.get("")))
            if subject is None:
                continue
            if self._job.suite == "bench":
                self._bench(subject, cls)
            else:
                self._check(subject, cls, worlds)

    def doing(self, what: str) -> None:
        """Report the next action to the parent."""
        if what != self._doing:
            self._doing = what
            self._tell(Line(doing=what))

    def _subject(self, name: str, cls: type, args: Mapping[str, object] | None) -> Subject | None:
        self.doing(f"{name}: __init__")
        why = ""
        try:
            return Subject(cls, args)
        except msgspec.ValidationError as error:
            if args is None:
                # It requires arguments that are not known here: it is tried when a profile uses it.
                return None
            why = f"its arguments: {error}"
        except (ArgsError, PolicyClassError) as error:
            why = str(error)
        except BaseException as error:  # noqa: BLE001 - it is a user's code
            why = told(error, _file_of(cls, self._source))
        self._tell(Line(verdict=Verdict(name, "It can be made", "its arguments", why)))
        return None

    def _check(self, subject: Subject, cls: type, worlds: list[World]) -> None:
        promises = ALL if self._job.suite == "all" else FOR_USE
        file = _file_of(cls, self._source)
        for promise in promises:
            for world in worlds:

                def doing(method: str, world: World = world) -> None:
                    self.doing(f"{subject.name}.{method} with {world.name}")

                why = ""
                try:
                    promise.check(Checks(subject, world, doing))
                except BrokenPromiseError as error:
                    why = str(error)
                except BaseException as error:  # noqa: BLE001 - it is a user's code
                    why = told(error, file)
                verdict = Verdict(subject.name, promise.sentence, world.name, why)
                self._tell(Line(verdict=verdict))
                if why and promise is promises[0]:
                    # A plugin that fails this check fails all others in the same way.
                    return
                if why:
                    break

    def _bench(self, subject: Subject, cls: type) -> None:
        for size in self._job.sizes:
            self.doing(f"{subject.name} with {size} nodes")
            try:
                for cost in costs_of(subject, size):
                    self._tell(Line(cost=cost))
            except BaseException as error:  # noqa: BLE001 - it is a user's code
                why = told(error, _file_of(cls, self._source))
                verdict = Verdict(subject.name, "It can be measured", f"{size} nodes", why)
                self._tell(Line(verdict=verdict))

    def _tell(self, line: Line) -> None:
        os.write(self._output, msgspec.json.encode(line) + b"\n")

    def end(self) -> None:
        """Report the end of the job."""
        self._tell(Line(ended=True))


def _file_of(cls: type, source: PluginSource) -> str:
    if source.text is not None:
        return source.file
    module = sys.modules.get(cls.__module__)
    return getattr(module, "__file__", None) or ""


def limit(limits: TrialLimits) -> None:
    """Apply the limits of a job to this process, for all code that runs from now on."""
    with contextlib.suppress(OSError):
        # If memory runs out, the kernel should kill this process, not its parent.
        Path("/proc/self/oom_score_adj").write_text("1000")
    size = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES
    memory = size + limits.memory_bytes
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, _cpu_used_s() + limits.cpu_s),
        (resource.RLIMIT_FSIZE, _MAX_WRITTEN_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # These are hard limits: the code that runs next could raise soft limits.
        resource.setrlimit(what, (most, most if what != resource.RLIMIT_CPU else hard))


def _cpu_used_s() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int(usage.ru_utime + usage.ru_stime) + 1


def main() -> None:
    """Run the job from standard input, and end the process without any exit handlers."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    # The plugin's output must not mix with the child's lines.
    output = os.dup(1)
    os.dup2(2, 1)
    # Warnings appear in the plugin's output for its author; they are no reason to refuse it.
    warnings.filterwarnings("default", r"plugins\.policy", DeprecationWarning)
    trial = Trial(job, output)
    limit(job.limits)
    trial.run()
    trial.end()
    os._exit(0)

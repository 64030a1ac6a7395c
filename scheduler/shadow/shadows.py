"""The installed shadows, for the scheduling loop and for the operator."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from scheduler.shadow.runner import ShadowRunner

if TYPE_CHECKING:
    from cache.locks import MakeLock
    from cache.snapshot import Snapshot
    from cache.storage import Storage
    from scheduler.decision.decision import Decision
    from scheduler.profiles import ShadowOptions
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.shadow.report import ShadowReport


class Shadows:
    """The shadows by the policy's name, such as ``gpu`` for ``schedulingprofile/gpu``.

    Parameters
    ----------
    storage
        Returns which pods get volumes with their node; None if no pod has any.
    make_lock
        Creates the locks.

    Attributes
    ----------
    active
        The shadows that still have decisions to compare; None if there are none, so that a
        scheduling loop without shadows only compares with None.

    Notes
    -----
    *Concurrency*: :meth:`observe` belongs to the scheduling thread, everything else is thread-safe.
    """

    def __init__(
        self, storage: Storage | None = None, make_lock: MakeLock = threading.Lock
    ) -> None:
        self._storage = storage
        self._make_lock = make_lock
        self._lock = make_lock()
        self._by_name: dict[str, ShadowRunner] = {}
        self.active: tuple[ShadowRunner, ...] | None = None

    def install(self, name: str, framework: FrameworkRunner, options: ShadowOptions) -> None:
        """Install a shadow; it replaces a shadow with the same name."""
        shadow = ShadowRunner(framework, options, storage=self._storage, make_lock=self._make_lock)
        with self._lock:
            self._by_name[name] = shadow
            self._refresh_locked()

    def remove(self, name: str) -> None:
        """Remove a shadow and its report."""
        with self._lock:
            self._by_name.pop(name, None)
            self._refresh_locked()

    def report(self, name: str) -> ShadowReport | None:
        """Return the report of a shadow; None if there is no such shadow."""
        with self._lock:
            shadow = self._by_name.get(name)
        return None if shadow is None else shadow.report()

    def plain_report(self, name: str) -> dict[str, Any] | None:
        """Return a shadow's report in the form of its policy's status, or None."""
        report = self.report(name)
        return None if report is None else msgspec.to_builtins(report)

    def observe(self, snapshot: Snapshot, live: FrameworkRunner, decision: Decision) -> None:
        """Let the shadows of a profile compare a decision; never raises.

        Called by the scheduling thread once the decision has been carried out.

        Parameters
        ----------
        snapshot
            The unchanged snapshot of the decision's cycle.
        live
            The profile that decided.

        *Cost*: negligible if the budget is used up; otherwise two decisions over all nodes.
        """
        ended = False
        for shadow in self.active or ():
            if shadow.framework.profile_name == live.profile_name:
                shadow.observe(snapshot, live, decision)
                ended = ended or shadow.is_complete
        if ended:
            with self._lock:
                self._refresh_locked()

    def _refresh_locked(self) -> None:
        active = tuple(each for each in self._by_name.values() if not each.is_complete)
        self.active = active or None

"""Report why groups cannot be tried: what each of them waits for, once it has been so for a while.

The members of a group come one after another, and its object may come after them. Only a state that
lasts is worth a report, or a group of a thousand members would have a thousand reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from scheduler.cycle.group_reports import GroupReports
    from scheduler.process.ports import Ports

LASTS_S: Final = 5.0
"""How long nothing of a group must have changed before it is reported."""

MAX_PER_ROUND: Final = 500
"""Groups that one round looks at; about ten milliseconds of the loop."""


class HeldGroups:
    """Finds the groups whose state has lasted, and reports why they are held.

    Parameters
    ----------
    ports
        Locks and the clock.
    groups
        All groups.
    why_held
        Returns the reason why a group cannot be tried, with its members in the queue, or None for
        a group that can be, or that nobody waits for.
    reports
        Where reasons go.
    give_up_room
        Takes the nomination of a member away, if it has one: nothing is held for a group that
        cannot be tried.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`round` on one thread, while this process leads.

    *Cost*: a change of a group costs 1 us; a round as many calls of ``why_held`` as groups have
    changed 5 s ago.
    """

    def __init__(
        self,
        ports: Ports[object],
        groups: PodGroups,
        why_held: Callable[[GroupKey], tuple[str, Sequence[PodInfo]] | None],
        reports: GroupReports,
        give_up_room: Callable[[PodInfo], None],
    ) -> None:
        self._clock = ports.clock.monotonic
        self._lock = ports.executor.lock()
        self._groups = groups
        self._why_held = why_held
        self._reports = reports
        self._give_up_room = give_up_room
        self._changed_at_s: dict[GroupKey, float] = {}
        """Those not looked at since their last change; the one that changed first comes first."""
        groups.subscribe(self._changed)

    def round(self) -> None:
        """Report the groups that have been the same for a while."""
        until_s = self._clock() - LASTS_S
        for _ in range(MAX_PER_ROUND):
            with self._lock:
                key, at_s = next(iter(self._changed_at_s.items()), (None, 0.0))
                if key is None or at_s > until_s:
                    return
                del self._changed_at_s[key]
            held = self._why_held(key)
            if held is not None:
                message, members = held
                for member in members:
                    # It may have preempted for them, and lost a member that it needs since then.
                    self._give_up_room(member)
                self._reports.held(key, members, message)

    def _changed(self, key: GroupKey) -> None:
        is_known = self._groups.report(key) is not None
        with self._lock:
            self._changed_at_s.pop(key, None)
            if is_known:
                self._changed_at_s[key] = self._clock()

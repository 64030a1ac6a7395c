"""Run the comparisons of the cache with the watches, and of these with the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.value import Value
from scheduler.debug.cache_debugger import CacheDebugger
from scheduler.event_handlers.lost_events import LostEvents

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.assembly import Assembly, Setting
    from scheduler.debug.cache_audit import CacheAudit
    from scheduler.event_handlers.watches import Watches
    from scheduler.process.ports import Ports


class Checks(Value, frozen=True):
    """The comparisons.

    Attributes
    ----------
    debugger
        Writes out cache and queue, and compares the cache with the watches, when it is asked to.
    audit
        Does so now and then.
    lost_events
        Compares the watches with the API server.
    """

    debugger: CacheDebugger
    audit: CacheAudit
    lost_events: LostEvents

    def start(self) -> None:
        """Compare from now on."""
        self.audit.start()
        self.lost_events.start()

    async def stop(self) -> None:
        """Compare no more."""
        await self.audit.stop()
        await self.lost_events.stop()


def make_checks(
    ports: Ports[object],
    parts: Assembly[Watches],
    setting: Setting,
    leads: Callable[[], bool],
    at_rest: Callable[[], bool],
) -> Checks:
    """Return the comparisons; nothing is started.

    Parameters
    ----------
    leads
        Whether this process schedules.
    at_rest
        Whether nothing is being scheduled at this moment.
    """
    known, loop, options = parts.known, parts.deciding.loop, setting.options
    debugger = CacheDebugger(
        ports.executor,
        ports.clock.monotonic,
        known.pods,
        known.watched,
        lambda: (loop.pod_under_way, loop.cycle_under_way_s),
        known.handlers.is_elsewhere,
    )
    lost_events = LostEvents(
        ports,
        lambda: known.watched.all,
        known.handlers,
        setting.metrics,
        leads,
        options.api_comparison_period_s,
    )
    return Checks(debugger, debugger.audit(at_rest, options.comparison_period_s), lost_events)

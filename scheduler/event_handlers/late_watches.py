"""Watch kinds as soon as the cluster serves them, and for as long as it does.

The first look is at the start. A cluster that serves none of these kinds costs one small request
each time, and nothing else: no watch, no check of rights.

# Differs: kube-scheduler decides at its start what it watches, and waits for ever for a kind that
# its flags name and the API server does not serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from scheduler.client.api import Permission
from scheduler.client.errors import ApiError
from scheduler.event_handlers.available_kinds import Discovery, is_allowed
from scheduler.kinds import WATCHED
from scheduler.process.periodic_task import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from scheduler.client.api import Api
    from scheduler.event_handlers.watches import Watches
    from scheduler.kinds import WatchedKind

LOOK_S: Final = 40.0
"""Between two looks: what appears is watched within a minute, the time of the look included."""

LOOK_AGAIN_S: Final = 5.0
"""After a look that the API server did not answer."""

_LOOKS_UNTIL_GONE: Final = 2
"""Looks in a row that must miss a kind that is watched. An API server that has just been started
may not know of a CustomResourceDefinition yet."""

log = structlog.get_logger(__name__)


class LateWatches:
    """Begins and ends the watches of those kinds that may appear while berth runs.

    Parameters
    ----------
    sleep
        Waits for so many seconds.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        api: Api,
        watches: Watches,
        sleep: Callable[[float], Awaitable[object]],
        kinds: Sequence[WatchedKind[Any]] = WATCHED,
    ) -> None:
        self._api = api
        self._watches = watches
        self._kinds = tuple(kind for kind in kinds if kind.can_appear)
        self._watched: dict[str, WatchedKind[Any]] = {}
        self._misses: dict[str, int] = {}
        self._denied: set[str] = set()
        self._unknown: dict[str, frozenset[str]] = {}
        self._only_unknown: dict[str, bool] = {}
        self._task = PeriodicTask(self.look, sleep)

    async def start(self) -> None:
        """Look once, then again and again."""
        self._task.start(await self.look())

    async def stop(self) -> None:
        """Look no more; the watches go on."""
        await self._task.stop()

    def unreadable(self) -> dict[str, float]:
        """Return for each resource whether it is served in unknown versions only, as 0 or 1."""
        return {kind.name: float(self._only_unknown.get(kind.name, 0)) for kind in self._kinds}

    async def look(self) -> float:
        """Watch what is served by now, and end what is not; return the pause until the next look.

        A server that does not answer changes nothing.
        """
        try:
            discovery = await Discovery.of(self._api)
            for kind in self._kinds:
                await self._look_for(kind, discovery)
        except ApiError as error:
            log.debug("cannot list API groups", error=str(error))
            return LOOK_AGAIN_S
        except Exception:
            log.exception("cannot look for new API groups")
        return LOOK_S

    async def _look_for(self, kind: WatchedKind[Any], discovery: Discovery) -> None:
        name = kind.name
        served = await discovery.served(kind)
        watched = self._watched.get(name)
        if watched is not None:
            # A better version is no reason to read everything anew: it can wait for a restart.
            if watched.path in [each.path for each in served]:
                self._misses[name] = 0
                return
            self._misses[name] = self._misses.get(name, 0) + 1
            if self._misses[name] < _LOOKS_UNTIL_GONE:
                return
            await self._end(watched)
        if served:
            self._only_unknown[name] = False
            await self._begin(served[0])
        else:
            await self._tell_unknown(kind, discovery)

    async def _begin(self, kind: WatchedKind[Any]) -> None:
        """Watch a kind; if a right is missing, warn once and try again with the next look."""
        used = (*kind.rights, *kind.optional_writes)
        missing = await self._missing([Permission(*each, kind.group) for each in used])
        lacks_watch = any((each.verb, each.resource) in kind.rights for each in missing)
        if lacks_watch and kind.name in self._denied:
            return
        if not is_allowed(kind, missing):
            self._denied.add(kind.name)
            return
        self._denied.discard(kind.name)
        if missing:
            lacking = "; ".join(map(str, missing))
            log.warning("permission missing", resource=kind.name, missing=lacking)
        self._watched[kind.name] = kind
        log.info("resource is watched", resource=kind.name, version=kind.group_version)
        self._watches.begin(kind)

    async def _missing(self, rights: list[Permission]) -> list[Permission]:
        """Return those rights that we lack; none where the server does not say."""
        try:
            return await self._api.missing_permissions(rights)
        except* ApiError as group:
            log.warning("cannot check permissions", error=str(group.exceptions[0]))
        return []

    async def _end(self, kind: WatchedKind[Any]) -> None:
        """End a watch. Its objects are forgotten: nobody can see, change or delete them now."""
        del self._watched[kind.name]
        log.warning(
            "resource is no longer served, its objects are forgotten",
            resource=kind.name,
            version=kind.group_version,
            consequence=kind.without,
        )
        await self._watches.end(kind)

    async def _tell_unknown(self, kind: WatchedKind[Any], discovery: Discovery) -> None:
        """Warn once when a kind is served, but in no version that can be read."""
        known = {each.group_version for each in kind.in_versions()}
        others = frozenset(
            each for each in discovery.versions if each.startswith(f"{kind.group}/")
        ).difference(known)
        if self._unknown.get(kind.name) == others:
            return
        found = [each for each in sorted(others) if await discovery.serves(kind.resource, each)]
        self._unknown[kind.name] = others
        self._only_unknown[kind.name] = bool(found)
        if found:
            log.warning(
                "resource is served in unknown versions only and is not watched",
                resource=kind.name,
                versions=", ".join(found),
                consequence=kind.without,
            )

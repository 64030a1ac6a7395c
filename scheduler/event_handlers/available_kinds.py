"""Find the kinds that can be watched: the cluster serves them and our permissions allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.errors import ApiError
from scheduler.kinds import WATCHED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scheduler.client.api import Api, Permission
    from scheduler.kinds import WatchedKind

log = structlog.get_logger(__name__)


class Discovery:
    """What the cluster serves: asked for once, and kept.

    *Concurrency*: loop-confined.
    """

    def __init__(self, api: Api, versions: Collection[str]) -> None:
        self._api = api
        self.versions = versions
        """Of all API groups, such as ``apps/v1``."""
        self._resources: dict[str, frozenset[str]] = {}

    @classmethod
    async def of(cls, api: Api) -> Discovery:
        """Return what an API server serves.

        Raises
        ------
        ApiError
            When it does not say.
        """
        return cls(api, await api.served_versions())

    async def serves(self, resource: str, group_version: str) -> bool:
        """Return whether a resource is served in a version of its API group.

        Raises
        ------
        ApiError
            When the server does not say.
        """
        if group_version not in self.versions:
            return False
        if group_version not in self._resources:
            self._resources[group_version] = await self._api.served_resources(group_version)
        return resource in self._resources[group_version]

    async def served(self, kind: WatchedKind[Any]) -> list[WatchedKind[Any]]:
        """Return a kind in each version that is served and that can be read, best first.

        Raises
        ------
        ApiError
            When the server does not say.
        """
        return [
            each
            for each in kind.in_versions()
            if await self.serves(each.resource, each.group_version)
        ]


async def served_kinds(
    api: Api, kinds: Sequence[WatchedKind[Any]] = WATCHED
) -> tuple[WatchedKind[Any], ...]:
    """Return the kinds without those optional ones that the cluster does not serve.

    An older cluster has fewer kinds, and new ones are switched off at first. A kind that can be
    read in several versions is returned in the best of those that are served. A server that does
    not tell what it serves is taken for one that does not serve them; a warning says so.
    """
    if not any(kind.is_optional for kind in kinds):
        return tuple(kinds)
    try:
        discovery = await Discovery.of(api)
    except ApiError as error:
        log.warning("cannot list API groups", error=str(error))
        return tuple(kind for kind in kinds if not kind.is_optional)
    found: list[WatchedKind[Any]] = []
    for kind in kinds:
        if not kind.is_optional:
            found.append(kind)
            continue
        try:
            found += (await discovery.served(kind))[:1]
        except ApiError as error:
            log.warning("cannot list API groups", error=str(error))
    return tuple(found)


async def kinds_to_watch(
    api: Api, missing: Sequence[Permission], kinds: Sequence[WatchedKind[Any]] = WATCHED
) -> tuple[WatchedKind[Any], ...]:
    """Return the kinds to watch from the start on.

    These are all but those optional ones that are not served or that we may not watch, and but
    those that may appear later: :mod:`scheduler.event_handlers.late_watches` looks for them.

    Parameters
    ----------
    missing
        Rights that we do not have. A warning names those that a kind needs, and what follows.
    """
    settled = [kind for kind in kinds if not kind.can_appear]
    return tuple(kind for kind in await served_kinds(api, settled) if is_allowed(kind, missing))


def is_allowed(kind: WatchedKind[Any], missing: Sequence[Permission]) -> bool:
    """Return whether we may watch a kind; a warning tells what an optional one lacks.

    Parameters
    ----------
    missing
        Rights that we do not have.
    """
    if not kind.is_optional:
        return True
    lacking = [
        each
        for each in missing
        if each.group == kind.group and (each.verb, each.resource) in kind.rights
    ]
    if lacking:
        log.warning(
            "resource is not watched: permission missing",
            resource=kind.name,
            missing="; ".join(map(str, lacking)),
            consequence=kind.without,
        )
    return not lacking

"""Find the kinds that can be watched: the cluster serves them and our permissions allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.errors import ApiError
from scheduler.kinds import WATCHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.client.api import Api, Permission
    from scheduler.kinds import WatchedKind

log = structlog.get_logger(__name__)


async def served_kinds(
    api: Api, kinds: Sequence[WatchedKind[Any]] = WATCHED
) -> tuple[WatchedKind[Any], ...]:
    """Return the kinds without those optional ones that the cluster does not serve.

    An older cluster has fewer kinds, and new ones are switched off at first. One that does not
    tell what it serves is taken for one that does not serve them; a warning says so.
    """
    served: dict[str, frozenset[str]] = {}
    for version in dict.fromkeys(kind.group_version for kind in kinds if kind.is_optional):
        try:
            served[version] = await api.served_resources(version)
        except ApiError as error:
            log.warning("cannot list API groups", error=str(error))
            served[version] = frozenset()
    return tuple(
        kind for kind in kinds if not kind.is_optional or kind.name in served[kind.group_version]
    )


async def kinds_to_watch(
    api: Api, missing: Sequence[Permission], kinds: Sequence[WatchedKind[Any]] = WATCHED
) -> tuple[WatchedKind[Any], ...]:
    """Return the kinds without those optional ones that are not served or that we may not watch.

    Parameters
    ----------
    missing
        Rights that we do not have. A warning names those that a kind needs, and what follows.
    """
    allowed = []
    for kind in await served_kinds(api, kinds):
        lacking = [
            each
            for each in missing
            if each.group == kind.group and (each.verb, each.resource) in kind.rights
        ]
        if kind.is_optional and lacking:
            log.warning(
                "resource is not watched: permission missing",
                resource=kind.name,
                missing="; ".join(map(str, lacking)),
                consequence=kind.without,
            )
        else:
            allowed.append(kind)
    return tuple(allowed)

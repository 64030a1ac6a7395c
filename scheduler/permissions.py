"""Check berth's permissions at the start: a failed start is better than failing pods.

A missing permission of one feature only does not prevent the start: that feature is disabled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plugins import names
from plugins.registry import PLUGINS
from scheduler.client.api import Permission
from scheduler.client.errors import ApiError
from scheduler.client.leases import GROUP, LEASES
from scheduler.config import running_profiles
from scheduler.kinds import WATCHED
from scheduler.leader_election import lease_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.client.api import Api
    from scheduler.config import SchedulerConfig
    from scheduler.kinds import WatchedKind

log = structlog.get_logger(__name__)

REQUIRED_PERMISSIONS: Final = (
    *(
        Permission(verb, resource, group=kind.group)
        for kind in WATCHED
        if not kind.is_optional
        for verb, resource in kind.rights
    ),
    Permission("get", "pods"),
    *(
        Permission(verb, resource)
        for resource in ("persistentvolumes", "persistentvolumeclaims")
        for verb in ("get", "patch")
    ),
    Permission("create", "pods/binding"),
    Permission("patch", "pods/status"),
    Permission("create", "events", group="events.k8s.io"),
    Permission("patch", "events", group="events.k8s.io"),
)
"""Without one of these berth would start and then fail pod by pod, whatever its configuration."""


def _optional(kinds: Iterable[WatchedKind[Any]]) -> tuple[Permission, ...]:
    return tuple(
        Permission(verb, resource, group=kind.group)
        for kind in kinds
        if kind.is_optional
        for verb, resource in (*kind.rights, *kind.optional_writes)
    )


OPTIONAL_PERMISSIONS: Final = _optional(WATCHED)
"""Without one of these berth schedules, and does not watch what it is about."""

_AT_START: Final = _optional(kind for kind in WATCHED if not kind.can_appear)
"""Those that are checked at the start; others when the cluster serves what they are about."""

_EVICTS_NOBODY: Final = frozenset({names.DYNAMIC_RESOURCES})
"""Plugins that run where a pod fits on no node, and delete no pod. Others may preempt."""


class PermissionsError(Exception):
    """Permissions are missing without which berth cannot start; the message names them."""


async def missing_permissions(api: Api, required: Sequence[Permission]) -> list[Permission]:
    """Return the permissions that we lack and can do without.

    All count as given when the API server does not say.

    Raises
    ------
    PermissionsError
        When one of those that are required is missing.
    """
    missing: list[Permission] = []
    try:
        missing = await api.missing_permissions((*required, *_AT_START))
    except* ApiError as group:
        log.warning("cannot check permissions", error=str(group.exceptions[0]))
    lacking = [permission for permission in missing if permission in required]
    if lacking:
        rights = "; ".join(map(str, lacking))
        raise PermissionsError(f"the API server does not allow us to: {rights}")
    return missing


def required_permissions(
    config: SchedulerConfig, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> list[Permission]:
    """Return all that a configuration needs, in a fixed order.

    Parameters
    ----------
    plugins
        The plugins that exist, by name.
    """
    required = [*REQUIRED_PERMISSIONS]
    if any(
        not _EVICTS_NOBODY.issuperset(profile.points["postFilter"])
        for profile in running_profiles(config, plugins)
    ):
        required.append(Permission("delete", "pods"))
    if config.leader_election.leader_elect:
        lease = lease_of(config)
        # A right to create cannot be bound to a name.
        required.append(Permission("create", LEASES, GROUP, lease.namespace))
        required += [
            Permission(verb, LEASES, GROUP, lease.namespace, lease.name)
            for verb in ("get", "update")
        ]
    return required

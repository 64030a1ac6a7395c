"""What berth has to be allowed, asked for at the start: better no start than pods that fail.

A right that only one feature needs is no reason not to start: without it that feature is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.registry import PLUGINS
from scheduler.client.api import Permission
from scheduler.client.codec import DEVICE_CLASSES
from scheduler.client.leases import GROUP, LEASES
from scheduler.config import running_profiles
from scheduler.leader_election import lease_of
from scheduler.storage_events import STORAGE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig

_WATCHED: Final = (
    ("namespaces", ""),
    ("nodes", ""),
    ("pods", ""),
    ("replicationcontrollers", ""),
    ("services", ""),
    ("replicasets", "apps"),
    ("statefulsets", "apps"),
    ("poddisruptionbudgets", "policy"),
    *((kind.name, kind.group) for kind in STORAGE_KINDS),
)

REQUIRED_PERMISSIONS: Final = (
    *(
        Permission(verb, resource, group=group)
        for verb in ("list", "watch")
        for resource, group in _WATCHED
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

DEVICE_CLASS_PERMISSIONS: Final = tuple(
    Permission(verb, DEVICE_CLASSES.name, group=DEVICE_CLASSES.group) for verb in ("list", "watch")
)
"""Without one of these berth schedules, and takes devices for ordinary extended resources. Roles
that were written for an earlier version lack them."""


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
    if any(profile.points["postFilter"] for profile in running_profiles(config, plugins)):
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

"""Define the structs of HTTP extenders in a configuration file.

*Source*: k8s.io/kube-scheduler config/v1/types.go (0.36): Extender, ExtenderManagedResource,
ExtenderTLSConfig; the default time-out is that of kube-scheduler 1.36, pkg/scheduler/extender.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config.file_profile import FileStruct, Int64

if TYPE_CHECKING:
    from cache.objects import Pod

DEFAULT_TIMEOUT: Final = duration_of_seconds(5)


class ManagedResource(FileStruct, frozen=True):
    """An extended resource whose pods the extender is asked about."""

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLS(FileStruct, frozen=True):
    """How the extender is verified and how it verifies us; ``*_data`` is PEM and comes first."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(FileStruct, frozen=True):
    """A process that is asked over HTTP; an empty verb is a question never asked.

    Parameters
    ----------
    url_prefix
        What the verbs are appended to, with a slash between.
    weight
        What its scores are multiplied by; more than 0 if it has a prioritize verb.
    ignorable
        Whether pods are scheduled without it while it fails.
    node_cache_capable
        Whether it gets the names of nodes instead of nodes.
    managed_resources
        If any: only pods that request one of them are brought before it.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: Int64 = 0
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: GoDuration = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


def is_interested(managed: frozenset[str], pod: Pod) -> bool:
    """Return whether an extender that manages these resources is asked about a pod.

    It is if it manages none, or one that the pod requests.
    """
    if not managed:
        return True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        resources = container.resources
        if not managed.isdisjoint(resources.requests) or not managed.isdisjoint(resources.limits):
            return True
    return False

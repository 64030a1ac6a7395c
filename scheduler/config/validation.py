"""Check a decoded configuration against the rules beyond the types of its fields.

*Source*: kube-scheduler 1.36, pkg/scheduler/apis/config/validation/validation.go;
k8s.io/component-base config/validation/validation.go; for what upstream only detects when it
starts, k8s.io/client-go tools/leaderelection and transport (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cache.resources import is_extended_resource_name
from scheduler.config.config_error import Mistake, child, item, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.config.configuration import KubeSchedulerConfiguration, LeaderElection
    from scheduler.config.extender import Extender, ExtenderTLS
    from scheduler.config.file_profile import Profile

JITTER: Final = 1.2
"""How much longer than ``retryPeriod`` a retry may wait; one must fit into ``renewDeadline``."""


def check_configuration(config: KubeSchedulerConfiguration) -> Iterator[Mistake]:
    """Yield everything wrong with a configuration whose defaults are filled in.

    Plugin sets and plugin arguments are not looked at.
    """
    if config.leader_election.leader_elect:
        yield from _check_leader_election(config.leader_election, "leaderElection")
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        why = (
            f"must be at least podInitialBackoffSeconds ({config.pod_initial_backoff_seconds}), "
            f"not {config.pod_max_backoff_seconds}"
        )
        yield Mistake("podMaxBackoffSeconds", why)
    yield from _check_names(config.profiles)
    yield from check_extenders(config.extenders)


def _check_leader_election(election: LeaderElection, path: str) -> Iterator[Mistake]:
    periods = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, period in periods.items():
        if period.ns <= 0:
            yield Mistake(child(path, name), f"must be more than 0s, not {period}")
    if election.lease_duration <= election.renew_deadline:
        why = f"must be more than renewDeadline ({election.renew_deadline})"
        yield Mistake(child(path, "leaseDuration"), f"{why}, not {election.lease_duration}")
    if election.renew_deadline.ns <= int(JITTER * election.retry_period.ns):
        why = f"must be more than {JITTER} times retryPeriod ({election.retry_period})"
        yield Mistake(child(path, "renewDeadline"), f"{why}, not {election.renew_deadline}")
    if election.resource_lock != "leases":
        why = f"must be leases, not {shown(election.resource_lock)}"
        yield Mistake(child(path, "resourceLock"), why)


def _check_names(profiles: tuple[Profile, ...]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = child(item("profiles", index), "schedulerName")
        if not profile.scheduler_name:
            yield Mistake(path, "is required where there are several profiles")
        elif profile.scheduler_name in first:
            where = child(item("profiles", first[profile.scheduler_name]), "schedulerName")
            yield Mistake(path, f"{shown(profile.scheduler_name)} is that of {where} already")
        else:
            first[profile.scheduler_name] = index


# --- extenders --------------------------------------------------------------------------------


def check_extenders(extenders: tuple[Extender, ...], where: str = "extenders") -> Iterator[Mistake]:
    """Yield everything wrong with a list of extenders, which stands at ``where``."""
    binder: int | None = None
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = item(where, index)
        yield from _check_extender(extender, path)
        if extender.bind_verb:
            if binder is not None:
                why = f"only one extender can bind, and {item(where, binder)} does"
                yield Mistake(child(path, "bindVerb"), why)
            else:
                binder = index
        for number, resource in enumerate(extender.managed_resources):
            place = child(item(child(path, "managedResources"), number), "name")
            if not is_extended_resource_name(resource.name):
                yield Mistake(place, f"{shown(resource.name)} is no extended resource")
            elif resource.name in managed:
                yield Mistake(place, f"{shown(resource.name)} is managed already")
            managed.add(resource.name)


def _check_extender(extender: Extender, path: str) -> Iterator[Mistake]:
    if (why := _why_no_url(extender.url_prefix)) is not None:
        yield Mistake(child(path, "urlPrefix"), why)
    if extender.prioritize_verb and extender.weight <= 0:
        why = f"must be more than 0 where there is a prioritizeVerb, not {extender.weight}"
        yield Mistake(child(path, "weight"), why)
    if extender.http_timeout.ns < 0:
        why = f"must be at least 0s, not {extender.http_timeout}"
        yield Mistake(child(path, "httpTimeout"), why)
    if extender.tls_config is not None:
        yield from _check_tls(extender.tls_config, child(path, "tlsConfig"))


def _why_no_url(prefix: str) -> str | None:
    """Return why an extender could never be reached.

    # Differs: upstream takes any text and fails with every pod.
    """
    if not prefix:
        return "is required"
    try:
        url = urlsplit(prefix)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError as error:
        return f"{shown(prefix)} is no URL: {error}"
    return None if usable else f"{shown(prefix)} is no http:// or https:// URL"


def _check_tls(tls: ExtenderTLS, path: str) -> Iterator[Mistake]:
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield Mistake(child(path, "insecure"), "must not be set together with a CA")
    has_cert, has_key = bool(tls.cert_file or tls.cert_data), bool(tls.key_file or tls.key_data)
    if has_cert != has_key:
        missing = "keyFile or keyData" if has_cert else "certFile or certData"
        yield Mistake(path, f"a certificate and its key go together; {missing} is missing")

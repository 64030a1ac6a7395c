"""Read the file of ``--node-metrics``: the node metrics to query, and their sources.

It is a file of its own because a KubeSchedulerConfiguration is read as kube-scheduler reads it::

    apiVersion: scheduling.berth.dev/v1alpha1
    kind: NodeMetricsConfiguration
    sources:
      - url: https://prometheus.monitoring.svc:9090
        authorization: {credentialsFile: /var/run/secrets/prometheus/token}
        tlsConfig: {caFile: /etc/prometheus-ca/ca.crt}
        metrics:
          - name: cpu_utilization
            query: instance:node_cpu_utilisation:rate5m * on (instance) group_left (node) ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from plugins.framework.go_duration import GoDuration, duration_of_seconds
from scheduler.config.config_error import ConfigError, Mistake, child, item, shown
from scheduler.config.document import read_document, read_text
from scheduler.config.extender import ExtenderTLS  # noqa: TC001 - msgspec reads it
from scheduler.config.file_profile import FileStruct
from scheduler.config.strict_decoding import decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

API_VERSION: Final = "scheduling.berth.dev/v1alpha1"
KIND: Final = "NodeMetricsConfiguration"

MIN_INTERVAL: Final = duration_of_seconds(1)
"""Nobody scrapes more often, so there is nothing new to be had."""


class Authorization(FileStruct, frozen=True):
    """What is sent in the header of that name, as in Prometheus' own configuration.

    Parameters
    ----------
    credentials_file
        Holds what follows the type; read again before each request, because tokens rotate.
    type
        ``Bearer``, or ``Basic`` with credentials that are base64 already.
    """

    credentials_file: str
    type: str = "Bearer"


class MetricQuery(FileStruct, frozen=True):
    """One number for each node.

    Parameters
    ----------
    name
        What plugins call it.
    query
        PromQL that gives an instant vector with one series for each node.
    node_label
        The label of a series that has the node's name.
    """

    name: str
    query: str
    node_label: str = "node"


class MetricSource(FileStruct, frozen=True):
    """A server that speaks Prometheus' HTTP API, and what it is asked.

    Parameters
    ----------
    url
        What ``/api/v1/query`` is appended to.
    interval
        The time from one round of questions to the next.
    timeout
        The time that one question may take, answer included.
    stale_after
        The age from which on an answer counts for nothing.
    authorization, tls_config
        How we prove who we are, and how the server does.
    """

    url: str
    metrics: tuple[MetricQuery, ...]
    interval: GoDuration = duration_of_seconds(30)
    timeout: GoDuration = duration_of_seconds(10)
    stale_after: GoDuration = duration_of_seconds(180)
    authorization: Authorization | None = None
    tls_config: ExtenderTLS | None = None


class NodeMetricsConfig(FileStruct, frozen=True):
    """All sources."""

    sources: tuple[MetricSource, ...] = ()
    api_version: str = msgspec.field(default=API_VERSION, name="apiVersion")
    kind: str = KIND


def load_node_metrics(path: Path) -> NodeMetricsConfig:
    """Read a file.

    Raises
    ------
    ConfigError
        If it cannot be read or used. All mistakes that could be found are in it.
    """
    return parse_node_metrics(read_text(path), str(path))


def parse_node_metrics(text: str, source: str) -> NodeMetricsConfig:
    """Read the text of a file; ``source`` names it in messages.

    Raises
    ------
    ConfigError
        As :func:`load_node_metrics`.
    """
    try:
        data, mistakes = read_document(text)
    except ConfigError as error:
        raise ConfigError.of(error.mistakes, source) from error
    config, of_types = decode(data, NodeMetricsConfig, "")
    mistakes += of_types
    if config is not None:
        mistakes += _check(config)
    if config is None or mistakes:
        raise ConfigError.of(mistakes, source)
    return config


def _check(config: NodeMetricsConfig) -> Iterator[Mistake]:
    if config.api_version != API_VERSION:
        yield Mistake("apiVersion", f"must be {API_VERSION}, not {shown(config.api_version)}")
    if config.kind != KIND:
        yield Mistake("kind", f"must be {KIND}, not {shown(config.kind)}")
    first: dict[str, str] = {}
    for index, source in enumerate(config.sources):
        path = item("sources", index)
        yield from _check_source(source, path)
        for number, metric in enumerate(source.metrics):
            where = item(child(path, "metrics"), number)
            for field in ("name", "query", "nodeLabel"):
                text = {"name": metric.name, "query": metric.query}.get(field, metric.node_label)
                if not text.strip():
                    yield Mistake(child(where, field), "must not be empty")
            if metric.name in first:
                why = f"{shown(metric.name)} is that of {first[metric.name]} already"
                yield Mistake(child(where, "name"), why)
            first.setdefault(metric.name, where)


def _check_source(source: MetricSource, path: str) -> Iterator[Mistake]:
    try:
        url = urlsplit(source.url)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        usable = usable and not url.query and not url.fragment
    except ValueError:
        usable = False
    if not usable:
        why = f"{shown(source.url)} is no http:// or https:// URL to append a path to"
        yield Mistake(child(path, "url"), why)
    elif url.username is not None:
        yield Mistake(child(path, "url"), "must not hold a password; use authorization")
    if source.interval < MIN_INTERVAL:
        why = f"must be at least {MIN_INTERVAL}, not {source.interval}"
        yield Mistake(child(path, "interval"), why)
    if source.timeout.ns <= 0:
        yield Mistake(child(path, "timeout"), f"must be more than 0s, not {source.timeout}")
    if source.stale_after <= source.interval:
        why = f"must be more than interval ({source.interval}), not {source.stale_after}"
        yield Mistake(child(path, "staleAfter"), why)
    if not source.metrics:
        yield Mistake(child(path, "metrics"), "must name at least one metric")
    tls = source.tls_config
    if tls is not None and bool(tls.cert_file or tls.cert_data) != bool(
        tls.key_file or tls.key_data
    ):
        yield Mistake(child(path, "tlsConfig"), "a certificate and its key go together")

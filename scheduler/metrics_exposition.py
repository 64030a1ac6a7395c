"""How metrics look to who scrapes them: states that are asked for, and kube-scheduler's spelling.

Source: Prometheus text format 0.0.4 and OpenMetrics 1.0; k8s.io/component-base/metrics (1.36) for
the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

OPENMETRICS: Final = "application/openmetrics-text"

Kind: TypeAlias = Literal["counter", "gauge"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Pulled:
    kind: Kind
    name: str
    text: str
    label: str
    read: Callable[[], Mapping[str, float]]


class PulledMetrics(Collector):
    """Metrics whose values are asked for at each scrape.

    Notes
    -----
    *Concurrency*: thread-safe, if what is asked is.
    """

    def __init__(self) -> None:
        self._pulled: dict[str, _Pulled] = {}

    def add(
        self, kind: Kind, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]
    ) -> None:
        """Take a metric up; one of the same name takes the place of the one before.

        Parameters
        ----------
        name
            A counter's ends in ``_total``.
        label
            The one label, whose values are the keys of what `read` returns; the empty string for
            a metric without labels, whose only key is then the empty string too.
        """
        self._pulled[name] = _Pulled(kind, name, text, label, read)

    def collect(self) -> Iterator[Metric]:
        """Ask for all values. A metric that cannot be asked for is left out, not the others."""
        for pulled in self._pulled.values():
            try:
                values = dict(pulled.read())
            except Exception:
                log.exception("metric cannot be read", metric=pulled.name)
                continue
            make = CounterMetricFamily if pulled.kind == "counter" else GaugeMetricFamily
            labels = [pulled.label] if pulled.label else []
            family = make(pulled.name, pulled.text, labels=labels)
            for key, value in values.items():
                family.add_metric([key] if pulled.label else [], value)
            yield family

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what there is depends on who has been named by then."""
        return ()


class _Spelled(Collector):
    """A registry's metrics without what the Python client adds to them.

    The ``_created`` series, which it writes beside each counter and histogram, can otherwise be
    switched off for the whole process only.
    """

    def __init__(self, registry: CollectorRegistry, *, go_bounds: bool) -> None:
        self._registry = registry
        self._go_bounds = go_bounds

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [
                sample for sample in family.samples if not sample.name.endswith("_created")
            ]
            if self._go_bounds and family.type == "histogram":
                for sample in family.samples:
                    bound = sample.labels.get("le", "")
                    if bound.endswith(".0"):
                        sample.labels["le"] = bound[:-2]
            yield family


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the metrics as text, and its content type.

    Parameters
    ----------
    accept
        The request's Accept header. OpenMetrics is given to who asks for it, the plain text
        format, with bucket bounds spelled as in Go (``le="1"``, not ``"1.0"``), to all others.
    """
    if OPENMETRICS in accept:
        spelled = _Spelled(registry, go_bounds=False)
        text: bytes = openmetrics.generate_latest(spelled)  # type: ignore[no-untyped-call]
        return text, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest(_Spelled(registry, go_bounds=True)), CONTENT_TYPE_PLAIN_0_0_4

"""Whether a PromQL query asks for what berth exposes."""

from __future__ import annotations

import re
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

# What Prometheus adds to every series, and what it says of a target itself. A label of that name in
# the series it calls exported_..., unless it is told otherwise.
_TARGET_LABELS: Final = {"job", "namespace", "instance"}
_TARGET_METRICS: Final = {"up": _TARGET_LABELS}

_SELECTOR: Final = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_BY: Final = re.compile(r"\bby \(([^)]*)\)")
_MATCHER: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


class Exposed:
    """The metrics in texts that berths have served.

    Parameters
    ----------
    texts
        In Prometheus's format. A metric that nothing has happened to yet shows its name there and
        not its labels: those are then not checked.
    """

    def __init__(self, *texts: str) -> None:
        self._labels: dict[str, set[str] | None] = {}
        for text in texts:
            self._read(text)

    def _read(self, text: str) -> None:
        for family in text_string_to_metric_families(text):
            plain = family.name + ("_total" if family.type == "counter" else "")
            names = (
                [f"{family.name}_{part}" for part in ("bucket", "sum", "count")]
                if family.type == "histogram"
                else [plain]
            )
            for name in names:
                self._labels.setdefault(name, None)
            for sample in family.samples:
                known = self._labels.get(sample.name) or set()
                self._labels[sample.name] = known | set(sample.labels)

    def faults(self, query: str, legend: str = "") -> list[str]:
        """Return what `query` asks for in vain: metrics, and labels that they do not have.

        Parameters
        ----------
        legend
            How Grafana calls the answer's series: with labels in double braces.
        """
        found: list[str] = []
        selectors = _SELECTOR.findall(query)
        if not selectors:
            found.append(f"no metric in {query}")
        for metric, matchers in selectors:
            if metric not in self._labels and metric not in _TARGET_METRICS:
                found.append(metric)
                continue
            labels = self._labels.get(metric, _TARGET_METRICS.get(metric))
            if labels is None:
                continue
            asked = {*_MATCHER.findall(matchers), *re.findall(r"\{\{(\w+)\}\}", legend)}
            for by in _BY.findall(query):
                asked |= {label.strip() for label in by.split(",")}
            known = labels | {f"exported_{each}" for each in labels & _TARGET_LABELS}
            found += [f"{metric}{{{each}}}" for each in sorted(asked - known - _TARGET_LABELS)]
        return found

"""Write metrics in the text formats of Prometheus.

Berth writes the text itself: a client library makes an object of each sample and takes ten times as
long,
while the scheduling thread waits for the interpreter.

*Source*: Prometheus text format 0.0.4 and OpenMetrics 1.0; k8s.io/component-base/metrics (0.36) for
the spelling: bucket bounds as Go writes them (``le="1"``), no ``_created`` series.
"""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.metrics.instruments import Count, Family, Pulled, Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OPENMETRICS: Final = "application/openmetrics-text"
OPENMETRICS_TYPE: Final = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
PLAIN_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_EXACT: Final = 2.0**53

log = structlog.get_logger(__name__)


def exposition(
    families: Iterable[Family[Count] | Family[Samples] | Pulled], accept: str = ""
) -> tuple[bytes, str]:
    """Return metrics as text, and its content type.

    Parameters
    ----------
    accept
        The request's Accept header. OpenMetrics is given to who asks for it, the plain text
        format to all others.

    Notes
    -----
    *Cost*: about a microsecond for a line. The interpreter is given up between metrics.
    """
    is_open = OPENMETRICS in accept
    lines: list[str] = []
    for family in families:
        lines += _Lines(family, is_open=is_open)
        # Whoever waits for the interpreter gets it here, and not after five milliseconds.
        time.sleep(0)
    if is_open:
        lines.append("# EOF\n")
    return "".join(lines).encode(), OPENMETRICS_TYPE if is_open else PLAIN_TYPE


class _Lines:
    """The lines of one metric."""

    def __init__(self, family: Family[Count] | Family[Samples] | Pulled, *, is_open: bool) -> None:
        self._family = family
        self._bound_of = _open_bound if is_open else go_number
        name = family.name
        if is_open and family.kind == "counter":
            name = name.removesuffix("_total")
        self._head = f"# HELP {name} {_text(family.text)}\n# TYPE {name} {family.kind}\n"

    def __iter__(self) -> Iterator[str]:
        family = self._family
        if isinstance(family, Pulled):
            return self._pulled(family)
        return self._counted(family)

    def _pulled(self, family: Pulled) -> Iterator[str]:
        try:
            values = dict(family.read())
        except Exception:
            log.exception("metric cannot be read", metric=family.name)
            return
        yield self._head
        for key, value in values.items():
            yield f"{family.name}{_labels(family.label_names, key)} {_number(value)}\n"

    def _counted(self, family: Family[Count] | Family[Samples]) -> Iterator[str]:
        yield self._head
        les = [self._bound_of(bound) for bound in (*family.bounds, math.inf)]
        for key, child in list(family.children.items()):
            if isinstance(child, Samples):
                yield _histogram(family.name, family.label_names, key, child, les)
            elif isinstance(child, Count):
                labels = _labels(family.label_names, key)
                yield f"{family.name}{labels} {_number(child.value)}\n"


def _histogram(
    name: str, label_names: Sequence[str], key: Sequence[str], child: Samples, les: Sequence[str]
) -> str:
    child.fold()
    counts, total = child.counts, child.total
    labels = _labels(label_names, key)
    start = f"{name}_bucket{{{labels[1:-1]}," if labels else f"{name}_bucket{{"
    lines = []
    sum_so_far = 0
    for le, count in zip(les, counts, strict=True):
        sum_so_far += count
        lines.append(f'{start}le="{le}"}} {sum_so_far}\n')
    lines.append(f"{name}_sum{labels} {_number(total)}\n{name}_count{labels} {sum_so_far}\n")
    return "".join(lines)


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{n}="{_value(v)}"' for n, v in zip(names, values, strict=True)) + "}"


def _value(text: str) -> str:
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text


def _text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return repr(value).replace("inf", "Inf").replace("nan", "NaN")


def go_number(value: float) -> str:
    """Return a number as Go writes it: ``1``, ``0.001``, ``1e-05``, ``1.048576e+06``, ``+Inf``.

    *Source*: Go 1.26, strconv/ftoa.go, format ``g`` with the fewest digits.
    """
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - it is finite
    power = len(digits) + exponent - 1
    if -4 <= power < 6:
        return f"{Decimal((sign, digits, exponent)):f}"
    text = "".join(map(str, digits))
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' * sign}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"


def _open_bound(value: float) -> str:
    return "+Inf" if math.isinf(value) else repr(float(value))

"""Parse the response of a Prometheus server into one number for each node.

*Source*: Prometheus 2.42, web/api/v1 (the query endpoint's JSON); numbers stand there as text,
``NaN`` and ``+Inf`` among them.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class MetricAnswerError(Exception):
    """An answer that tells nothing of nodes; the message says why in a sentence."""


class Readings(Value, frozen=True):
    """An answer, sorted into what counts and what does not.

    Parameters
    ----------
    values
        Finite numbers by node name.
    unnamed
        Series without the label that names the node.
    repeated
        Nodes with more than one series, sorted: it is not known which one is meant.
    not_finite
        Nodes whose number is NaN or infinite, sorted.
    """

    values: Mapping[str, float]
    unnamed: int
    repeated: tuple[str, ...]
    not_finite: tuple[str, ...]


class _Series(msgspec.Struct, frozen=True, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True):
    resultType: str  # noqa: N815 - as it is written on the wire
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str = ""


_answer = msgspec.json.Decoder(_Answer)
_vector = msgspec.json.Decoder(list[_Series])


def read_answer(body: bytes, node_label: str) -> Readings:
    """Return what an answer's body says of nodes.

    Raises
    ------
    MetricAnswerError
        If it is not JSON of Prometheus' form, tells of an error, is no instant vector, or has
        series and none of them names a node.

    *Cost*: about 2 us for a series.
    """
    try:
        answer = _answer.decode(body)
        if answer.status != "success" or answer.data is None:
            raise MetricAnswerError(answer.error or f"the answer's status is {answer.status!r}")
        if answer.data.resultType != "vector":
            kind = answer.data.resultType
            raise MetricAnswerError(f"the query gives a {kind}, not an instant vector")
        series = _vector.decode(answer.data.result)
    except msgspec.DecodeError as error:
        raise MetricAnswerError(f"the answer is not Prometheus' JSON: {error}") from error
    readings = _sorted_out(series, node_label)
    if series and readings.unnamed == len(series):
        labels = ", ".join(sorted(series[0].metric)) or "none"
        raise MetricAnswerError(
            f"no series has the label {node_label!r} that names the node; labels are: {labels}"
        )
    return readings


def error_in(body: bytes) -> str:
    """Return the error that the body of a refusal tells of, or an empty text."""
    try:
        return _answer.decode(body).error
    except msgspec.DecodeError:
        return ""


def _sorted_out(series: list[_Series], node_label: str) -> Readings:
    counts = Counter(each.metric.get(node_label, "") for each in series)
    unnamed = counts.pop("", 0)
    values: dict[str, float] = {}
    not_finite: list[str] = []
    for each in series:
        name = each.metric.get(node_label, "")
        if counts[name] != 1:
            continue
        number = _number(each.value[1])
        if math.isfinite(number):
            values[name] = number
        else:
            not_finite.append(name)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    return Readings(values, unnamed, tuple(repeated), tuple(sorted(not_finite)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

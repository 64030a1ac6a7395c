"""What an answer of Prometheus comes to."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.node_metrics.query_response import MetricAnswerError, error_in, read_answer
from tests.scheduler.node_metrics.scripted_prometheus import of_nodes, vector


def answer(result_type: str, result: object) -> bytes:
    data = {"resultType": result_type, "result": result}
    return msgspec.json.encode({"status": "success", "data": data})


def test_each_series_is_a_node():
    assert read_answer(of_nodes(a=0.5, b="1e3").body, "node").values == {"a": 0.5, "b": 1000.0}


def test_the_label_with_the_name_is_a_choice():
    body = vector(({"instance": "a", "node": "x"}, "1")).body
    assert read_answer(body, "instance").values == {"a": 1.0}


def test_no_series_are_no_mistake():
    assert read_answer(vector().body, "node").values == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "", "much"])
def test_what_is_no_finite_number_is_unknown(value):
    readings = read_answer(of_nodes(a=value, b=1).body, "node")
    assert (readings.values, readings.not_finite) == ({"b": 1.0}, ("a",))


def test_a_node_with_two_series_is_unknown():
    body = vector(
        ({"node": "a", "cpu": "0"}, "1"), ({"node": "a", "cpu": "1"}, "2"), ({"node": "b"}, "3")
    ).body
    readings = read_answer(body, "node")
    assert (readings.values, readings.repeated) == ({"b": 3.0}, ("a",))


def test_series_without_a_name_are_counted():
    readings = read_answer(vector(({"node": "a"}, "1"), ({}, "2")).body, "node")
    assert (readings.values, readings.unnamed) == ({"a": 1.0}, 1)


def test_a_wrong_label_is_told_with_the_labels_there_are():
    body = vector(({"instance": "a:9100", "job": "node"}, "1")).body
    with pytest.raises(MetricAnswerError, match=r"no series has the label 'node'.*instance, job"):
        read_answer(body, "node")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"<html>", "not Prometheus' JSON", id="no JSON"),
        pytest.param(b'{"status":"success","data":', "not Prometheus' JSON", id="half of it"),
        pytest.param(b"[" * 100_000, "not Prometheus' JSON", id="nested without end"),
        pytest.param(b'{"status":"success"}', "status is 'success'", id="no data"),
        pytest.param(answer("matrix", []), "gives a matrix", id="a range"),
        pytest.param(answer("scalar", [1, "2"]), "gives a scalar", id="a scalar"),
        pytest.param(answer("vector", {"node": 1}), "not Prometheus' JSON", id="another form"),
        pytest.param(
            b'{"status":"error","errorType":"bad_data","error":"parse error: here"}',
            "parse error: here",
            id="an error",
        ),
    ],
)
def test_what_tells_nothing_is_refused_with_the_reason(body, why):
    with pytest.raises(MetricAnswerError) as caught:
        read_answer(body, "node")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(b'{"status":"error","error":"too many samples"}', "too many samples", id="it"),
        pytest.param(b"<html>", "", id="no JSON"),
    ],
)
def test_the_error_of_a_refusal(body, told):
    assert error_in(body) == told

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.offline.cluster import Cluster
from scheduler.what_if import AddedNodes, Question, QuestionError, decode_question, encode_question
from scheduler.what_if.manifests import read_manifests

NAMES = st.lists(st.text("abc-", min_size=1, max_size=4), unique=True, max_size=3).map(tuple)
QUESTIONS = st.builds(
    Question,
    podgroup=st.sampled_from(["", "ns/gang"]),
    drain=NAMES,
    add=st.lists(st.builds(AddedNodes, st.sampled_from("ab"), st.integers(1, 9))).map(tuple),
    remove=NAMES,
    config=st.none() | st.text(max_size=9),
    pending=st.just(value=True),
    seed=st.integers(0, 2**63 - 1),
)


@given(QUESTIONS)
def test_a_question_survives_json(question):
    assert decode_question(encode_question(question)) == question


def test_objects_stay_as_they_were_written():
    text = b'{"objects": [{"kind": "Pod",  "spec": {"x": 1.50}}]}'
    (raw,) = decode_question(text).objects
    assert bytes(raw) == b'{"kind": "Pod",  "spec": {"x": 1.50}}'


@pytest.mark.parametrize(
    ("question", "path", "why"),
    [
        pytest.param({}, "", "asks for nothing", id="nothing"),
        pytest.param([], "", "must be a mapping", id="no mapping"),
        pytest.param({"drain": "n1"}, "drain", "must be a list", id="one name"),
        pytest.param({"drain": ["a", 1]}, "drain[1]", "must be text", id="a number"),
        pytest.param({"drain": ["a", "a"]}, "drain[1]", "stands there twice", id="twice"),
        pytest.param({"remove": ["a", "a"]}, "remove[1]", "stands there twice", id="remove twice"),
        pytest.param({"add": [{"count": 2}]}, "add[0].like", "is required", id="like what"),
        pytest.param(
            {"add": [{"like": "a", "count": 0}]},
            "add[0].count",
            "from 1 to 10000, not 0",
            id="no node",
        ),
        pytest.param(
            {"add": [{"like": "a", "count": 9000}, {"like": "b", "count": 9000}]},
            "add",
            "18000 nodes are more than 10000",
            id="too many nodes",
        ),
        pytest.param({"objects": "x"}, "objects", "must be a list", id="objects"),
        pytest.param({"replicas": 5}, "replicas", "needs objects", id="replicas of what"),
        pytest.param(
            {"objects": [{}], "replicas": 0}, "replicas", "from 1 to 100000, not 0", id="none"
        ),
        pytest.param(
            {"objects": [{}], "replicas": 100_001}, "replicas", "from 1 to 100000", id="too many"
        ),
        pytest.param({"drian": ["a"]}, "drian", "did you mean drain?", id="misspelled"),
        pytest.param({"pending": "yes"}, "pending", "must be true or false", id="no bool"),
        pytest.param({"drain": ["a"], "seed": -1}, "seed", "at least 0", id="seed"),
    ],
)
def test_a_mistake_is_reported_with_its_path(question, path, why):
    with pytest.raises(QuestionError) as caught:
        decode_question(json.dumps(question).encode())
    assert caught.value.path == path
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"{", "is not JSON", id="cut"),
        pytest.param(b'{"drain": ["\xff"]}', "is not JSON", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "is not JSON", id="nested without end"),
        pytest.param(b" " * (1 << 20) + b"{}", "is larger than", id="large"),
    ],
)
def test_a_text_that_is_no_question_is_refused(text, why):
    with pytest.raises(QuestionError, match=why):
        decode_question(text)


SPEC = '"spec": {"containers": [{"name": "main"}]}'
TEMPLATE = (
    '"kind": "Deployment", "spec": {"template":'
    f'{{"metadata": {{"namespace": "inner"}}, {SPEC}}}, "selector": {{}}}}'
)


@pytest.mark.parametrize(
    ("text", "namespaces"),
    [
        pytest.param(f'"kind": "Pod", {SPEC}, "metadata": {{"name": "x"}}', {"default"}, id="none"),
        pytest.param(
            f'"kind": "Pod", {SPEC}, "metadata": {{"name": "x", "namespace": null}}',
            {"default"},
            id="null",
        ),
        pytest.param(
            f'"kind": "Pod", {SPEC}, "metadata": {{"name": "x", "namespace": "a"}}', {"a"}, id="one"
        ),
        pytest.param(
            f'"kind": "Pod", {SPEC}, "metadata": {{"namespace": "a"}},'
            '"metadata": {"name": "x", "namespace": "b", "namespace": "c"}',
            {"c"},
            id="repeated",
        ),
        pytest.param(
            f'{TEMPLATE}, "metadata": {{"name": "x", "namespace": "outer"}}',
            {"outer"},
            id="a template's does not count",
        ),
    ],
)
def test_the_namespaces_are_those_of_the_pods_that_are_created(text, namespaces):
    question = decode_question(f'{{"objects": [{{{text}}}]}}'.encode())
    created = read_manifests(question.objects, Cluster()).pods
    assert question.namespaces() == namespaces
    assert {each.pod.metadata.namespace for each in created} == namespaces


def test_the_namespace_of_a_group_counts():
    question = decode_question(b'{"podgroup": "ns/gang"}')
    assert question.namespaces() == {"ns"}


def test_a_namespace_that_cannot_be_read_is_named():
    question = decode_question(b'{"objects": [{"metadata": {"namespace": 7}}]}')
    with pytest.raises(QuestionError) as error:
        question.namespaces()
    assert error.value.path == "objects[0].metadata.namespace"

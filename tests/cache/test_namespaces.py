from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache import namespaces
from cache.label_selectors import EVERYTHING, NOTHING, selector_of_labels
from cache.namespaces import Namespaces
from cache.objects import Namespace, ObjectMeta

if TYPE_CHECKING:
    from cache.label_selectors import Selector


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(ObjectMeta(name=name, labels=labels))


def known(*listed: Namespace) -> Namespaces:
    result = Namespaces()
    for each in listed:
        result.changed(None, each)
    return result


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(selector_of_labels({"team": "x"}), {"a", "b"}, id="labels"),
        pytest.param(EVERYTHING, {"a", "b", "c"}, id="everything"),
        pytest.param(NOTHING, set(), id="nothing"),
    ],
)
def test_a_selector_finds_namespaces(selector: Selector, expected: set[str]) -> None:
    told = known(namespace("a", team="x"), namespace("b", team="x"), namespace("c"))
    assert told.matching(selector) == expected


def test_what_a_selector_finds_follows_relabelling_and_deletion() -> None:
    first = namespace("a", team="x")
    told = known(first, namespace("b"))
    selector = selector_of_labels({"team": "x"})
    assert told.matching(selector) == {"a"}
    told.changed(namespace("b"), namespace("b", team="x"))
    assert told.matching(selector) == {"a", "b"}
    told.changed(first, None)
    assert told.matching(selector) == {"b"}


def test_a_namespace_that_nobody_told_of_has_no_labels() -> None:
    assert dict(known(namespace("a", team="x")).labels_of("b")) == {}


def test_selectors_of_one_pod_do_not_push_out_those_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "MAX_REMEMBERED_BYTES", 20_000)
    told = known(namespace("a", team="0"))
    in_use = selector_of_labels({"team": "0"})
    for index in range(500):
        told.matching(selector_of_labels({"team": str(index)}))
        if not index % 5:
            told.matching(in_use)
        assert told._matching.bytes <= 20_000
    assert in_use in told._matching


def test_a_selector_that_is_too_large_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "MAX_REMEMBERED_BYTES", 20_000)
    told = known(namespace("a", team="0"))
    assert told.matching(selector_of_labels({f"key-{i}": "v" for i in range(100)})) == set()
    assert not len(told._matching)

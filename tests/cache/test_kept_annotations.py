from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from cache import kept_annotations
from cache.kept_annotations import EMPTY_MAP, OWN_PREFIX, keep_annotations
from cache.objects import Node, Pod
from cache.storage_objects import PersistentVolume

if TYPE_CHECKING:
    from collections.abc import Iterator

MINE, OTHER = f"{OWN_PREFIX}a", "example.com/b"
TEXT = msgspec.json.encode({"metadata": {"name": "n", "annotations": {MINE: "1", OTHER: "2"}}})


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = kept_annotations._prefixes
    yield
    kept_annotations._prefixes = before


@pytest.mark.parametrize("kind", [pytest.param(Node, id="node"), pytest.param(Pod, id="pod")])
def test_our_own_annotations_are_kept(kind: type[Node | Pod]) -> None:
    assert msgspec.json.decode(TEXT, type=kind).metadata.annotations == {MINE: "1"}


@pytest.mark.parametrize("kind", [pytest.param(Node, id="node"), pytest.param(Pod, id="pod")])
def test_others_are_kept_on_demand(kind: type[Node | Pod]) -> None:
    keep_annotations(["example.com/"])
    assert dict(msgspec.json.decode(TEXT, type=kind).metadata.annotations) == {
        MINE: "1",
        OTHER: "2",
    }


def test_objects_whose_rules_read_annotations_keep_all() -> None:
    assert len(msgspec.json.decode(TEXT, type=PersistentVolume).metadata.annotations) == 2


def test_a_pod_without_any_shares_the_empty_map() -> None:
    assert (
        msgspec.json.decode(
            b'{"metadata": {"annotations": {"x": "y"}}}', type=Pod
        ).metadata.annotations
        is EMPTY_MAP
    )


def test_an_empty_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="would keep every annotation"):
        keep_annotations([""])

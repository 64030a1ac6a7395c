from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache import change_journal
from cache.columns import Columns
from plugins.node_volume_limits.usage import VolumeUsage
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.storage_builders import (
    attachment,
    claim,
    csi_node,
    storage_class,
    storage_of,
    tell,
    volume,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.storage import Storage

CSI = "csi.example.com"
USER = pod("user").on("n1").claim("data")
WANTED = frozenset({(CSI, "wanted")})


class Stage:
    """Two nodes that hold one volume each, and a pod on ``n1`` whose claim is bound."""

    def __init__(self) -> None:
        self.storage: Storage = storage_of(
            csi_node("n1").driver(CSI, limit=1).build(),
            csi_node("n2").driver(CSI, limit=1).build(),
            storage_class("fast", CSI),
            claim("data").version(1).bound_to("pv").build(),
            volume("pv").version(1).csi(CSI).build(),
        )
        self.columns = Columns()
        self.put(node("n1"), USER)
        self.put(node("n2"))
        self.usage = VolumeUsage(self.columns, self.storage)

    def put(self, place: NodeBuilder, *pods: PodBuilder) -> None:
        self.columns.put(place.info(*pods))

    def full(self) -> set[str]:
        self.usage.follow()
        over = self.usage.over_limit(WANTED)
        return {name for name, row in self.columns.row_of.items() if over[row]}


def test_at_first_everything_is_counted() -> None:
    assert Stage().full() == {"n1"}


CHANGES = [
    pytest.param(lambda s: s.put(node("n1")), set(), id="the pod goes"),
    pytest.param(
        lambda s: s.put(node("n2"), pod("p").on("n2").claim("data")), {"n1", "n2"}, id="one comes"
    ),
    pytest.param(lambda s: s.columns.remove("n1"), set(), id="the node goes"),
    pytest.param(lambda s: s.columns.remove("n2"), {"n1"}, id="the other node goes"),
    pytest.param(lambda s: s.put(node("n3"), pod("p").claim("data")), {"n1"}, id="a node comes"),
    pytest.param(
        lambda s: tell(s.storage, None, claim("data").version(2).build()),
        set(),
        id="the claim is bound no more",
    ),
    pytest.param(
        lambda s: tell(s.storage, claim("data").version(1).build(), None), set(), id="no claim"
    ),
    pytest.param(
        lambda s: tell(s.storage, None, volume("pv").version(2).csi("other").build()),
        set(),
        id="the volume is another driver's",
    ),
    pytest.param(
        lambda s: tell(s.storage, None, volume("pv").version(2).csi(CSI, "wanted").build()),
        set(),
        id="the volume is the wanted one",
    ),
    pytest.param(
        lambda s: tell(s.storage, None, csi_node("n1").driver(CSI, limit=2).build()),
        set(),
        id="the limit grows",
    ),
    pytest.param(
        lambda s: tell(s.storage, csi_node("n1").build(), None), set(), id="no CSINode any more"
    ),
    pytest.param(
        lambda s: tell(s.storage, None, attachment("pv", "n2", CSI)),
        {"n1", "n2"},
        id="something is attached",
    ),
]


@pytest.mark.parametrize(("change", "full"), CHANGES)
def test_a_change_is_followed(change: Callable[[Stage], None], full: set[str]) -> None:
    stage = Stage()
    stage.full()
    change(stage)
    assert stage.full() == full


@pytest.mark.parametrize(("change", "full"), CHANGES)
def test_changes_too_long_ago_are_found_anew(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Stage], None], full: set[str]
) -> None:
    monkeypatch.setattr(change_journal, "MAX_CHANGES", 0)
    stage = Stage()
    stage.full()
    change(stage)
    assert stage.full() == full


def test_what_was_attached_is_forgotten_when_it_is_detached() -> None:
    stage, attached = Stage(), attachment("pv", "n2", CSI)
    tell(stage.storage, None, attached)
    stage.full()
    tell(stage.storage, attached, None)
    assert stage.full() == {"n1"}


def test_a_volume_that_appears_counts_as_attached() -> None:
    stage = Stage()
    tell(stage.storage, None, attachment("late", "n2", CSI))
    stage.full()
    tell(stage.storage, None, volume("late").csi(CSI).build())
    assert stage.full() == {"n1", "n2"}


def test_a_class_that_appears_gives_an_unbound_claim_its_driver() -> None:
    stage = Stage()
    tell(stage.storage, None, claim("data").version(2).of_class("later").build())
    assert stage.full() == set()
    tell(stage.storage, None, storage_class("later", CSI))
    assert stage.full() == {"n1"}


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    stage = Stage()
    stage.full()
    stage.put(node("n1"))
    stage.full()
    assert not stage.usage._readers
    assert not stage.usage._rows_of

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.columns import NodesView
from cache.image_states import ImageStates
from cache.objects import Container, ImageVolumeSource, Volume
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.image_locality import ImageLocality
from tests.builders import array_bytes, node, pod
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from tests.builders import NodeBuilder, PodBuilder

MB = 1024 * 1024


def _infos(*nodes: NodeBuilder) -> list[NodeInfo]:
    """Return the nodes with the images that the cache would note on them."""
    infos, states = [built.info() for built in nodes], ImageStates()
    for info in infos:
        if info.node is not None:
            states.add_node(info.name, info.node.status.images)
    for info in infos:
        info.image_states = states.node_images(info.name)
    return infos


def _scores(incoming: PodBuilder, *nodes: NodeBuilder) -> list[int]:
    plugin, state = ImageLocality(None, RecordingHandle()), CycleState()
    view = Snapshot.of(_infos(*nodes)).all_nodes()
    assert plugin.pre_score(state, incoming.info(), view).is_success
    return plugin.score(state, incoming.info(), view).tolist()


def _size(megabytes: int) -> NodeBuilder:
    return node("n0").image("web:1", size_bytes=megabytes * MB)


WEB = pod().image("web:1")


@pytest.mark.parametrize(
    ("megabytes", "score"),
    [
        pytest.param(0, 0, id="empty"),
        pytest.param(23, 0, id="at the lower threshold"),
        pytest.param(33, 100 * 10 // 977, id="a little more, truncated"),
        pytest.param(511, 100 * 488 // 977, id="in between"),
        pytest.param(1000, 100, id="at the upper threshold"),
        pytest.param(5000, 100, id="beyond it"),
        pytest.param(2**43, 100, id="as large as numbers get"),
    ],
)
def test_the_size_decides_between_two_thresholds(megabytes: int, score: int) -> None:
    assert _scores(WEB, _size(megabytes)) == [score]


def test_an_image_counts_by_the_share_of_nodes_that_hold_it() -> None:
    holders = [node(f"n{index}").image("web:1", size_bytes=800 * MB) for index in range(2)]
    others = [node(f"n{index}") for index in range(2, 4)]
    half = 100 * (400 - 23) // 977
    assert _scores(WEB, *holders, *others) == [half, half, 0, 0]


def test_the_share_is_of_all_nodes_and_not_of_the_feasible_ones() -> None:
    plugin, state = ImageLocality(None, RecordingHandle()), CycleState()
    infos = _infos(_size(800), node("n1"), node("n2"), node("n3"))
    feasible = NodesView(Snapshot.of(infos).columns, np.array([0]))
    plugin.pre_score(state, WEB.info(), feasible)
    assert plugin.score(state, WEB.info(), feasible).tolist() == [100 * (200 - 23) // 977]


def test_a_node_that_comes_later_with_the_image_makes_it_less_rare() -> None:
    """The first node's own summary still says that one node holds the image."""
    infos = _infos(_size(800), node("n1"))
    snapshot = Snapshot.of(infos)
    plugin = ImageLocality(None, RecordingHandle())
    before = plugin.score(CycleState(), WEB.info(), snapshot.all_nodes()).tolist()
    snapshot.put(_infos(node("n1").image("web:1", size_bytes=800 * MB))[0])
    after = plugin.score(CycleState(), WEB.info(), snapshot.all_nodes()).tolist()
    assert (before, after) == ([100 * 377 // 977, 0], [100 * 777 // 977] * 2)


@pytest.mark.parametrize(
    ("incoming", "total", "containers"),
    [
        pytest.param(pod().image("web:1").container(Container(image="db:1")), 300, 2, id="two"),
        pytest.param(
            pod().image("web:1").container(Container(image="web:1")), 200, 2, id="one twice"
        ),
        pytest.param(
            pod().image("web:1").container(Container(image="none:1")), 100, 2, id="one absent"
        ),
        pytest.param(
            pod().image("web:1").init_container(Container(image="db:1")), 300, 2, id="an init one"
        ),
        pytest.param(
            pod().image("web:1").volume(Volume(image=ImageVolumeSource("db:1"))),
            300,
            1,
            id="the image of a volume, which is no container",
        ),
        pytest.param(pod().image("web:1").volume(Volume(name="v")), 100, 1, id="another volume"),
    ],
)
def test_images_add_up(incoming: PodBuilder, total: int, containers: int) -> None:
    holder = node().image("web:1", size_bytes=100 * MB).image("db:1", size_bytes=200 * MB)
    assert _scores(incoming, holder) == [100 * (total - 23) // (1000 * containers - 23)]


@pytest.mark.parametrize(
    ("asked", "held", "is_found"),
    [
        pytest.param("web", "web:latest", True, id="no tag is latest"),
        pytest.param("web", "web:1", False, id="and no other"),
        pytest.param("host:5000/web", "host:5000/web:latest", True, id="a port is no tag"),
        pytest.param("host:5000/web:2", "host:5000/web:2", True, id="a tag after a port"),
        pytest.param("web:2", "docker.io/library/web:2", False, id="registries are not guessed"),
    ],
)
def test_names(asked: str, held: str, is_found: bool) -> None:
    holder = node().image("alias:1", held, size_bytes=1000 * MB)
    assert _scores(pod().image(asked), holder) == [100 if is_found else 0]


def test_a_negative_size_counts_as_none() -> None:
    assert _scores(WEB, node().image("web:1", size_bytes=-1)) == [0]


def test_nobody_is_woken_for_a_score() -> None:
    assert list(ImageLocality(None, RecordingHandle()).events_to_register()) == []


_NAMES = ["web:1", "db:1", "cache:latest"]
_SIZES = {"web:1": 300 * MB, "db:1": 2**62 + 1, "cache:latest": 77_777_777}


@given(
    held=st.lists(st.sets(st.sampled_from(_NAMES)), min_size=1, max_size=7),
    asked=st.lists(st.sampled_from([*_NAMES, "cache", "none"]), min_size=1, max_size=5),
)
def test_the_vector_form_and_its_twin_agree(held: list[set[str]], asked: list[str]) -> None:
    nodes = []
    for index, images in enumerate(held):
        built = node(f"n{index}")
        for name in sorted(images):
            built = built.image(name, size_bytes=_SIZES[name])
        nodes.append(built)
    incoming = pod().image(asked[0])
    for name in asked[1:]:
        incoming = incoming.container(Container(image=name))
    plugin, state = ImageLocality(None, RecordingHandle()), CycleState()
    view = Snapshot.of(_infos(*nodes)).all_nodes()
    plugin.pre_score(state, incoming.info(), view)
    assert plugin.score(state, incoming.info(), view).tolist() == [
        plugin.score_one(state, incoming.info(), info) for info in view.node_infos()
    ]


def test_images_that_no_node_holds_take_no_columns() -> None:
    view = Snapshot.of(_infos(_size(800), node("n1"))).all_nodes()
    plugin, state = ImageLocality(None, RecordingHandle()), CycleState()
    incoming = WEB
    for index in range(300):
        incoming = incoming.container(Container(image=f"absent:{index}"))
    before = array_bytes(view.columns)
    plugin.pre_score(state, incoming.info(), view)
    assert array_bytes(view.columns) == before
    assert plugin.score(state, incoming.info(), view).tolist() == [
        plugin.score_one(state, incoming.info(), each) for each in view.node_infos()
    ]


def test_hundreds_of_images_that_nodes_hold_take_no_columns() -> None:
    first, second = node("n0"), node("n1")
    incoming = pod()
    for index in range(300):
        image = f"image:{index}"
        incoming = incoming.container(Container(image=image))
        first = first.image(image, size_bytes=(index % 7 - 1) * 300 * MB)
        if index % 3 == 0:
            second = second.image(image, size_bytes=2**62)
    view = Snapshot.of(_infos(first, second, node("n2"))).all_nodes()
    plugin, state = ImageLocality(None, RecordingHandle()), CycleState()
    before = array_bytes(view.columns)
    plugin.pre_score(state, incoming.info(), view)
    scores = plugin.score(state, incoming.info(), view).tolist()
    assert array_bytes(view.columns) == before
    assert scores == [plugin.score_one(state, incoming.info(), each) for each in view.node_infos()]
    assert scores[0] > scores[2] == 0

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.image_states import ImageStates, normalized_image_name
from cache.objects import ContainerImage
from tests import strategies


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def known(states: ImageStates, name: str) -> tuple[int, int] | None:
    """The size of an image and how many nodes hold it."""
    state = states._images.get(name)
    return None if state is None else (state.size_bytes, state.num_nodes)


def summaries(states: ImageStates, node: str) -> dict[str, tuple[int, int]]:
    """What the node's images say at this moment."""
    images = states.node_images(node)
    return {name: (one.size_bytes, one.num_nodes) for name, one in images.items()}


def test_an_image_has_a_size_and_counts_its_nodes() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1", "a@sha256:00"), image(20, "b:1")])
    states.add_node("n2", [image(10, "a:1")])
    assert known(states, "a:1") == (10, 2)
    assert known(states, "a@sha256:00") == (10, 1)
    assert len(states._images) == 3


def test_an_image_that_no_node_holds_is_unknown() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    states.remove_node("n1")
    assert known(states, "a:1") is None


def test_an_update_that_drops_an_image_drops_the_node_from_it() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1"), image(20, "b:1")])
    states.add_node("n2", [image(10, "a:1")])
    states.add_node("n1", [image(20, "b:1")])
    assert known(states, "a:1") == (10, 1)
    assert summaries(states, "n2") == {"a:1": (10, 1)}
    assert summaries(states, "n1") == {"b:1": (20, 1)}


def test_a_node_added_again_counts_once() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    states.add_node("n1", [image(10, "a:1")])
    assert known(states, "a:1") == (10, 1)


def test_a_name_that_a_node_reports_twice_counts_once() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1"), image(20, "a:1")])
    assert summaries(states, "n1") == {"a:1": (10, 1)}


def test_removing_an_unknown_node_changes_nothing() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    states.remove_node("n2")
    assert known(states, "a:1") == (10, 1)


def test_where_nodes_disagree_on_a_size_the_first_is_believed_while_anybody_holds_it() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    states.add_node("n2", [image(99, "a:1")])
    states.remove_node("n1")
    assert known(states, "a:1") == (10, 1)
    states.add_node("n2", [image(99, "a:1")])
    assert known(states, "a:1") == (99, 1)


def test_the_images_of_a_node_follow_the_other_nodes() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    images = states.node_images("n1")
    states.add_node("n2", [image(10, "a:1")])
    assert images["a:1"].num_nodes == 2


def test_an_update_leaves_the_state_of_a_kept_image_in_its_place() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    before = states.node_images("n1")["a:1"]
    states.add_node("n1", [image(10, "a:1"), image(20, "b:1")])
    assert states.node_images("n1")["a:1"] is before


def test_the_images_of_a_node_are_a_mapping_of_the_callers_own() -> None:
    states = ImageStates()
    states.add_node("n1", [image(10, "a:1")])
    before = states.node_images("n1")
    states.add_node("n1", [])
    assert list(before) == ["a:1"]
    assert states.node_images("n1") == {}


def test_states_compare_by_size_and_nodes_and_are_not_hashable() -> None:
    one, other = ImageStates(), ImageStates()
    for states in (one, other):
        states.add_node("n1", [image(10, "a:1")])
    assert one.node_images("n1") == other.node_images("n1")
    other.add_node("n2", [image(10, "a:1")])
    assert one.node_images("n1") != other.node_images("n1")
    assert one.node_images("n1")["a:1"] != 10
    assert repr(one.node_images("n1")["a:1"]) == "ImageState(size_bytes=10, num_nodes=1)"
    with pytest.raises(TypeError):
        hash(one.node_images("n1")["a:1"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("nginx", "nginx:latest", id="no tag"),
        pytest.param("nginx:1.27", "nginx:1.27", id="tag"),
        pytest.param("example.com:5000/nginx", "example.com:5000/nginx:latest", id="port, no tag"),
        pytest.param("example.com:5000/nginx:1", "example.com:5000/nginx:1", id="port and tag"),
        pytest.param("nginx@sha256:00", "nginx@sha256:00", id="digest"),
        pytest.param("", ":latest", id="empty"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


IMAGES = st.lists(strategies.container_images(), max_size=3)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), strategies.node_names(), IMAGES),
    max_size=20,
)


@settings(deadline=None)
@given(CHANGES)
def test_states_kept_up_equal_states_built_anew(
    changes: list[tuple[str, str, list[ContainerImage]]],
) -> None:
    kept = ImageStates()
    truth: dict[str, list[ContainerImage]] = {}
    for action, name, images in changes:
        if action == "remove":
            kept.remove_node(name)
            truth.pop(name, None)
        else:
            kept.add_node(name, images)
            truth[name] = images
    built = ImageStates()
    for name, images in truth.items():
        built.add_node(name, images)
    names = {each for images in truth.values() for one in images for each in one.names}
    assert len(kept._images) == len(built._images) == len(names)
    assert all(known(kept, each) == known(built, each) for each in names)
    for name in truth:
        holders = [
            {image: state.nodes for image, state in states.node_images(name).items()}
            for states in (kept, built)
        ]
        assert holders[0] == holders[1]
    assert all(kept.node_images(name) == built.node_images(name) for name in truth)

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.kept_annotations import OWN_PREFIX
from cache.objects import OwnerReference
from cache.pod_info import PodInfo
from plugins.framework.cluster_events import Action
from scheduler.queueing.pod_changes import is_older, is_same_version, pod_changes
from tests.builders import pod
from tests.scheduler.queueing.stage import version

BASE = pod("p").request(cpu="1", memory="1Gi").label("app", "web").gate("a", "b")


def owned() -> PodInfo:
    made = BASE.build()
    owners = (OwnerReference(kind="Job", name="j"),)
    return PodInfo(replace(made, metadata=replace(made.metadata, owner_references=owners)))


def annotated() -> PodInfo:
    made = BASE.build()
    annotations = {f"{OWN_PREFIX}a": "1"}
    return PodInfo(replace(made, metadata=replace(made.metadata, annotations=annotations)))


def gates_left(*names: str) -> PodInfo:
    made = BASE.build()
    left = tuple(gate for gate in made.spec.scheduling_gates if gate.name in names)
    return PodInfo(replace(made, spec=replace(made.spec, scheduling_gates=left)))


@pytest.mark.parametrize(
    ("after", "action"),
    [
        pytest.param(BASE.info(), Action(0), id="nothing"),
        pytest.param(version(BASE, 7), Action(0), id="only the resourceVersion"),
        pytest.param(version(BASE, 7, phase="Pending", reason="x"), Action(0), id="only status"),
        pytest.param(version(BASE, 7, nominated_node_name="n"), Action(0), id="nomination"),
        pytest.param(BASE.label("app", "db").info(), Action.UPDATE_POD_LABEL, id="label"),
        pytest.param(
            BASE.toleration("gpu", operator="Exists").info(),
            Action.UPDATE_POD_TOLERATION,
            id="toleration",
        ),
        pytest.param(
            gates_left(), Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, id="the last gate"
        ),
        pytest.param(gates_left("a"), Action.UPDATE_OTHER, id="one gate of two"),
        pytest.param(BASE.request(cpu="500m").info(), Action.UPDATE_POD_SCALE_DOWN, id="less"),
        pytest.param(BASE.request(cpu="2").info(), Action.UPDATE_OTHER, id="more"),
        pytest.param(BASE.image("other").info(), Action.UPDATE_OTHER, id="image"),
        pytest.param(BASE.terminating().info(), Action.UPDATE_OTHER, id="asked to go"),
        pytest.param(owned(), Action.UPDATE_OTHER, id="owner"),
        pytest.param(
            BASE.generated_claim("gpu", "p-gpu-x").info(),
            Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            id="generated claim",
        ),
        pytest.param(annotated(), Action.UPDATE_OTHER, id="annotation that is kept"),
        pytest.param(
            BASE.label("x", "y").toleration("gpu").request(memory="1Mi").info(),
            Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_SCALE_DOWN,
            id="several at once",
        ),
    ],
)
def test_what_changed(after, action):
    assert pod_changes(BASE.info(), after) == action


def test_a_request_that_was_dropped_is_less():
    before = BASE.request({"example.com/gpu": "1"}).info()
    assert pod_changes(before, BASE.info()) == Action.UPDATE_POD_SCALE_DOWN


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [
        pytest.param(4, 5, True, id="older"),
        pytest.param(5, 5, False, id="the same"),
        pytest.param(10, 9, False, id="newer, as numbers"),
    ],
)
def test_versions_are_compared_as_numbers(one, other, older):
    assert is_older(version(BASE, one).pod, version(BASE, other).pod) is older
    assert is_same_version(version(BASE, one).pod, version(BASE, other).pod) is (one == other)


def test_without_versions_nothing_is_known():
    assert not is_older(BASE.build(), version(BASE, 5).pod)
    assert not is_older(version(BASE, 5).pod, BASE.build())
    assert not is_same_version(BASE.build(), BASE.build())

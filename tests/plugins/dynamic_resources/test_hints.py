"""Changes that are worth another attempt, as kube-scheduler's hints say."""

from __future__ import annotations

import pytest

from plugins.framework.cluster_events import Action, Hint, Resource
from tests.builders import pod
from tests.device_builders import allocated, resource_claim
from tests.plugins.dynamic_resources.device_world import DeviceWorld
from tests.plugins.hints_of import ask, listens_to

WEB = pod("web").resource_claim("r", "c")
MADE = pod("web").resource_claim("r", template="t")
CLAIM = resource_claim("c").request("r", "gpu")
USED = CLAIM.allocated(allocated("gpu-0"))
SPECIAL = (
    resource_claim("web-x")
    .owned_by(pod("web").build())
    .annotation("resource.kubernetes.io/extended-resource-claim", "true")
)
OTHER = resource_claim("other").request("r", "gpu")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        pytest.param(WEB, None, CLAIM, Hint.QUEUE, id="its claim is created"),
        pytest.param(WEB, None, OTHER, Hint.SKIP, id="another claim is created"),
        pytest.param(WEB, CLAIM, USED, Hint.QUEUE, id="its claim is allocated"),
        pytest.param(WEB, USED, CLAIM, Hint.QUEUE, id="its claim is deallocated"),
        pytest.param(
            WEB,
            OTHER.allocated(allocated("gpu-0")),
            OTHER,
            Hint.QUEUE,
            id="another claim is deallocated",
        ),
        pytest.param(
            WEB, OTHER, OTHER.allocated(allocated("gpu-0")), Hint.SKIP, id="another is allocated"
        ),
        pytest.param(WEB, CLAIM, CLAIM.finalizer("x"), Hint.SKIP, id="only its metadata change"),
        pytest.param(
            pod("web"),
            OTHER.allocated(allocated("gpu-0")),
            OTHER,
            Hint.QUEUE,
            id="a pod without claims, and a claim that is deallocated",
        ),
        pytest.param(
            WEB, None, CLAIM.uid("another"), Hint.QUEUE, id="created again under its name"
        ),
        pytest.param(WEB, None, CLAIM.terminating(), Hint.SKIP, id="its claim is being deleted"),
    ],
)
def test_a_changed_claim(waiting, old, new, hint) -> None:
    world = DeviceWorld()
    world.claim(CLAIM)
    changed = world.claim(new)
    before = None if old is None else old.build()
    assert ask(world.plugin, Resource.RESOURCE_CLAIM, waiting.build(), before, changed) is hint


def test_a_deallocation_does_not_help_a_pod_whose_own_claim_is_not_there() -> None:
    world = DeviceWorld()
    freed = world.claim(OTHER)
    before = OTHER.allocated(allocated("gpu-0")).build()
    said = ask(world.plugin, Resource.RESOURCE_CLAIM, WEB.build(), before, freed)
    assert said is Hint.SKIP


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        pytest.param(MADE.generated_claim("r", "c"), Hint.QUEUE, id="its claim is made"),
        pytest.param(MADE.generated_claim("r", "d"), Hint.SKIP, id="the claim is not known yet"),
        pytest.param(MADE.generated_claim("r", None), Hint.QUEUE, id="none is needed"),
        pytest.param(
            MADE.generated_claim("r", "c").uid("x"), Hint.SKIP, id="another pod of the name"
        ),
    ],
)
def test_a_changed_pod(changed, hint) -> None:
    world = DeviceWorld()
    world.claim(CLAIM.owned_by(MADE.build()))
    waiting = MADE.build()
    after = changed.build()
    assert ask(world.plugin, Resource.POD, waiting, waiting, after) is hint


@pytest.mark.parametrize(
    ("waiting", "gone", "hint"),
    [
        pytest.param(pod("web"), SPECIAL, Hint.QUEUE, id="its special claim"),
        pytest.param(pod("other"), SPECIAL, Hint.SKIP, id="that of another pod"),
        pytest.param(
            pod("web"), OTHER.owned_by(pod("web").build()), Hint.SKIP, id="an ordinary claim"
        ),
    ],
)
def test_a_deleted_claim(waiting, gone, hint) -> None:
    plugin = DeviceWorld().plugin
    asked = (plugin, Resource.RESOURCE_CLAIM, waiting.build(), gone.build(), None)
    assert ask(*asked, additions=True) is hint


def test_the_events_are_kube_schedulers_and_the_deleted_claim() -> None:
    both = Action.ADD | Action.UPDATE
    assert listens_to(DeviceWorld().plugin) == {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.RESOURCE_CLAIM: both | Action.DELETE,
        Resource.POD: Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        Resource.DEVICE_CLASS: both,
        Resource.RESOURCE_SLICE: both,
    }

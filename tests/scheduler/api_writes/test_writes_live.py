"""Events and pod statuses on a real API server, with berth's own rights."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest

from cache.pod_info import PodInfo
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.event_series import REFRESH_S
from scheduler.api_writes.eviction import Evicted, Evictor
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.transport import Transport
from tests.controlplane.objects import make_namespace, make_pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import fake_ports

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def kubeconfig(control_plane):
    return control_plane.berth_kubeconfig()


@pytest.fixture
def namespace(control_plane):
    """Return the name of a namespace of the test's own, with one pod ``web-0`` in it."""
    name = f"writes-{uuid.uuid4().hex[:8]}"
    control_plane.call("POST", "/api/v1/namespaces", make_namespace(name))
    control_plane.call("POST", f"/api/v1/namespaces/{name}/pods", make_pod("web-0", namespace=name))
    return name


def play(kubeconfig, scene):
    """Run a scene with an API of berth's; a minute is for ever."""

    @asynccontextmanager
    async def connected():
        credentials = await load_credentials(str(kubeconfig))
        transport = Transport(credentials, user_agent="berth-test")
        try:
            yield Api(transport)
        finally:
            await transport.close()

    async def main():
        async with asyncio.timeout(60), connected() as api:
            return await scene(api)

    return asyncio.run(main())


async def recorded(api: Api, *scenes, clock=None):
    """Run functions that record events, each one's sent before the next."""
    recorder = EventRecorder(fake_ports(api, clock or time.monotonic), instance="berth-test")
    recorder.start()
    for scene in scenes:
        scene(recorder)
        assert await recorder.drain(30) == 0
    await recorder.stop()
    return recorder.statistics()


async def written(api: Api, *scenes):
    """Run functions that hand over statuses, each one's written before the next."""
    writer = PodStatusWriter(fake_ports(api), lambda uid: False)
    writer.start()
    for scene in scenes:
        scene(writer)
        assert await writer.drain(30) == 0
    await writer.stop()
    return writer.statistics()


def events_of(control_plane, namespace: str) -> list[dict]:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    return control_plane.call("GET", path)["items"]


def pod_of(control_plane, namespace: str) -> dict:
    return control_plane.call("GET", f"/api/v1/namespaces/{namespace}/pods/web-0")


def scheduled_condition(pod: dict) -> dict:
    (condition,) = (c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    return condition


# --- Events -----------------------------------------------------------------------------------


def refuse(pod, note: str = "0/1 nodes are available"):
    return lambda recorder: recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)


def test_an_event_appears_beside_its_pod(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        await recorded(
            api, lambda r: r.event(pod, "Normal", "Scheduled", "Binding", "assigned to n1")
        )

    play(kubeconfig, scene)
    (event,) = events_of(control_plane, namespace)
    uid = pod_of(control_plane, namespace)["metadata"]["uid"]
    assert event["regarding"]["uid"] == uid
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Scheduled", "Binding")
    assert event["reportingController"] == "berth"


def test_kubectl_finds_an_event_by_its_pod(control_plane, kubeconfig, namespace):
    """`kubectl describe pod` asks the old Events API with these fields."""

    async def scene(api: Api):
        await recorded(api, refuse(await api.get_pod(namespace, "web-0")))

    play(kubeconfig, scene)
    uid = pod_of(control_plane, namespace)["metadata"]["uid"]
    selector = quote(f"involvedObject.name=web-0,involvedObject.uid={uid}")
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}"
    (event,) = control_plane.call("GET", path)["items"]
    assert event["message"] == "0/1 nodes are available"


def test_repetitions_are_one_event_with_a_count(control_plane, kubeconfig, namespace):
    clock = FakeClock()

    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        again = refuse(pod)

        def after_the_refresh(recorder):
            clock.advance(REFRESH_S)
            recorder.sweep()

        await recorded(api, again, again, again, after_the_refresh, clock=clock)

    play(kubeconfig, scene)
    (event,) = events_of(control_plane, namespace)
    assert event["series"]["count"] == 3
    assert event["series"]["lastObservedTime"] > event["eventTime"]


def test_an_event_that_the_server_has_forgotten_is_created_again(
    control_plane, kubeconfig, namespace
):
    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")

        def after_its_end(recorder):
            control_plane.call("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
            refuse(pod)(recorder)

        return await recorded(api, refuse(pod), after_its_end)

    assert play(kubeconfig, scene).failed == 0
    (event,) = events_of(control_plane, namespace)
    assert event["series"]["count"] == 2


@pytest.mark.parametrize(
    "note",
    [
        pytest.param("", id="empty"),
        pytest.param("x" * 5_000, id="long"),
        pytest.param("\U0001f6a2" * 1_000, id="long in bytes"),
        pytest.param('"quoted"\n\x00\ud800', id="odd characters"),
    ],
)
def test_every_note_is_accepted(control_plane, kubeconfig, namespace, note):
    async def scene(api: Api):
        return await recorded(api, refuse(await api.get_pod(namespace, "web-0"), note))

    assert play(kubeconfig, scene).sent == 1


def test_an_event_in_a_namespace_that_ends_is_dropped(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        # Nothing finishes the deletion here: the namespace stays, and takes nothing new in.
        control_plane.call("DELETE", f"/api/v1/namespaces/{namespace}")
        return await recorded(api, refuse(pod))

    statistics = play(kubeconfig, scene)
    assert (statistics.sent, statistics.failed) == (0, 1)


# --- statuses ---------------------------------------------------------------------------------


def say(pod, message: str, reason: str = "Unschedulable", nominated: str | None = None):
    return lambda writer: writer.unscheduled(pod, reason, message, nominated)


def test_the_condition_is_in_the_pod(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        await written(api, say(await api.get_pod(namespace, "web-0"), "no room"))

    play(kubeconfig, scene)
    pod = pod_of(control_plane, namespace)
    condition = scheduled_condition(pod)
    since = condition.pop("lastTransitionTime")
    assert since >= pod["metadata"]["creationTimestamp"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "observedGeneration": pod["metadata"]["generation"],
        "lastProbeTime": None,
    }


def test_the_condition_is_written_once_for_many_equal_refusals(
    control_plane, kubeconfig, namespace
):
    async def scene(api: Api):
        unseen = await api.get_pod(namespace, "web-0")
        first = await written(api, say(unseen, "no room"), say(unseen, "no room"))
        seen = await api.get_pod(namespace, "web-0")
        second = await written(api, say(seen, "no room"))
        return first, second, seen.metadata.resource_version

    first, second, version = play(kubeconfig, scene)
    assert (first.written, first.unchanged) == (1, 1)
    assert (second.written, second.unchanged) == (0, 1)
    assert pod_of(control_plane, namespace)["metadata"]["resourceVersion"] == version


def test_the_conditions_of_others_stay(control_plane, kubeconfig, namespace):
    other = {"type": "example.com/checked", "status": "True"}
    control_plane.call(
        "PATCH",
        f"/api/v1/namespaces/{namespace}/pods/web-0/status",
        {"status": {"conditions": [other]}},
        content_type="application/strategic-merge-patch+json",
    )

    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        await written(api, say(pod, "no room"), say(pod, "no ports"))

    play(kubeconfig, scene)
    conditions = pod_of(control_plane, namespace)["status"]["conditions"]
    assert {c["type"]: c.get("message") for c in conditions} == {
        "example.com/checked": None,
        "PodScheduled": "no ports",
    }


@pytest.mark.parametrize(
    ("nominations", "expected"),
    [
        pytest.param(["n1"], "n1", id="set"),
        pytest.param(["n1", None], "n1", id="left"),
        pytest.param(["n1", "n2"], "n2", id="moved"),
        pytest.param(["n1", ""], None, id="cleared"),
    ],
)
def test_the_nomination(control_plane, kubeconfig, namespace, nominations, expected):
    async def scene(api: Api):
        for number, nominated in enumerate(nominations):
            pod = await api.get_pod(namespace, "web-0")
            await written(api, say(pod, f"reason {number}", nominated=nominated))

    play(kubeconfig, scene)
    assert pod_of(control_plane, namespace)["status"].get("nominatedNodeName") == expected


def test_a_pod_made_again_under_its_name_is_left_alone(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        old = await api.get_pod(namespace, "web-0")
        pods = f"/api/v1/namespaces/{namespace}/pods"
        control_plane.call("DELETE", f"{pods}/web-0?gracePeriodSeconds=0")
        control_plane.call("POST", pods, make_pod("web-0", namespace=namespace))
        return await written(api, say(old, "no room"))

    assert play(kubeconfig, scene).gone == 1
    assert "PodScheduled" not in json.dumps(pod_of(control_plane, namespace)["status"])


def test_a_pod_that_is_gone_is_nothing_to_complain_about(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        path = f"/api/v1/namespaces/{namespace}/pods/web-0?gracePeriodSeconds=0"
        control_plane.call("DELETE", path)
        return await written(api, say(pod, "no room"))

    statistics = play(kubeconfig, scene)
    assert (statistics.gone, statistics.failed) == (1, 0)


# --- victims ----------------------------------------------------------------------------------


def test_a_victim_that_is_spared_is_not_marked_any_longer(control_plane, kubeconfig, namespace):
    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        evictor = Evictor(fake_ports(api), lambda *_: pod, lambda *_: False, lambda _: True)
        wanted = iter([True, True])
        return await evictor.evict(PodInfo(pod), "P", "to make room", lambda: next(wanted, False))

    assert play(kubeconfig, scene) is Evicted.SPARED
    (condition,) = pod_of(control_plane, namespace)["status"]["conditions"]
    since = condition.pop("lastTransitionTime")
    assert since
    assert condition == {"type": "DisruptionTarget", "status": "False", "lastProbeTime": None} | {
        key: condition[key] for key in ("observedGeneration",) if key in condition
    }


def test_a_status_is_written_into_that_version_alone(control_plane, kubeconfig, namespace):
    patch = {"conditions": [{"type": "example.com/checked", "status": "True"}]}

    async def scene(api: Api):
        pod = await api.get_pod(namespace, "web-0")
        uid, version = pod.metadata.uid, pod.metadata.resource_version
        await api.patch_pod_status(namespace, "web-0", uid, patch, resource_version=version)
        late = {"nominatedNodeName": "n1"}
        with pytest.raises(ApiError) as refused:
            await api.patch_pod_status(namespace, "web-0", uid, late, resource_version=version)
        return refused.value.status

    assert play(kubeconfig, scene) == 409
    assert "nominatedNodeName" not in pod_of(control_plane, namespace)["status"]

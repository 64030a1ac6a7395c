"""Kinds that appear, and disappear, while berth runs: on a real API server."""

from __future__ import annotations

import asyncio
import copy
import time
import urllib.error
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from cache.known import Known
from cache.pod_group_objects import GroupKey, GroupSource
from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.transport import Transport
from scheduler.event_handlers import watches as watches_module
from scheduler.event_handlers.late_watches import LOOK_AGAIN_S, LOOK_S, LateWatches
from scheduler.event_handlers.other_objects import OtherObjects
from scheduler.event_handlers.watches import Watches
from scheduler.kinds import POD_GROUPS, WATCHED, X_POD_GROUPS
from scheduler.process.vital import no_death
from tests.controlplane.access import NAMESPACE
from tests.controlplane.pod_groups import (
    LABEL_API,
    groups_path,
    install_x_pod_groups,
    make_x_pod_group,
)
from tests.scheduler.client.loopback import Loopback, status_answer, transport_to
from tests.scheduler.informers.harness import Naps, run, until
from tests.scheduler.parts import Parts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiohttp import web

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{X_POD_GROUPS.name}"
GROUPS = groups_path(LABEL_API)
RING = GroupKey("default", "ring", GroupSource.LABEL)
_DEADLINE_S = 30.0


class Requests:
    """Counts the requests of a transport."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()

    def requested(self, host: str, method: str, *_: object) -> None:
        self.methods[method] += 1

    def waited(self, host: str, method: str, duration_s: float) -> None: ...


@dataclass
class Scene:
    """Watches of nothing but what appears."""

    plane: ControlPlane
    known: Known
    watches: Watches
    late: LateWatches
    requests: Requests
    naps: Naps

    @property
    def watched(self) -> list[str]:
        return [each.kind.name for each in self.watches.all if each.kind.name in LATE]

    def minimum(self) -> int | None:
        rules = self.known.pod_groups.rules(RING)
        return None if rules is None else rules.minimum


LATE = {POD_GROUPS.name, X_POD_GROUPS.name}


@asynccontextmanager
async def scene(plane: ControlPlane) -> AsyncIterator[Scene]:
    """Yield a scene with berth's rights."""
    kubeconfig = plane.berth_kubeconfig()
    transport = Transport(await load_credentials(str(kubeconfig)), user_agent="berth-test")
    requests = transport.measure = Requests()
    parts, known, naps = Parts(), Known.nothing(), Naps()
    others = OtherObjects(known, parts.queue, parts.metrics)
    watches = Watches(transport, (), parts.handlers, others, on_death=no_death)
    late = LateWatches(Api(transport), watches, naps)
    watches.start()
    await watches.wait_synced()
    try:
        yield Scene(plane, known, watches, late, requests, naps)
    finally:
        await late.stop()
        await watches.stop()
        await transport.close()


def uninstall(plane: ControlPlane) -> None:
    """Remove the kind with all its objects, and wait until it is gone."""
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            plane.call("DELETE", DEFINITION)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and LABEL_API not in served_versions(plane):
                    return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def served_versions(plane: ControlPlane) -> set[str]:
    groups = plane.call("GET", "/apis")["groups"]
    return {version["groupVersion"] for group in groups for version in group["versions"]}


def serve(plane: ControlPlane, *versions: str) -> None:
    """Let the kind be served in these versions only."""
    (first,) = plane.call("GET", DEFINITION)["spec"]["versions"][:1]
    listed = [{**first, "name": "v1alpha1", "served": "v1alpha1" in versions}]
    listed += [
        {**copy.deepcopy(first), "name": name, "served": True, "storage": False}
        for name in versions
        if name != "v1alpha1"
    ]
    merge = "application/merge-patch+json"
    plane.call("PATCH", DEFINITION, {"spec": {"versions": listed}}, content_type=merge)
    wanted = {f"{X_POD_GROUPS.group}/{name}" for name in versions}
    deadline = time.monotonic() + _DEADLINE_S
    while {each for each in served_versions(plane) if ".x-k8s.io/" in each} != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane without the kind, which a test may install."""
    yield control_plane
    uninstall(control_plane)


async def refusing(request: web.Request) -> web.Response:
    return status_answer(503, "ServiceUnavailable", "not now")


def create(plane: ControlPlane, minimum: int) -> None:
    plane.call("POST", GROUPS, make_x_pod_group("ring", minimum))


# --- what is served, and when -------------------------------------------------------------------


def test_a_cluster_without_the_apis_costs_one_request_a_look(plane: ControlPlane) -> None:
    async def main() -> None:
        async with scene(plane) as it:
            await it.late.look()
            before = it.requests.methods.total()
            with capture_logs() as lines:
                await it.late.look()
            assert it.requests.methods.total() - before == 1
            assert (it.watched, lines) == ([], [])

    run(main)


def test_an_api_that_appears_is_watched_from_the_next_look_on(plane: ControlPlane) -> None:
    async def main() -> None:
        async with scene(plane) as it:
            await it.late.look()
            install_x_pod_groups(plane)
            create(plane, 3)
            await it.late.look()
            await until(lambda: it.minimum() == 3)
            assert it.watched == [X_POD_GROUPS.name]
            merge = "application/merge-patch+json"
            plane.call("PATCH", f"{GROUPS}/ring", {"spec": {"minMember": 5}}, content_type=merge)
            await until(lambda: it.minimum() == 5)

    run(main)


def test_the_kind_that_is_watched_can_be_asked_for(plane: ControlPlane) -> None:
    async def main() -> None:
        async with scene(plane) as it:
            await it.late.look()
            assert it.watches.pod_group_kind(GroupSource.LABEL) is None
            install_x_pod_groups(plane)
            await it.late.look()
            kind = it.watches.pod_group_kind(GroupSource.LABEL)
            assert kind is not None
            assert kind.path == X_POD_GROUPS.path
            assert it.watches.pod_group_kind(GroupSource.FIELD) is None

    run(main)


def test_an_api_that_is_gone_is_forgotten_with_the_second_look(plane: ControlPlane) -> None:
    async def main() -> None:
        install_x_pod_groups(plane)
        create(plane, 3)
        async with scene(plane) as it:
            await it.late.look()
            await until(lambda: it.minimum() == 3)
            # Without DELETED events, as when an API is switched off.
            serve(plane, "v9")
            await it.late.look()
            assert (it.watched, it.minimum()) == ([X_POD_GROUPS.name], 3)
            await it.late.look()
            assert (it.watched, it.known.pod_groups.keys()) == ([], ())

    run(main)


def test_a_look_without_an_answer_changes_nothing(plane: ControlPlane) -> None:
    async def main() -> None:
        install_x_pod_groups(plane)
        async with scene(plane) as it:
            assert await it.late.look() == LOOK_S
            async with Loopback(refusing) as server, transport_to(server.url) as refused:
                it.late._api = Api(refused)
                for _ in range(3):
                    assert await it.late.look() == LOOK_AGAIN_S
            assert it.watched == [X_POD_GROUPS.name]

    run(main)


def test_it_is_looked_again_within_a_minute(plane: ControlPlane) -> None:
    async def main() -> None:
        async with scene(plane) as it:
            await it.late.start()
            await until(lambda: len(it.naps.asked_s) > 1)
            assert set(it.naps.asked_s) == {LOOK_S}
            assert LOOK_S + LOOK_AGAIN_S < 60

    run(main)


# --- versions that nobody knows -----------------------------------------------------------------


def test_unknown_versions_are_not_served_with_one_warning_and_a_metric(
    plane: ControlPlane,
) -> None:
    async def main() -> None:
        install_x_pod_groups(plane)
        serve(plane, "v9")
        async with scene(plane) as it:
            with capture_logs() as lines:
                await it.late.look()
                await it.late.look()
            (line,) = (each for each in lines if each["log_level"] == "warning")
            assert (line["resource"], line["versions"]) == (
                X_POD_GROUPS.name,
                "scheduling.x-k8s.io/v9",
            )
            assert it.watched == []
            assert it.late.unreadable() == {POD_GROUPS.name: 0.0, X_POD_GROUPS.name: 1.0}
            serve(plane, "v9", "v1alpha1")
            await it.late.look()
            assert it.watched == [X_POD_GROUPS.name]
            assert it.late.unreadable()[X_POD_GROUPS.name] == 0.0

    run(main)


# --- rights -------------------------------------------------------------------------------------

ROLE = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAMESPACE}-berth"


def rule_put(plane: ControlPlane, rules: list[dict[str, Any]], *, allowed: bool) -> None:
    """Let the rules of berth's role be these, and wait until they are in force."""
    plane.call("PATCH", ROLE, {"rules": rules}, content_type="application/merge-patch+json")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:berth",
            "resourceAttributes": {
                "verb": "watch",
                "group": X_POD_GROUPS.group,
                "resource": "podgroups",
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    deadline = time.monotonic() + _DEADLINE_S
    while bool(plane.call("POST", path, review)["status"]["allowed"]) != allowed:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_the_right_one_warning_and_with_it_a_watch(plane: ControlPlane) -> None:
    plane.berth_kubeconfig()
    rules = plane.call("GET", ROLE)["rules"]
    lesser = [rule for rule in rules if rule.get("apiGroups") != [X_POD_GROUPS.group]]
    rule_put(plane, lesser, allowed=False)
    install_x_pod_groups(plane)

    async def main() -> None:
        async with scene(plane) as it:
            rule_put(plane, lesser, allowed=False)  # the kubeconfig brings all rights
            with capture_logs() as lines:
                await it.late.look()
                await it.late.look()
            (line,) = (each for each in lines if "missing" in each)
            assert "watch podgroups.scheduling.x-k8s.io in all namespaces" in line["missing"]
            assert it.watched == []
            await asyncio.to_thread(rule_put, plane, rules, allowed=True)
            await it.late.look()
            assert it.watched == [X_POD_GROUPS.name]

    try:
        run(main)
    finally:
        rule_put(plane, rules, allowed=True)


# --- what cannot be listed or read --------------------------------------------------------------


def test_a_first_list_that_never_ends_does_not_hold_up_the_start(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches_module, "LATE_SYNC_S", 0.1)

    async def main() -> None:
        async with scene(plane) as it:
            it.watches.begin(X_POD_GROUPS)  # which the cluster does not serve
            with capture_logs() as lines:
                await it.watches.wait_synced()
            assert {
                "event": "first list is not complete",
                "log_level": "warning",
                "resource": X_POD_GROUPS.name,
            } in lines

    run(main)


def test_a_group_that_somebody_elses_definition_lets_pass_is_refused(plane: ControlPlane) -> None:
    install_x_pod_groups(plane)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    (version,) = plane.call("GET", DEFINITION)["spec"]["versions"]
    version["schema"] = {"openAPIV3Schema": anything}
    merge = "application/merge-patch+json"
    plane.call("PATCH", DEFINITION, {"spec": {"versions": [version]}}, content_type=merge)
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            plane.call("POST", GROUPS, make_x_pod_group("ring", None, minMember="abc"))
            break
        except urllib.error.HTTPError as error:
            with error:
                assert time.monotonic() < deadline
        time.sleep(0.02)

    async def main() -> None:
        async with scene(plane) as it:
            await it.late.look()
            await until(lambda: it.known.pod_groups.rules(RING) is not None)
            rules = it.known.pod_groups.rules(RING)
            assert rules is not None
            why = "spec.minMember: Expected `int | null`, got `str`"
            assert rules.problem == f"the PodGroup cannot be read: {why}"
            body = {"spec": {"minMember": 2}}
            plane.call("PATCH", f"{GROUPS}/ring", body, content_type=merge)
            await until(lambda: it.minimum() == 2)

    run(main)


def test_what_may_appear_are_the_groups() -> None:
    assert {kind.name for kind in WATCHED if kind.can_appear} == LATE

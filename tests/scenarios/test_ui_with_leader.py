"""``berth ui`` with users' kubeconfigs, against a leader on a real API server that changes."""

from __future__ import annotations

import contextlib
import functools
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.scenarios.running_berth import RunningBerth
from tests.scenarios.test_insight import AUDITOR, LEADER, SERVING, TENANT, World, world
from tests.scenarios.test_standby import SHORT, electing

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

__all__ = ["world"]  # the fixture, which pytest finds by its name

POD = """
apiVersion: v1
kind: Pod
metadata: {name: trial, namespace: team-a}
spec:
  schedulerName: berth
  containers: [{name: main, image: app, resources: {requests: {cpu: 500m}}}]
"""


class Shown(NamedTuple):
    """What a page shows: its words, and the whole text."""

    words: str
    text: str


class Page:
    """A page that runs, or is about to: its address is read when it is needed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @functools.cached_property
    def _address(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip().rstrip("/")

    def get(self, path: str, form: dict[str, str] | None = None) -> Shown:
        origin = self._address.rpartition("/")[0]
        body = None if form is None else urlencode(form).encode()
        request = Request(self._address + path, body, {"Origin": origin})
        try:
            with urlopen(request, timeout=120) as response:
                text = response.read().decode()
        except HTTPError as error:
            text = error.read().decode()
        return Shown(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)), text)


@contextlib.contextmanager
def page_of(world: World, user: str, *arguments: str) -> Iterator[Page]:
    kubeconfig = str(world.plane.kubeconfig_of(user))
    command = [sys.executable, "-m", "scheduler", "ui", "--kubeconfig", kubeconfig, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Page(process)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def pages(world: World) -> Iterator[tuple[Page, Page]]:
    """Start the pages of an administrator and of a tenant side by side."""
    with (
        page_of(world, "admin") as first,
        page_of(world, TENANT, "--namespace", "team-a") as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
def admins(pages: tuple[Page, Page]) -> Page:
    return pages[0]


@pytest.fixture(scope="module")
def tenants(pages: tuple[Page, Page]) -> Page:
    return pages[1]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/", "Counted by the leader just now", id="pending"),
        pytest.param("/decisions", "as the leader counts them", id="decisions"),
        pytest.param("/policies", f"As the leader {LEADER} uses them now", id="policies"),
        pytest.param("/pods/team-a/waits/help", f"Said by the leader {LEADER}", id="why"),
    ],
)
def test_the_leader_is_asked(admins: Page, path: str, words: str) -> None:
    assert words in admins.get(path).words


def test_a_refused_pod_is_among_the_decisions(admins: Page) -> None:
    found = admins.get("/decisions")
    assert re.search(r"team-a/ waits refused 0/2 nodes are available", found.words)


def test_the_stream_goes_on_from_its_cursor(admins: Page) -> None:
    cursor = re.search(r'data-cursor="([^"]*)"', admins.get("/decisions").text)
    assert cursor
    rows = admins.get(f"/decisions/rows?cursor={cursor[1]}").text
    assert "data-restart" not in rows
    assert cursor[1].startswith(f"{LEADER}.")


def test_a_forecast_is_the_leaders(admins: Page) -> None:
    found = admins.get("/what-if", {"objects": POD, "replicas": "2"})
    assert f"By the leader {LEADER}" in found.words
    assert "placed 2 refused 0" in found.words


@pytest.mark.parametrize("path", ["/", "/pods/team-a/waits", "/pods/team-a/waits/help", "/nodes"])
def test_a_tenant_sees_counts_in_place_of_nodes(tenants: Page, path: str) -> None:
    words = tenants.get(path).words
    assert "No answer" not in words
    assert "small" not in words


def test_a_tenants_pod_is_judged_by_the_leader(tenants: Page) -> None:
    assert "Not judged here" in tenants.get("/pods/team-a/waits").words
    words = tenants.get("/pods/team-a/waits/help").words
    assert "0 of 2 nodes can run it. Of the others, whose names you may not see:" in words


def test_a_tenant_sees_the_decisions_of_the_namespace(tenants: Page) -> None:
    words = tenants.get("/decisions").words
    assert "team-a/ waits" in words
    assert "team-b/ waits" not in words


def test_what_a_tenant_may_not_ask_is_a_sentence(tenants: Page) -> None:
    words = tenants.get("/policies").words
    assert "The leader does not say this: forbidden: User &#34;tenant&#34; cannot list" in words
    found = tenants.get("/what-if", {"drain": "small"})
    assert "cannot get nodes" in found.words


def test_a_tenant_asks_how_many_fit(tenants: Page) -> None:
    found = tenants.get("/what-if", {"objects": POD, "replicas": "2"})
    assert "placed 2 refused 0" in found.words
    assert "small" not in found.words


def test_who_may_list_nothing_gets_a_sentence(world: World) -> None:
    kubeconfig = str(world.plane.kubeconfig_of(AUDITOR))
    command = [sys.executable, "-m", "scheduler", "ui", "--kubeconfig", kubeconfig]
    found = subprocess.run(
        [*command, "-n", "team-a"], capture_output=True, text=True, check=False, timeout=120
    )
    assert (found.returncode, "Traceback" in found.stderr) == (1, False)
    assert "the namespace cannot be read" in found.stderr


def test_a_leader_that_changes_is_said_and_the_next_one_answers(world: World, admins: Page) -> None:
    """The last test of the file: the leader ends."""
    options: dict[str, Any] = {"config": electing(**SHORT), "serving": SERVING}
    with RunningBerth(world.berth, identity="berth-1_1", **options) as heir:
        world.api.wait_until(lambda: heir.is_ready, "the heir stands by")
        world.kubelet.addresses["berth-1"] = heir.app.server.address
        world.leader.stop()
        world.kubelet.addresses.pop(LEADER)

        seen: list[str] = []

        def is_told() -> bool:
            seen.append(admins.get("/decisions").words)
            return "leader berth-1" in seen[-1]

        world.api.wait_until(is_told, "the heir answers")
        assert all("as the leader counts" in each or "The leader" in each for each in seen)
        rows = admins.get(f"/decisions/rows?cursor={LEADER}.5").text
        assert "data-restart" in rows

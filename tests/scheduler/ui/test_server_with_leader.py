from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.insight.leader_client import AskError
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import as_object
from tests.scheduler.ui.answering_leader import Leader
from tests.scheduler.ui.listings import Answer, Browser, listing, visit

if TYPE_CHECKING:
    from scheduler.ui.listing import Listing

NO_LEASE = AskError("there is no Lease berth-system/berth")
FORBIDDEN = AskError('forbidden: User "x" cannot list pods in all namespaces', 403, "Forbidden")
MESSAGE = "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu."
PLACED = {
    "seq": 7,
    "time": "2026-11-23T10:00:00.5Z",
    "pod": "default/web",
    "node": "n1",
    "score": 431,
    "runner_up": "n2",
    "duration_ms": 4.26,
    "attempts": 3,
}
TRIAL = """
apiVersion: v1
kind: Pod
metadata: {name: trial}
spec: {containers: [{name: main, image: app}]}
"""


def shown() -> Listing:
    return listing(node("n1").capacity(cpu="4"), pod("web").request(cpu="8"))


def get(path: str, answer: Any, of: Listing | None = None) -> Answer:
    async def do(browser: Browser) -> Answer:
        return await browser.get(path)

    found: Answer = visit(of or shown(), do, Leader(answer))
    return found


def words_of(answer: Answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text))


@pytest.mark.parametrize("path", ["/", "/decisions", "/policies", "/pods/default/web/help"])
@pytest.mark.parametrize("error", [NO_LEASE, FORBIDDEN, OSError("no route to host")])
def test_without_an_answer_each_view_says_so_and_shows_own_lists(
    path: str, error: Exception
) -> None:
    answer = get(path, error)
    assert answer.status == 200
    text = words_of(answer).replace("&#34;", '"')
    assert "The leader cannot be asked:" in text or "The leader does not say this:" in text
    assert str(error) in text
    assert "Traceback" not in text


def test_a_leader_that_cannot_be_asked_is_said_on_top_of_every_page() -> None:
    async def do(browser: Browser) -> Answer:
        await browser.get("/")
        return await browser.get("/nodes")

    text = words_of(visit(shown(), do, Leader(NO_LEASE)))
    assert "The leader cannot be asked: there is no Lease berth-system/berth" in text


def test_decisions_of_the_leader_have_scores_and_durations() -> None:
    text = words_of(get("/decisions", {"last": 7, "decisions": [PLACED]}))
    assert "placed on n1" in text
    assert "3 431 n2 4.3" in text


@pytest.mark.parametrize(
    ("cursor", "rows", "restarts"),
    [
        pytest.param("berth-0.6", 1, False, id="next"),
        pytest.param("berth-1.6", 1, True, id="another leader"),
        pytest.param("berth-0.9", 1, True, id="a leader that began again"),
        pytest.param("nonsense", 1, True, id="no cursor"),
    ],
)
def test_rows_go_on_or_start_again(cursor: str, rows: int, restarts: bool) -> None:
    text = get(f"/decisions/rows?cursor={cursor}", {"last": 7, "decisions": [PLACED]}).text
    assert text.count("<tr>") == rows
    assert ("data-restart" in text) is restarts
    assert 'data-cursor="berth-0.7"' in text


def test_the_leader_counts_pending_pods_and_the_list_tells_their_ages() -> None:
    plugins = ["NodeResourcesFit", "TaintToleration"]
    reasons = [
        {"reason": MESSAGE, "plugins": plugins, "pods": 40, "oldest_s": 90.0},
        {"reason": "waits for its turn", "pods": 2},
    ]
    web = as_object(pod("web"))
    said = MESSAGE.replace("3 In", "2 In")
    web["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": said}]}
    own = listing(web, pod("db"))
    answer = get("/", {"pods": 42, "reasons": reasons}, own)
    text = words_of(answer)
    assert "waiting 42" in text
    assert "40 Insufficient cpu · node(s) had untolerated taint(s) NodeResourcesFit" in text
    assert "TaintToleration 1m 30s" in text
    link = re.search(r'href="[^"]*(/pending\?reason=[^"#]*)', answer.text)
    assert link
    pods = words_of(get(link[1], {"pods": 42, "reasons": reasons}, own))
    assert pods.rstrip().endswith("of 1")


def test_a_forecast_is_the_leaders() -> None:
    async def do(browser: Browser) -> Answer:
        return await browser.post("/what-if", {"objects": TRIAL})

    data = {"placed": 1, "refused": 0, "nodes": {"n9": 1}, "reason": "", "parts": []}
    text = words_of(visit(shown(), do, Leader(data)))
    assert "By the leader berth-0" in text
    assert "placed 1" in text


COUNTS = {
    "nodes": {},
    "num_nodes": 5,
    "counts": {
        "feasible": 1,
        "rejected": [{"rejected": "NodeResourcesFit", "reasons": ["Insufficient cpu"], "nodes": 4}],
    },
}


def test_a_tenant_sees_counts() -> None:
    own = listing(pod("web"), namespace="default")
    answer = {"pod": "default/web", "state": "active", "now": COUNTS}
    assert "Not judged here" in get("/pods/default/web", answer, own).text
    text = words_of(get("/pods/default/web/help", answer, own))
    assert "1 of 5 nodes can run it. Of the others, whose names you may not see:" in text
    assert "4 Insufficient cpu NodeResourcesFit" in text


@pytest.mark.parametrize("path", ["/", "/nodes", "/nodes/list", "/decisions", "/policies"])
def test_every_view_of_one_namespace_is_shown(path: str) -> None:
    assert get(path, FORBIDDEN, listing(pod("web"), namespace="default")).status == 200


def test_one_namespace_judges_nothing_itself() -> None:
    text = get("/pods/default/web/help", NO_LEASE, listing(pod("web"), namespace="default")).text
    assert "there is no Lease berth-system/berth; the pods of one namespace are listed" in text


def test_an_empty_namespace_is_shown() -> None:
    assert "No pod waits" in get("/", FORBIDDEN, listing(namespace="default")).text

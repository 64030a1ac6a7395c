from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import node, pod
from tests.scheduler.ui.listings import Answer, Browser, listing, visit

if TYPE_CHECKING:
    from scheduler.ui.listing import Listing

ZONE = "topology.kubernetes.io/zone"
SCRIPT = "<script>alert(1)</script>"

WAITING = pod("web").request(cpu="8")
RUNNING = pod("runs").request(cpu="1").on("n1")


def shown(*more: Any) -> Listing:
    nodes = (
        node("n1").capacity(cpu="4", memory="8Gi").label(ZONE, "a"),
        node("n2").capacity(cpu="2", memory="8Gi").label(ZONE, "b").taint("gpu"),
    )
    return listing(*nodes, WAITING, RUNNING, *more)


def get(path: str, of: Listing | None = None) -> Answer:
    async def do(browser: Browser) -> Answer:
        return await browser.get(path)

    answer: Answer = visit(of or shown(), do)
    return answer


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/", "Pending pods", id="home"),
        pytest.param(
            "/pending?q=we&namespace=default&page=99&order=priority", "web", id="filtered"
        ),
        pytest.param("/pods/default/web", "0 of 2 nodes can run it", id="a pod"),
        pytest.param("/pods/default/runs", "1 of 2 nodes can run it", id="a pod that runs"),
        pytest.param("/pods/default/web/nodes?row=0", "n1", id="the nodes of a row"),
        pytest.param("/pods/default/web/help", "request 5 less cpu", id="help"),
        pytest.param("/nodes", "Sums of cpu", id="nodes"),
        pytest.param("/nodes?by=nonsense&show=nonsense&resource=nonsense", "Sums of cpu", id="odd"),
        pytest.param("/nodes/list?group=a&order=free", "n1", id="list of nodes"),
        pytest.param("/nodes/one/n1", "1 pods", id="a node"),
        pytest.param(f"/nodes/cell?by={ZONE}&group=b&cell=0&as=text", "n2", id="a cell"),
        pytest.param("/decisions", "newest come first", id="decisions"),
        pytest.param("/policies", "NodeResourcesFit", id="policies"),
        pytest.param("/static/berth.css", "--paper", id="styles"),
    ],
)
def test_each_view_is_shown(path: str, words: str) -> None:
    answer = get(path)
    assert answer.status == 200
    assert words in re.sub(r"\s+", " ", answer.text)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/pods/default/nobody", "there is no pod default/nobody among 2", id="pod"),
        pytest.param("/pods/default/web/nodes?row=77", "has no row 77", id="row"),
        pytest.param("/nodes/one/nobody", "there is no node nobody among 2", id="node"),
        pytest.param("/nodes/cell?group=a&cell=5", "no node at that place", id="cell"),
    ],
)
def test_what_does_not_exist_is_said(path: str, words: str) -> None:
    answer = get(path)
    assert answer.status == 404
    assert words in answer.text


@pytest.mark.parametrize("path", ["/", "/pods/default/x", "/nodes", "/nodes/list", "/decisions"])
def test_what_objects_say_is_never_markup(path: str) -> None:
    waiting = pod("x").gate(SCRIPT).label("app", SCRIPT).scheduler(SCRIPT)
    tainted = node("n3").capacity(cpu="1").label(ZONE, SCRIPT).taint(SCRIPT)
    answer = get(path, shown(waiting, tainted))
    assert answer.status == 200
    assert SCRIPT not in answer.text


@pytest.mark.parametrize("path", ["/", "/nodes", "/pods/default/web", "/policies"])
def test_no_page_needs_what_the_policy_forbids(path: str) -> None:
    answer = get(path)
    assert "style=" not in answer.text
    assert "<style" not in answer.text
    assert not re.search(r"\son\w+=", answer.text)
    assert all("src=" in each for each in re.findall(r"<script[^>]*>", answer.text))


def test_every_answer_has_the_policy_and_is_not_kept() -> None:
    headers = get("/").headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_a_search_for_one_pod_leads_to_it() -> None:
    answer = get("/pod?q=default/web")
    assert answer.status == 303
    assert answer.headers["Location"].endswith("/pods/default/web")


def test_a_search_for_some_text_leads_to_a_list() -> None:
    assert get("/pod?q=we").headers["Location"].endswith("/pending?q=we")


def test_a_rebound_name_gets_nothing() -> None:
    async def do(browser: Browser) -> Answer:
        return await browser.get("/", Host="evil.example")

    answer = visit(shown(), do)
    assert (answer.status, "web" in answer.text) == (421, False)


def test_an_object_that_cannot_be_read_costs_itself_alone() -> None:
    answer = get("/", shown(node("bad").capacity(cpu="1x")))
    assert "1 objects could not be read" in answer.text


def test_a_policy_is_shown_with_its_comparison() -> None:
    profile = {
        "apiVersion": "scheduling.berth.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "tight"},
        "spec": {"schedulerName": "berth", "mode": "Shadow"},
        "status": {
            "shadow": {
                "schedulerName": "berth",
                "live": "default",
                "shadow": "tight@1",
                "wanted": 9,
                "compared": 7,
                "bothPlaced": 7,
                "changedWinners": 3,
            }
        },
    }
    text = get("/policies", shown(profile)).text
    assert "tight@1" in text
    assert "43" in text


def test_a_pod_that_is_looked_at_stays_on_its_node() -> None:
    found = shown()

    async def do(browser: Browser) -> Answer:
        await browser.get("/pods/default/runs")
        await browser.get("/pods/default/runs/help")
        return await browser.get("/nodes/one/n1")

    assert "runs" in visit(found, do).text
    assert found.snapshot.get("n1").requested["cpu"] == 1000


TRIAL = """
apiVersion: v1
kind: Pod
metadata: {name: trial}
spec:
  schedulerName: berth
  containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]
"""


def post(form: dict[str, str], of: Listing | None = None, **headers: str) -> Answer:
    async def do(browser: Browser) -> Answer:
        return await browser.post("/what-if", form, **headers)

    answer: Answer = visit(of or shown(), do)
    return answer


def words_of(answer: Answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text))


def test_a_forecast_is_below_its_question() -> None:
    answer = post({"objects": TRIAL, "replicas": "5"})
    assert answer.status == 200
    assert "placed 3 refused 2" in words_of(answer)
    assert "name: trial" in answer.text


def test_a_forecast_changes_nothing_here() -> None:
    found = shown()
    post({"remove": "n2", "pending": "1"}, found)
    assert sorted(found.cluster.nodes) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({}, "the question asks for nothing", id="nothing"),
        pytest.param({"drain": "n9"}, "drain[0]: there is no node &#39;n9&#39;", id="node"),
        pytest.param({"objects": TRIAL, "replicas": "x"}, "replicas: &#39;x&#39;", id="number"),
        pytest.param({"objects": ": ["}, "objects", id="no YAML"),
        pytest.param({"add": "2"}, "like: which node", id="like what"),
        pytest.param({"config": "kind: Pod"}, "config", id="no configuration"),
    ],
)
def test_a_mistake_in_a_question_is_said_with_its_field(form: dict[str, str], words: str) -> None:
    answer = post(form)
    assert answer.status == 200
    problem = re.search(r'id="problem">(.*?)</p>', answer.text)
    assert problem
    assert words in problem[1].replace("&#34;", "&#39;")


def test_another_page_cannot_ask() -> None:
    assert post({"drain": "n1"}, Origin="http://evil.example").status == 403


def test_a_question_is_bounded() -> None:
    assert post({"objects": "x" * 600_000}).status == 413

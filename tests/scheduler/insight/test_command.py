from __future__ import annotations

import pytest
from msgspec.structs import replace

from scheduler.cli import main
from scheduler.insight.command import WhyAnswer, _Attempt, why_text
from scheduler.insight.leader_client import AskError, _moved, _MovedError, _refusal

REFUSED = _Attempt("2026-11-23T11:39:16.120Z", "a/p", message="0/3 nodes are available", attempts=2)
BOUND = _Attempt("2026-11-23T11:39:17.120Z", "a/p", node="n1", score=418, attempts=3)
OF_GROUP = _Attempt("2026-11-23T11:39:16.120Z", group="a/gang", message="no room for 3")


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        pytest.param(
            WhyAnswer("a/p", "bound", (BOUND, REFUSED)),
            [
                "Pod a/p is bound.",
                "",
                "Its last attempts:",
                "  2026-11-23 11:39:17Z  bound to n1 (attempt 3, 418 points)",
                "  2026-11-23 11:39:16Z  0/3 nodes are available (attempt 2)",
            ],
            id="attempts, the newest first",
        ),
        pytest.param(
            WhyAnswer(
                "a/p",
                "bound",
                (
                    replace(BOUND, runner_up="n2", runner_up_score=400),
                    replace(BOUND, runner_up="n3", runner_up_score=418),
                    replace(BOUND, runner_up="n4", runner_up_score=430),
                ),
            ),
            [
                "Pod a/p is bound.",
                "",
                "Its last attempts:",
                "  2026-11-23 11:39:17Z  bound to n1 "
                "(attempt 3, 418 points; second best is n2 with 400)",
                "  2026-11-23 11:39:17Z  bound to n1 (attempt 3, 418 points; n3 is equally good)",
                "  2026-11-23 11:39:17Z  bound to n1 "
                "(attempt 3, 418 points; n4 with 430 was left to other schedulers)",
            ],
            id="the second best node",
        ),
        pytest.param(
            WhyAnswer("a/p", "grouped", (OF_GROUP,)),
            [
                "Pod a/p waits to be tried with its pod group.",
                "",
                "Its last attempts:",
                "  2026-11-23 11:39:16Z  pod group a/gang: no room for 3",
            ],
            id="a member of a group",
        ),
        pytest.param(
            WhyAnswer("a/p", "other_pool", pool="pool b (pool=b)"),
            [
                "Pod a/p belongs to another pool, or is on its way there.",
                "",
                "This leader has not tried it, or so long ago that it has forgotten.",
                "",
                "Only the nodes of pool b (pool=b) are looked at.",
            ],
            id="a pod of another pool",
        ),
        pytest.param(
            WhyAnswer("a/p", "gated", (), "Pod a/p: 0 of 1 node\n\n1 node cannot:\n", ("A note.",)),
            [
                "Pod a/p is not tried at present.",
                "",
                "This leader has not tried it, or so long ago that it has forgotten.",
                "",
                "If it were tried now:",
                "  Pod a/p: 0 of 1 node",
                "",
                "  1 node cannot:",
                "",
                "A note.",
            ],
            id="never tried",
        ),
        pytest.param(
            WhyAnswer("a/p", "new state"),
            [
                "Pod a/p is in the state new state.",
                "",
                "This leader has not tried it, or so long ago that it has forgotten.",
            ],
            id="a state of a later version",
        ),
    ],
)
def test_the_text(answer, lines):
    assert why_text(answer).splitlines() == lines


def test_two_namespaces_that_differ_are_a_mistake(capsys):
    assert main(["why", "team-a/p", "-n", "team-b"]) == 1
    assert capsys.readouterr().err == "berth: team-a/p and --namespace team-b contradict\n"


@pytest.mark.parametrize(
    ("status", "body", "moved", "message"),
    [
        pytest.param(503, b'{"reason": "NotLeading"}', True, "does not schedule", id="standby"),
        pytest.param(401, b"{}", False, "the leader does not know you", id="nobody"),
        pytest.param(
            403,
            b'{"message": "forbidden: x", "reason": "Forbidden"}',
            False,
            "forbidden: x",
            id="no right",
        ),
        pytest.param(404, b"404: Not Found", False, "an older version", id="no such page"),
        pytest.param(
            404,
            b'{"message": "there is no pod a/p", "reason": "NotFound"}',
            False,
            "there is no pod a/p",
            id="no such pod",
        ),
        pytest.param(503, b"too busy\n", False, "too busy", id="no JSON"),
        pytest.param(500, b"", False, "the leader responded with 500", id="nothing"),
    ],
)
def test_refusals(status, body, moved, message):
    error = _refusal(status, body)
    assert isinstance(error, _MovedError if moved else AskError)
    assert message in str(error)


@pytest.mark.parametrize(
    ("leaders", "message"),
    [
        pytest.param(["b-0", "b-1"], "the leader changed from b-0 to b-1 meanwhile", id="changed"),
        pytest.param(["b-0"], "no leader has answered within 20 s: gone", id="the same"),
        pytest.param([], "no leader has answered within 20 s: gone", id="none"),
    ],
)
def test_what_is_said_when_patience_ends(leaders, message):
    assert _moved(leaders, _MovedError("gone")).startswith(message)

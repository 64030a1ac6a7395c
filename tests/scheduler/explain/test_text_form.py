from __future__ import annotations

import numpy as np
import pytest

from plugins.framework.status import Code
from plugins.node_resources_fit import Shortfall
from scheduler.explain import Explanation, Ranking, Rejection, as_text

FULL = Rejection("NodeResourcesFit", Code.UNSCHEDULABLE, ("Insufficient cpu",))
TAINTED = Rejection(
    "TaintToleration", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)
)
GIB = 2**30


def nothing(name: str) -> list[Shortfall]:
    return []


def ranking(names: list[str], **scores: list[int]) -> Ranking:
    weighted = {plugin: np.array(column) for plugin, column in scores.items()}
    return Ranking(names, weighted, sum(weighted.values(), np.zeros(len(names), np.int64)), {})


def names(count: int, prefix: str = "node") -> list[str]:
    return [f"{prefix}-{index:04}" for index in range(count)]


def test_reasons_come_with_their_nodes_and_then_the_ranking() -> None:
    explanation = Explanation(
        "default/web",
        5,
        None,
        {"c": TAINTED, "a": FULL, "b": TAINTED},
        ranking(["e", "d"], Fit=[0, 40], Image=[0, 0], Taint=[0, 300]),
    )

    def lacks(name: str) -> list[Shortfall]:
        return [Shortfall("cpu", 2000, 3500, 4000), Shortfall("memory", 3 * GIB, 0, GIB * 5 // 2)]

    assert as_text(explanation, lacks) == (
        "Pod default/web: 2 of 5 nodes can run it\n"
        "\n"
        "3 nodes cannot:\n"
        "      2  node(s) had untolerated taint(s) [TaintToleration]\n"
        "           b, c\n"
        "      1  Insufficient cpu [NodeResourcesFit]; other pods are in the way\n"
        "           a: cpu 2 wanted, 500m of 4 free; memory 3Gi wanted, 2.5Gi of 2.5Gi free\n"
        "\n"
        "Ranking:\n"
        "    340  d  Fit 40 + Taint 300\n"
        "      0  e  no plugin gives it anything\n"
    )


def test_thousands_of_nodes_fit_on_a_screen() -> None:
    reasons = [Rejection("P", Code.UNSCHEDULABLE, (f"reason {index}",)) for index in range(25)]
    rejected = {name: reasons[index % 25] for index, name in enumerate(names(4000, "no"))}
    ranked = ranking(names(1000, "yes"), Fit=[5] * 1000)
    text = as_text(Explanation("a/b", 5000, None, rejected, ranked), nothing)
    lines = text.splitlines()
    assert len(lines) < 65
    assert max(map(len, lines)) < 130
    assert "and 152 more" in text
    assert "    800  for 5 other reasons" in lines
    assert "Ranking (1000 nodes share the first place):" in lines
    assert "         and 990 more, down to 5" in lines


def test_missing_amounts_are_told_of_some_nodes() -> None:
    rejected = dict.fromkeys(names(10), FULL)
    lack = [Shortfall("example.com/gpu", 2, 1, 1)]
    text = as_text(Explanation("a/b", 10, None, rejected, {}), lambda name: lack)
    assert text.count("example.com/gpu 2 wanted, 0 of 1 free") == 3
    assert "           and 7 more" in text.splitlines()


@pytest.mark.parametrize(
    ("explanation", "headline"),
    [
        pytest.param(
            Explanation("a/b", 0, None, {}, {}),
            "Pod a/b: no nodes available to schedule pods\n",
            id="no nodes",
        ),
        pytest.param(
            Explanation("a/b", 7, Rejection("P", Code.UNSCHEDULABLE, ("never",)), {}, {}),
            "Pod a/b: no node of 7 can run it: never [P]; other pods are in the way\n",
            id="rejected before any node was looked at",
        ),
    ],
)
def test_where_no_node_was_judged_one_line_says_why(
    explanation: Explanation, headline: str
) -> None:
    assert as_text(explanation, nothing) == headline

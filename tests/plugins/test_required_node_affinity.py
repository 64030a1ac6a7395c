from __future__ import annotations

import pytest

from cache.columns import NodesView
from cache.objects import NodeSelector, NodeSelectorTerm
from plugins.required_node_affinity import names_demanded, required_node_affinity
from tests.builders import PodBuilder, names_term, node, pod, requirement, term

IN_A = term(requirement("zone", "In", "a"))
RANKED = term(requirement("rank", "Exists"))
MALFORMED = term(requirement("zone", "Near", "a"))


def nodes() -> NodesView:
    return NodesView.of(
        [
            node("a").label("zone", "a").info(),
            node("a-ranked").label("zone", "a").label("rank", "1").info(),
            node("b").label("zone", "b").info(),
            node("b-ranked").label("zone", "b").label("rank", "1").info(),
        ]
    )


ALL = {"a", "a-ranked", "b", "b-ranked"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod(), ALL, id="nothing"),
        pytest.param(pod().node_selector("zone", "a"), {"a", "a-ranked"}, id="nodeSelector"),
        pytest.param(
            pod().node_selector("zone", "a").node_selector("rank", "1"),
            {"a-ranked"},
            id="all of nodeSelector",
        ),
        pytest.param(
            pod().node_selector("zone", "no/label/value"),
            set(),
            id="a value that no label can have",
        ),
        pytest.param(
            pod().node_affinity(IN_A, RANKED), {"a", "a-ranked", "b-ranked"}, id="any of the terms"
        ),
        pytest.param(
            pod().node_selector("zone", "b").node_affinity(IN_A, RANKED), {"b-ranked"}, id="both"
        ),
        pytest.param(pod().node_affinity(), set(), id="an affinity without terms"),
        pytest.param(pod().node_affinity(term()), set(), id="with nothing but an empty term"),
        pytest.param(
            pod().node_affinity(term(), IN_A), {"a", "a-ranked"}, id="an empty term beside another"
        ),
        pytest.param(
            pod().node_affinity(MALFORMED, RANKED),
            {"a-ranked", "b-ranked"},
            id="a malformed term beside a good one",
        ),
    ],
)
def test_both_forms_find_the_same_nodes(asked: PodBuilder, expected: set[str]) -> None:
    view, required = nodes(), required_node_affinity(asked.build().spec)
    mask = required.mask(view)
    infos = view.node_infos()
    hits = [True] * len(infos) if mask is None else mask.tolist()
    assert {info.name for info, hit in zip(infos, hits, strict=True) if hit} == expected
    assert {info.name for info in infos if required.matches(info)} == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param((), None, id="no terms"),
        pytest.param((names_term("a"),), {"a"}, id="one name"),
        pytest.param((names_term("a"), names_term("b")), {"a", "b"}, id="one of two names"),
        pytest.param((names_term("a", "b"),), set(), id="two names at once"),
        pytest.param((names_term("a", "b"), names_term("c")), {"c"}, id="a term that can hold"),
        pytest.param((names_term("a"), IN_A), None, id="a term without a name"),
        pytest.param((names_term("a"), term()), None, id="an empty term"),
        pytest.param(
            (term(fields=(requirement("metadata.name", "NotIn", "a"),)),), None, id="NotIn"
        ),
        pytest.param(
            (term(requirement("zone", "In", "a"), fields=names_term("a").match_fields),),
            {"a"},
            id="labels are left aside",
        ),
        pytest.param(
            (term(fields=(requirement("metadata.name", "In", "a", "b"),)),),
            {"a", "b"},
            id="several values of a malformed term",
        ),
        pytest.param(
            (term(fields=(requirement("spec.other", "In", "a"),)),), None, id="another field"
        ),
    ],
)
def test_names_demanded(terms: tuple[NodeSelectorTerm, ...], expected: set[str] | None) -> None:
    assert names_demanded(NodeSelector(terms)) == expected

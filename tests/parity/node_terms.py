"""Node affinity, of pods and of profiles."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.vocabulary import NODE_LABELS, NODE_NAMES, Json, requirements

_EXPRESSIONS = st.one_of(
    requirements(NODE_LABELS),
    requirements({"topology.kubernetes.io/zone": ["zone-a", "zone-b", "zone-c"]}),
    st.builds(
        lambda operator, bound: {"key": "rank", "operator": operator, "values": [str(bound)]},
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 11),
    ),
)
_FIELDS = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "In", "NotIn"]),
    st.sampled_from(NODE_NAMES),
)


_SOME_EXPRESSIONS = st.lists(_EXPRESSIONS, min_size=1, max_size=2)
_SOME_FIELDS = st.lists(_FIELDS, min_size=1, max_size=3)
# The last one is the empty term, which matches nothing.
_KINDS = st.sampled_from([*["expressions"] * 6, "fields", "fields", "expressions and fields", ""])


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    kind = draw(_KINDS)
    term: Json = {}
    if "expressions" in kind:
        term["matchExpressions"] = draw(_SOME_EXPRESSIONS)
    if "fields" in kind:
        term["matchFields"] = draw(_SOME_FIELDS)
    return term


_REQUIRED = st.lists(_terms(), min_size=1, max_size=2).map(
    lambda terms: {"nodeSelectorTerms": terms}
)
_PREFERRED = st.lists(
    st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": _terms()}),
    min_size=1,
    max_size=2,
)


def node_affinities() -> st.SearchStrategy[Json]:
    """Required terms, preferred ones, or both."""
    required = _REQUIRED.map(
        lambda terms: {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    )
    preferred = _PREFERRED.map(
        lambda terms: {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    )
    return st.one_of(required, preferred, st.builds(lambda a, b: {**a, **b}, required, preferred))

"""KubeSchedulerConfigurations that change what the plugins say."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.node_terms import node_affinities
from tests.parity.pod_terms import DEFAULT_CONSTRAINTS
from tests.parity.vocabulary import EVEN, EXTENDED, SELDOM, Json, chance

_RESOURCES = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", *EXTENDED]
_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
_FILTERS = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
]
_FIT_RESOURCES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(_RESOURCES), "weight": st.sampled_from([1, 2, 5, 100])}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda resource: resource["name"],
)
_BALANCED_RESOURCES = st.lists(
    st.sampled_from(_RESOURCES).map(lambda name: {"name": name, "weight": 1}),
    min_size=1,
    max_size=4,
    unique_by=lambda resource: resource["name"],
)
_SHAPES = st.lists(
    st.fixed_dictionaries({"utilization": st.integers(0, 100), "score": st.integers(0, 10)}),
    min_size=1,
    max_size=4,
    unique_by=lambda point: point["utilization"],
).map(lambda points: sorted(points, key=lambda point: point["utilization"]))
_IGNORED = st.lists(st.sampled_from(EXTENDED), min_size=1, max_size=2, unique=True)
_GROUPS = st.lists(
    st.sampled_from(["example.com", "vendor.example"]), min_size=1, max_size=2, unique=True
)


@st.composite
def _fit(draw: st.DrawFn) -> Json:
    args: Json = {}
    if draw(SELDOM):
        args["ignoredResources"] = draw(_IGNORED)
    if draw(SELDOM):
        args["ignoredResourceGroups"] = draw(_GROUPS)
    kind = draw(st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]))
    strategy: Json = {"type": kind}
    if draw(EVEN):
        strategy["resources"] = draw(_FIT_RESOURCES)
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": draw(_SHAPES)}
    args["scoringStrategy"] = strategy
    return args


_BALANCED = st.fixed_dictionaries({"resources": _BALANCED_RESOURCES})
_INTER_POD = st.fixed_dictionaries(
    {},
    optional={
        "hardPodAffinityWeight": st.sampled_from([0, 1, 50, 100]),
        "ignorePreferredTermsOfExistingPods": st.booleans(),
    },
)
_SPREAD = st.one_of(
    st.just({"defaultingType": "System"}),
    DEFAULT_CONSTRAINTS.map(
        lambda some: {"defaultingType": "List", **({"defaultConstraints": some} if some else {})}
    ),
)
_NODE_AFFINITY = st.fixed_dictionaries({"addedAffinity": node_affinities()})


def _args(kind: str, fields: Json) -> Json:
    types = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{kind}Args"}
    return {"name": kind, "args": {**types, **fields}}


_ANY_SCORE = st.sampled_from(sorted(_WEIGHTS)).flatmap(
    lambda name: st.integers(1, 20).map(lambda weight: {"name": name, "weight": weight})
)
_SOME_SCORES = st.lists(_ANY_SCORE, max_size=4, unique_by=lambda entry: entry["name"])
_SOME_FILTERS = st.lists(st.sampled_from(_FILTERS), max_size=len(_FILTERS), unique=True).map(
    lambda names: [{"name": name} for name in names]
)
_ALL = [{"name": "*"}]
# At a point of its own a plugin takes the weight that it has there; filters run as they stand.
_PLUGINS = st.one_of(
    _ANY_SCORE.map(lambda entry: {"multiPoint": {"enabled": [entry]}}),
    _ANY_SCORE.map(lambda entry: {"score": {"disabled": [{"name": entry["name"]}]}}),
    _SOME_SCORES.map(lambda entries: {"score": {"enabled": entries}}),
    _SOME_SCORES.map(lambda entries: {"score": {"enabled": entries, "disabled": _ALL}}),
    _SOME_FILTERS.map(lambda entries: {"filter": {"disabled": entries}}),
    _SOME_FILTERS.map(lambda entries: {"filter": {"enabled": entries}}),
    _SOME_FILTERS.map(lambda entries: {"filter": {"enabled": entries, "disabled": _ALL}}),
)


@st.composite
def _changed(draw: st.DrawFn) -> Json:
    profile: Json = {"schedulerName": "default-scheduler"}
    plugin_config = []
    for kind, args in (
        ("NodeResourcesFit", _fit()),
        ("NodeResourcesBalancedAllocation", _BALANCED),
        ("NodeAffinity", _NODE_AFFINITY),
        ("InterPodAffinity", _INTER_POD),
        ("PodTopologySpread", _SPREAD),
    ):
        if draw(chance(40)):
            plugin_config.append(_args(kind, draw(args)))
    if plugin_config:
        profile["pluginConfig"] = plugin_config
    if draw(EVEN):
        profile["plugins"] = draw(_PLUGINS)
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


def configurations() -> st.SearchStrategy[Json | None]:
    """No configuration at all for most cases, a changed one for the others."""
    return chance(40).flatmap(lambda changed: _changed() if changed else st.none())

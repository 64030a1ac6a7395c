"""What pods say about other pods: affinity, anti-affinity, spreading; and who selects pods."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.vocabulary import (
    EVEN,
    HOSTNAME,
    NAMESPACE_SELECTORS,
    NAMESPACES,
    POD_LABELS,
    POD_SELECTORS,
    SELDOM,
    ZONE,
    Json,
)

# No node has a rack: a term over it finds no domain anywhere.
_TOPOLOGY_KEYS = st.sampled_from([HOSTNAME, HOSTNAME, *[ZONE] * 4, "pool", "rack"])
_SOME_NAMESPACES = st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2, unique=True)
_NAMESPACE_SELECTORS = st.one_of(st.just({}), NAMESPACE_SELECTORS)
_WEIGHTS = st.sampled_from([1, 10, 50, 100])
_KEY = "version"


def merged(selector: Json, labels: dict[str, str], key: str, operator: str) -> Json:
    """Return a selector with what the API server makes of a key of matchLabelKeys."""
    if key not in labels:
        return selector
    more = {"key": key, "operator": operator, "values": [labels[key]]}
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), more]}


@st.composite
def _selectors(draw: st.DrawFn, labels: dict[str, str]) -> Json:
    """A selector, now and then one that selects the pod itself."""
    if labels and draw(EVEN):
        key = draw(st.sampled_from(sorted(labels)))
        return {"matchLabels": {key: labels[key]}}
    return draw(POD_SELECTORS)


@st.composite
def _terms(draw: st.DrawFn, labels: dict[str, str]) -> Json:
    term: Json = {"topologyKey": draw(_TOPOLOGY_KEYS)}
    if draw(SELDOM):
        term["namespaces"] = draw(_SOME_NAMESPACES)
    if draw(SELDOM):
        term["namespaceSelector"] = draw(_NAMESPACE_SELECTORS)
    if draw(_SELECTED):
        selector = draw(_selectors(labels))
        if draw(SELDOM):
            match = draw(EVEN)
            term["matchLabelKeys" if match else "mismatchLabelKeys"] = [_KEY]
            selector = merged(selector, labels, _KEY, "In" if match else "NotIn")
        term["labelSelector"] = selector
    return term


# Without a selector a term selects no pod: that is worth a case now and then.
_SELECTED = st.sampled_from([*[True] * 9, False])
_COUNTS = st.sampled_from([1, 1, 1, 2])


@st.composite
def pod_affinities(draw: st.DrawFn, labels: dict[str, str]) -> Json:
    """A podAffinity, a podAntiAffinity or both, of a pod with these labels."""
    affinity: Json = {}
    for kind in draw(_KINDS):
        rules: Json = {}
        for strength in draw(_STRENGTHS):
            terms = [draw(_terms(labels)) for _ in range(draw(_COUNTS))]
            if strength == "required":
                rules["requiredDuringSchedulingIgnoredDuringExecution"] = terms
            else:
                rules["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": draw(_WEIGHTS), "podAffinityTerm": term} for term in terms
                ]
        affinity[kind] = rules
    return affinity


_KINDS = st.sampled_from([["podAffinity"], ["podAntiAffinity"], ["podAffinity", "podAntiAffinity"]])
_STRENGTHS = st.sampled_from([["required"], ["preferred"], ["required", "preferred"]])


@st.composite
def _constraints(draw: st.DrawFn, labels: dict[str, str]) -> Json:
    action = draw(_ACTIONS)
    constraint: Json = {
        "maxSkew": draw(_SKEWS),
        "topologyKey": draw(_TOPOLOGY_KEYS),
        "whenUnsatisfiable": action,
    }
    if draw(_SELECTED):
        constraint["labelSelector"] = draw(_selectors(labels))
        if draw(SELDOM):
            constraint["matchLabelKeys"] = [_KEY]
    if action == "DoNotSchedule" and draw(SELDOM):
        constraint["minDomains"] = draw(_DOMAINS)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw(SELDOM):
            constraint[policy] = draw(_POLICIES)
    return constraint


_SKEWS = st.sampled_from([1, 1, 1, 2, 3])
_DOMAINS = st.integers(1, 5)
_ACTIONS = st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
_POLICIES = st.sampled_from(["Honor", "Ignore"])


def spread_constraints(labels: dict[str, str]) -> st.SearchStrategy[list[Json]]:
    """Constraints of a pod with these labels."""
    return st.lists(
        _constraints(labels),
        min_size=1,
        max_size=2,
        unique_by=lambda constraint: (constraint["topologyKey"], constraint["whenUnsatisfiable"]),
    )


DEFAULT_CONSTRAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "maxSkew": _SKEWS,
            "topologyKey": _TOPOLOGY_KEYS,
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        }
    ),
    max_size=2,
    unique_by=lambda constraint: (constraint["topologyKey"], constraint["whenUnsatisfiable"]),
)

_SELECTING_LABELS = st.sampled_from(sorted(POD_LABELS)).flatmap(
    lambda key: st.sampled_from(POD_LABELS[key]).map(lambda value: {key: value})
)
OWNER = "owner"
"""The name of every controller."""

_OWNERS = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "DaemonSet": "apps/v1",
}


@st.composite
def workloads(draw: st.DrawFn) -> list[Json]:
    """Services, and controllers called ``owner``."""
    objects: list[Json] = []
    for index in range(draw(st.integers(0, 3))):
        spec = {"selector": draw(_SELECTING_LABELS)} if draw(_SELECTED) else {}
        objects.append(_object("v1", "Service", f"service-{index}", draw(_ONE_NAMESPACE), spec))
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        if draw(SELDOM):
            of_labels = draw(_SELECTING_LABELS)
            selector: Json = of_labels
            if kind != "ReplicationController":
                selector = draw(st.one_of(st.just({"matchLabels": of_labels}), POD_SELECTORS))
            namespace = draw(_ONE_NAMESPACE)
            objects.append(_object(_OWNERS[kind], kind, OWNER, namespace, {"selector": selector}))
    return objects


_ONE_NAMESPACE = st.sampled_from(["default", "default", "team-a", "team-b"])


def _object(version: str, kind: str, name: str, namespace: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@st.composite
def owner_references(draw: st.DrawFn) -> list[Json]:
    """Who controls the pod: a controller that may or may not exist."""
    kind = draw(st.sampled_from(sorted(_OWNERS)))
    return [
        {
            "apiVersion": _OWNERS[kind],
            "kind": kind,
            "name": OWNER,
            "uid": f"uid-{kind}-{OWNER}",
            "controller": True,
        }
    ]

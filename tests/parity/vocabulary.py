"""Small words from which clusters are made, so that selectors match and ports collide."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"

NAMESPACES = ["default", "team-a", "team-b"]
NODE_NAMES = [f"node-{index}" for index in range(8)]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
TAINT_KEYS = ["dedicated", "gpu", "node.kubernetes.io/unschedulable"]

# One size an image: kube-scheduler takes whichever node's it happens to meet last.
IMAGE_BYTES = {
    "registry.example/app:v1": 300_000_000,
    "registry.example/base:latest": 24 * 2**20,
    "registry.example:5000/model:v2": 5_000_000_000,
    "busybox:1.36": 4_000_000,
    "registry.example/empty:v1": 0,
}
IMAGES_IN_PODS = [
    "registry.example/app:v1",
    "registry.example/base",
    "registry.example:5000/model:v2",
    "busybox:1.36",
    "registry.example/unknown:v1",
]

CPU = ["0", "1m", "100m", "250m", "500m", "1", "1500m", "2", "3", "7"]
BYTES = ["0", "1", "128Mi", "200Mi", "512Mi", "1Gi", "1500M", "3Gi", "7Gi"]
SMALL_CPU = ["0", "1m", "50m", "100m", "250m", "500m"]
SMALL_BYTES = ["0", "1", "64Mi", "128Mi", "200Mi", "300M"]
EXTENDED = ["example.com/gpu", "vendor.example/nic"]
HUGE_PAGES = "hugepages-2Mi"

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
FEATURES = [RESTART_ALL, USER_NAMESPACES, "SomethingElse"]


def chance(percent: int) -> st.SearchStrategy[bool]:
    """Yes in about so many of a hundred cases; shrinks to no."""
    return st.integers(0, 99).map(lambda drawn: drawn >= 100 - percent)


LIKELY, EVEN, SELDOM, RARE = chance(80), chance(50), chance(20), chance(5)

POD_LABELS = {"app": ["web", "db"], "tier": ["front", "back"], "version": ["1", "2"]}
NODE_LABELS = {"disk": ["ssd", "hdd"], "rank": ["1", "5", "10", "x"], "pool": ["a", "b", ""]}
NAMESPACE_LABELS = {"team": ["a", "b"], "env": ["prod", "dev"]}


def labels(words: dict[str, list[str]]) -> st.SearchStrategy[dict[str, str]]:
    """Some of the keys, each with one of its values."""
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) for key, values in words.items()}
    )


def requirements(words: dict[str, list[str]]) -> st.SearchStrategy[Json]:
    """Expressions of label selectors."""

    def of(key: str) -> st.SearchStrategy[Json]:
        values = st.lists(st.sampled_from(words[key]), min_size=1, max_size=2, unique=True)
        return st.one_of(
            st.builds(
                lambda operator, chosen: {"key": key, "operator": operator, "values": chosen},
                st.sampled_from(["In", "NotIn"]),
                values,
            ),
            st.sampled_from(["Exists", "DoesNotExist"]).map(
                lambda operator: {"key": key, "operator": operator}
            ),
        )

    return st.sampled_from(sorted(words)).flatmap(of)


def selectors(words: dict[str, list[str]]) -> st.SearchStrategy[Json]:
    """Label selectors: by labels, by expressions, by both, and the one that selects all."""
    one_label = st.sampled_from(sorted(words)).flatmap(
        lambda key: st.sampled_from(words[key]).map(lambda value: {key: value})
    )
    return st.one_of(
        one_label.map(lambda chosen: {"matchLabels": chosen}),
        st.lists(requirements(words), max_size=2).map(lambda some: {"matchExpressions": some}),
        st.builds(
            lambda chosen, some: {"matchLabels": chosen, "matchExpressions": [some]},
            one_label,
            requirements(words),
        ),
    )


NODE_LABELS_STRATEGY = labels(NODE_LABELS)
# Most pods have an app, so that selectors find some.
POD_LABELS_STRATEGY = st.one_of(
    st.sampled_from(["web", "web", "db"]).map(lambda app: {"app": app}),
    st.builds(
        lambda app, others: {**others, "app": app},
        st.sampled_from(["web", "db"]),
        labels(POD_LABELS),
    ),
    labels(POD_LABELS),
)
NAMESPACE_LABELS_STRATEGY = labels(NAMESPACE_LABELS)
POD_SELECTORS = selectors(POD_LABELS)
NAMESPACE_SELECTORS = selectors(NAMESPACE_LABELS)

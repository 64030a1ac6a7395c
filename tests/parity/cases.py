"""Whole questions: a cluster, a pod, a configuration.

To draw a cluster takes ten times as long as to answer a question about it, so each is asked
about several pods.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.configurations import configurations
from tests.parity.nodes import nodes
from tests.parity.pod_terms import workloads
from tests.parity.pods import pending_pods, placed_pods
from tests.parity.vocabulary import EVEN, NAMESPACE_LABELS_STRATEGY, NAMESPACES, NODE_NAMES, Json

_NUMBERS_OF_NODES = st.sampled_from([3, 1, 2, 4, 5, 6, 7, 8, *range(2, 9), 0])


QUESTIONS = 5
"""Questions about one cluster."""


@st.composite
def _asked(draw: st.DrawFn) -> Json:
    config = draw(configurations())
    asked: Json = {"pod": draw(pending_pods())}
    return asked if config is None else {**asked, "config": config}


_ASKED = st.lists(_asked(), min_size=1, max_size=2 * QUESTIONS)


@st.composite
def questions(draw: st.DrawFn) -> list[Json]:
    """Questions about one cluster, as the oracle and ``berth explain --batch`` read them."""
    names = NODE_NAMES[: draw(_NUMBERS_OF_NODES)]
    objects: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": draw(NAMESPACE_LABELS_STRATEGY)},
        }
        for name in NAMESPACES
    ]
    sound = draw(EVEN)
    objects += [draw(nodes(name, sound=sound)) for name in names]
    objects += draw(workloads())
    if names:
        hosts = draw(st.lists(st.sampled_from(names), min_size=3 if sound else 0, max_size=10))
        objects += [
            draw(placed_pods(f"placed-{index}", host, plain=sound))
            for index, host in enumerate(hosts)
        ]
    return [{"objects": objects, **asked} for asked in draw(_ASKED)]

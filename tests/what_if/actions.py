"""Random changes of a cluster, as questions for a forecast and as what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.objects import make_node
from tests.what_if.workloads import disruption_budget, random_workload, replica_set

if TYPE_CHECKING:
    from random import Random

    from tests.what_if.workloads import Workload

SCALE_UP: Final = "scale-up"
DRAIN: Final = "drain"
ADD: Final = "node addition"
REMOVE: Final = "node removal"
COMBINED: Final = "combination"
QUOTA: Final = "quota"
CONFIG: Final = "configuration"

KINDS: Final = (SCALE_UP, DRAIN, ADD, REMOVE, COMBINED, QUOTA, CONFIG)

ORDER: Final = (
    *(DRAIN, SCALE_UP, ADD, DRAIN, SCALE_UP, REMOVE, DRAIN, COMBINED, QUOTA, SCALE_UP, DRAIN),
    *(ADD, COMBINED, SCALE_UP, DRAIN, REMOVE, COMBINED, CONFIG),
)
"""The kinds of actions, after the first ones, which fill the cluster."""

FIRST: Final = 6
"""Scale-ups at first, which fill the cluster."""

CAPACITY: Final = ("4", "6", "8")
ZONES: Final = 3

HEAD: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""

DEFAULT: Final = f"{HEAD}profiles: [{{schedulerName: berth}}]\n"
"""The default profile. With short pauses, as nothing is compared before all pods were tried."""

OTHERS: Final = (
    f"""{HEAD}
profiles:
- schedulerName: berth
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}}}
""",
    f"""{HEAD}
profiles:
- schedulerName: berth
  plugins:
    multiPoint: {{disabled: [{{name: NodeResourcesBalancedAllocation}}, {{name: ImageLocality}}]}}
""",
)


@dataclass(frozen=True)
class Action:
    """One change; the question asks about the pending pods, too.

    Attributes
    ----------
    question
        The fields of the question.
    workload
        What is created.
    budget
        A budget of the workload, which is created afterwards.
    add
        Nodes that are copied, each with how often.
    admission
        A quota or a LimitRange that is there meanwhile.
    config
        The configuration to change to.
    """

    kind: str
    question: dict[str, Any]
    workload: Workload | None = None
    budget: dict[str, Any] | None = None
    drain: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    add: dict[str, int] = field(default_factory=dict)
    admission: dict[str, Any] | None = None
    config: str = ""


def first_nodes(random: Random, count: int) -> list[dict[str, Any]]:
    """Return the nodes of the cluster before the first action."""
    return [
        make_node(f"node-{number}", cpu=random.choice(CAPACITY), zone=f"zone-{number % ZONES}")
        for number in range(count)
    ]


def kind_of(number: int) -> str:
    """Return the kind of a round."""
    return SCALE_UP if number < FIRST else ORDER[(number - FIRST) % len(ORDER)]


def random_action(
    random: Random, number: int, kind: str, nodes: list[str], apps: list[str]
) -> Action:
    """Return the action of a round.

    Parameters
    ----------
    nodes, apps
        The names of the present nodes and workloads.
    """
    if kind == QUOTA:
        return _limited(random, f"app-{number}")
    if kind == CONFIG:
        config = random.choice(OTHERS)
        return Action(kind, {"config": config}, config=config)
    names = random.sample(nodes, 4)
    drained: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    add: dict[str, int] = {}
    if kind == DRAIN:
        drained = tuple(names[: random.choice((1, 1, 2))])
    elif kind == REMOVE:
        removed = (names[0],)
    elif kind == ADD:
        add = {names[0]: random.randint(1, 2)}
    elif kind == COMBINED:
        drained, removed = _two_changes(random, names)
        add = {names[2]: 1} if random.random() < 0.5 else {}
    workload = None
    if kind in (SCALE_UP, ADD) or (kind == COMBINED and random.random() < 0.6):
        workload = random_workload(random, f"app-{number}", nodes)
    budget = None
    if workload is not None and workload.replica_set is not None and random.random() < 0.5:
        budget = disruption_budget(random, workload.name, apps)
    question: dict[str, Any] = {"pending": True}
    if workload is not None:
        question["objects"] = workload.objects
    if drained:
        question["drain"] = drained
    if removed:
        question["remove"] = removed
    if add:
        question["add"] = [{"like": like, "count": count} for like, count in add.items()]
    return Action(kind, question, workload, budget, drained, removed, add)


def _two_changes(random: Random, names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return nodes to drain and nodes to remove: another one, or the same one afterwards."""
    drained = (names[0],)
    return drained, random.choice(((), drained, (names[1],)))


def _limited(random: Random, name: str) -> Action:
    """Return a scale-up beyond what a quota allows, or with defaults of a LimitRange.

    Amounts of the quota are what is added to its use: see :mod:`tests.what_if.life`.
    """
    workload = random_workload(random, name, ["node-0"])
    while workload.replica_set is None or workload.before:
        workload = random_workload(random, name, ["node-0"])
    made = workload.replica_set
    template = made["spec"]["template"]
    if random.random() < 0.4:
        del template["spec"]["containers"][0]["resources"]
        limits = {"type": "Container", "defaultRequest": {"cpu": "600m"}}
        admission = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "defaults", "namespace": "default"},
            "spec": {"limits": [limits]},
        }
    else:
        resource = random.choice(("pods", "requests.cpu", "count/pods"))
        admission = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {resource: str(random.randint(1, 4))}},
        }
    again = replica_set(
        name, template["metadata"]["labels"], random.randint(4, 8), template["spec"]
    )
    workload = type(workload)(name, again)
    question = {"objects": workload.objects, "pending": True}
    return Action(QUOTA, question, workload, admission=admission)

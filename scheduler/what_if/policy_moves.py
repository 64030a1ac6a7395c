"""Which running pods another configuration would have elsewhere.

Each pod is taken off its node and decided about once more, beside all others and after those
before it: the pods of the highest priority first, the oldest first within a priority. Nobody moves
a running pod; this is where each would go if it were created anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.pod_info import PodInfo, is_terminal, on_node
from cache.resources import MalformedObjectError
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.result import CONFIG
from scheduler.what_if.tally import Tally

if TYPE_CHECKING:
    from cache.objects import Pod
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.what_if.placer import Placer
    from scheduler.what_if.result import Part


def policy_moves(placer: Placer) -> Part:
    """Return which running pods would move by the profiles of a placer, and where.

    Pods of other schedulers, of DaemonSets and static ones are left alone.

    *Cost*: one decision for each pod. It reuses the verdicts on pods that are alike, so that some
    0.2 ms are left of it where those depend on nothing but the node.
    """
    tally = Tally(CONFIG, "")
    pods = [pod for pod in placer.cluster.pods.values() if _may_move(placer, pod)]
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    for pod in placer.in_order(pods):
        if placer.is_out_of_time():
            tally.undecided += 1
        else:
            _decide(placer, pod, tally)
    return tally.part()


def _may_move(placer: Placer, pod: Pod) -> bool:
    if not pod.spec.node_name or is_terminal(pod) or not placer.serves(pod):
        return False
    return pod.spec.node_name in placer.cluster.nodes and drain_kind(pod) in (
        DrainKind.MANAGED,
        DrainKind.UNMANAGED,
    )


def _decide(placer: Placer, pod: Pod, tally: Tally) -> None:
    key, node_name = f"{pod.metadata.namespace}/{pod.metadata.name}", pod.spec.node_name
    cache, snapshot = placer.cluster.cache, placer.snapshot
    try:
        known = cache.get_pod(pod.metadata.uid) or PodInfo(pod)
    except MalformedObjectError as error:
        tally.refuse(key, f"the pod cannot be read: {error}")
        return
    info = known.twin(on_node(pod, ""))
    cache.remove_uid(info.uid)
    goes_to = node_name
    try:
        cache.update_snapshot(snapshot)
        framework = placer.framework(pod)
        if not placer.cycle.searches_all(framework) and _is_best(placer, framework, info, pod):
            tally.stayed += 1
            return
        with placer.selector.preferring(snapshot.columns.row_of.get(node_name)):
            decision = placer.cycle.decide(
                framework, CycleState(placer.budget()), info, post_filters=False
            )
        if decision.is_over_budget:
            tally.undecided += 1
        elif not decision.is_placed:
            tally.refuse(key, decision.message())
        elif decision.node_name == node_name:
            tally.stayed += 1
        else:
            goes_to = decision.node_name
            tally.place(key, goes_to, node_name)
    except PluginError as error:
        tally.refuse(key, error.status.message)
    except AttemptBudgetExceededError:
        tally.undecided += 1
    finally:
        cache.add_pod(known if goes_to == node_name else known.twin(on_node(pod, goes_to)))


def _is_best(placer: Placer, framework: FrameworkRunner, info: PodInfo, pod: Pod) -> bool:
    """Return whether no node is better than the pod's own, which a decision may not look at."""
    row = placer.snapshot.columns.row_of.get(pod.spec.node_name)
    judgement = judge(framework, placer.snapshot, info, CycleState(placer.budget()))
    return row is not None and row in judgement.best_rows()

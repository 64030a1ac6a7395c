"""The changes of what a pod demands of a node: resources, taints, labels, ports."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from cache.label_selectors import compile_node_selector_term
from cache.objects import NodeSelectorTerm, Taint, Toleration
from cache.taints import NO_SCHEDULE, TAINT_NODE_UNSCHEDULABLE, is_tolerated
from plugins import names
from plugins.label_masks import term_mask
from plugins.node_resources_fit.needs import filter_needs
from plugins.required_node_affinity import required_node_selector
from plugins.taint_tables import HARD_EFFECTS, prepared_tolerations
from scheduler.relaxations.costs import COSTS, WHOLE_SELECTOR, Kind, toleration_cost
from scheduler.relaxations.option import LessOf, Option
from scheduler.relaxations.relaxation import Change
from scheduler.relaxations.unmet import MOST, Unmet, near_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.columns import NodesView
    from cache.objects import (
        Container,
        ContainerPort,
        NodeSelector,
        NodeSelectorRequirement,
        Pod,
        PodSpec,
    )
    from cache.pod_info import PodInfo
    from plugins.framework.results import BoolArray, IntArray
    from scheduler.relaxations.budget import Budget

    Expression: TypeAlias = tuple[str, NodeSelectorRequirement]

MAX_OF_A_KIND: Final = 24
"""Changes of one kind that are tried: of thousands, those that are closest to being enough."""

_FIT: Final = frozenset({names.NODE_RESOURCES_FIT, names.DYNAMIC_RESOURCES})
_TAINTS: Final = frozenset(
    {names.TAINT_TOLERATION, names.NODE_UNSCHEDULABLE, names.POD_TOPOLOGY_SPREAD}
)
_AFFINITY: Final = frozenset({names.NODE_AFFINITY, names.POD_TOPOLOGY_SPREAD})
_PORTS: Final = frozenset({names.NODE_PORTS})


# --- resources ------------------------------------------------------------------------------------


def shortfall(nodes: NodesView, resource: str, amount: int) -> IntArray:
    """Return how much of a resource each node lacks, int64 (n_nodes,); at most 0 for nothing."""
    if resource not in nodes.columns.resource_row:
        return np.full(len(nodes), amount, dtype=np.int64)
    free: IntArray = nodes.allocatable(resource) - nodes.requested(resource)
    return amount - free


def resource_options(
    info: PodInfo, nodes: NodesView, budget: Budget, *, is_crowded: bool = False
) -> Iterator[Option]:
    """Yield the options to request nothing of a resource that some node lacks.

    Parameters
    ----------
    is_crowded
        Whether pods that are only nominated for nodes keep it away: any resource may be scarce.
    """
    if is_crowded:
        for resource, amount in filter_needs(info)[:MAX_OF_A_KIND]:
            yield LessOf(resource, amount).giving_up(amount, _FIT)
        return
    unmet: Unmet[LessOf] = Unmet(len(nodes))
    for resource, amount in filter_needs(info):
        budget.check()
        met = shortfall(nodes, resource, amount) <= 0
        if not unmet.add(LessOf(resource, amount), met):
            break
    for less in unmet.near(MAX_OF_A_KIND):
        yield less.giving_up(less.requested, _FIT)


# --- taints ---------------------------------------------------------------------------------------


def toleration_options(info: PodInfo, nodes: NodesView, budget: Budget) -> Iterator[Option]:
    """Yield a toleration for each taint that one or two more of them would be enough for."""
    tolerated = prepared_tolerations(info.pod.spec.tolerations)
    ids = nodes.taint_set_ids
    nodes_with: dict[Taint, int] = {}
    cordoned = np.bincount(ids[nodes.unschedulable]) if nodes.unschedulable.any() else ()
    numbers = np.bincount(ids)
    for taint_set_id, taints in nodes.columns.taint_sets.items():
        budget.check()
        count = int(numbers[taint_set_id]) if taint_set_id < len(numbers) else 0
        if not count:
            continue
        hard = [each for each in taints if each.effect in HARD_EFFECTS]
        if taint_set_id < len(cordoned) and cordoned[taint_set_id]:
            hard.append(Taint(TAINT_NODE_UNSCHEDULABLE, effect=NO_SCHEDULE))
        missing = {each for each in hard if not is_tolerated(each, tolerated)}
        for taint in missing:
            nodes_with[taint] = nodes_with.get(taint, 0) + count
    ordered = sorted(nodes_with, key=lambda taint: (-nodes_with[taint], _taint_text(taint)))
    for taint in ordered[:MAX_OF_A_KIND]:
        yield toleration_option(taint)


def toleration_option(taint: Taint) -> Option:
    """Return the option of a toleration for exactly one taint."""
    toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)
    if not taint.value:
        toleration = Toleration(taint.key, "Exists", effect=taint.effect)
    subject = _taint_text(taint)
    change = Change(
        Kind.TOLERATION, "spec.tolerations", subject, "", subject, f"tolerate {subject}",
        toleration_cost(taint.key),
    )  # fmt: skip

    def edit(pod: Pod) -> Pod:
        return _with_spec(pod, tolerations=(*pod.spec.tolerations, toleration))

    return Option(change, edit, _TAINTS)


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


# --- labels of nodes ------------------------------------------------------------------------------


def selector_options(info: PodInfo, nodes: NodesView, budget: Budget) -> Iterator[Option]:
    """Yield the options to drop a key of the nodeSelector."""
    wanted = info.pod.spec.node_selector

    def masks() -> Iterator[tuple[str, BoolArray]]:
        known = nodes.columns.label_keys
        nowhere = np.zeros(len(nodes), dtype=np.bool_)
        for key, value in wanted.items():
            budget.check()
            if key in known:
                column, ids = nodes.label(key)
                value_id = column.id_of(value)
                yield key, nowhere if value_id is None else ids == value_id
            else:
                yield key, nowhere

    for key in near_of(masks(), len(nodes), MAX_OF_A_KIND):
        value = f"{key}={wanted[key]}"
        change = Change(
            Kind.NODE_SELECTOR, f"spec.nodeSelector[{key}]", key, wanted[key], "",
            f"drop {value} from the nodeSelector", COSTS[Kind.NODE_SELECTOR],
        )  # fmt: skip
        yield Option(change, partial(_without_key, key=key), _AFFINITY)


def _without_key(pod: Pod, key: str) -> Pod:
    left = {each: value for each, value in pod.spec.node_selector.items() if each != key}
    return _with_spec(pod, node_selector=left)


def affinity_options(info: PodInfo, nodes: NodesView, budget: Budget) -> Iterator[Option]:
    """Yield the options to drop one expression of the required node affinity."""
    required = required_node_selector(info.pod.spec)
    if required is None:
        return
    found: dict[int, Expression] = {}
    for index, term in enumerate(required.node_selector_terms):
        for path, expression in near_of(
            _expression_masks(index, term, nodes, budget), len(nodes), MAX_OF_A_KIND
        ):
            found.setdefault(id(expression), (path, expression))
        if len(found) >= MAX_OF_A_KIND:
            break
    for path, expression in list(found.values())[:MAX_OF_A_KIND]:
        values = ",".join(expression.values[:4]) + (",..." if len(expression.values) > 4 else "")
        shown = " ".join(filter(None, (expression.key, expression.operator, values)))
        change = Change(
            Kind.NODE_AFFINITY, path, expression.key, shown, "",
            f"drop {shown} from the required node affinity", COSTS[Kind.NODE_AFFINITY],
        )  # fmt: skip
        yield Option(change, partial(_without_expression, dropped=expression), _AFFINITY)


def _expression_masks(
    index: int, term: NodeSelectorTerm, nodes: NodesView, budget: Budget
) -> Iterator[tuple[Expression, BoolArray]]:
    where = (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        f".nodeSelectorTerms[{index}]"
    )
    for at, expression in enumerate(term.match_expressions):
        budget.check()
        alone = compile_node_selector_term(NodeSelectorTerm(match_expressions=(expression,)))
        yield (f"{where}.matchExpressions[{at}]", expression), term_mask(alone, nodes)
    for at, expression in enumerate(term.match_fields):
        budget.check()
        alone = compile_node_selector_term(NodeSelectorTerm(match_fields=(expression,)))
        yield (f"{where}.matchFields[{at}]", expression), term_mask(alone, nodes)


def _without_expression(pod: Pod, dropped: NodeSelectorRequirement) -> Pod:
    affinity = pod.spec.affinity
    required = required_node_selector(pod.spec)
    if affinity is None or affinity.node_affinity is None or required is None:
        return pod
    left = _selector_without(required, dropped)
    changed = replace(
        affinity.node_affinity, required_during_scheduling_ignored_during_execution=left
    )
    return _with_spec(pod, affinity=replace(affinity, node_affinity=changed))


def _selector_without(
    required: NodeSelector, dropped: NodeSelectorRequirement
) -> NodeSelector | None:
    """Return a node selector without an expression; None once a term demands nothing.

    An empty term would match no node: that is not what dropping its only expression means.
    """
    terms = []
    for term in required.node_selector_terms:
        expressions = tuple(each for each in term.match_expressions if each is not dropped)
        fields = tuple(each for each in term.match_fields if each is not dropped)
        size = len(term.match_expressions) + len(term.match_fields)
        if size != len(expressions) + len(fields):
            if not expressions and not fields:
                return None
            term = NodeSelectorTerm(expressions, fields)
        terms.append(term)
    return replace(required, node_selector_terms=tuple(terms))


def whole_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to drop all of a nodeSelector, or of a required node affinity.

    Only for those with more demands than changes are combined.
    """
    keys = len(info.pod.spec.node_selector)
    if keys > MOST:
        change = Change(
            Kind.NODE_SELECTOR, "spec.nodeSelector", "", f"{keys} keys", "",
            f"drop the nodeSelector with all of its {keys} keys", WHOLE_SELECTOR,
        )  # fmt: skip
        yield Option(change, partial(_with_spec, node_selector={}), _AFFINITY)
    required = required_node_selector(info.pod.spec)
    terms = () if required is None else required.node_selector_terms
    count = sum(len(term.match_expressions) + len(term.match_fields) for term in terms)
    if count > MOST:
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        change = Change(
            Kind.NODE_AFFINITY, path, "", f"{count} expressions", "",
            f"make the required node affinity with its {count} expressions a preference",
            WHOLE_SELECTOR,
        )  # fmt: skip
        yield Option(change, _without_affinity, _AFFINITY)


def _without_affinity(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    changed = replace(
        affinity.node_affinity, required_during_scheduling_ignored_during_execution=None
    )
    return _with_spec(pod, affinity=replace(affinity, node_affinity=changed))


# --- ports ----------------------------------------------------------------------------------------


def port_options(info: PodInfo, nodes: NodesView, budget: Budget) -> Iterator[Option]:
    """Yield the options to do without a host port."""
    count = 0
    spec = info.pod.spec
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for at, container in enumerate(containers):
            for index, port in enumerate(container.ports):
                if port.host_port > 0 and count < MAX_OF_A_KIND:
                    budget.check()
                    count += 1
                    yield _port_option(f"spec.{field}[{at}].ports[{index}].hostPort", port)


def _port_option(path: str, port: ContainerPort) -> Option:
    subject = f"{port.host_port}/{port.protocol or 'TCP'}"
    change = Change(
        Kind.HOST_PORT, path, subject, str(port.host_port), "",
        f"use another host port than {subject}", COSTS[Kind.HOST_PORT],
    )  # fmt: skip
    return Option(change, partial(_without_port, dropped=port), _PORTS)


def _without_port(pod: Pod, dropped: ContainerPort) -> Pod:
    def without(container: Container) -> Container:
        return replace(container, ports=tuple(e for e in container.ports if e is not dropped))

    spec = pod.spec
    return _with_spec(
        pod,
        containers=tuple(map(without, spec.containers)),
        init_containers=tuple(map(without, spec.init_containers)),
    )


def _with_spec(pod: Pod, **changes: object) -> Pod:
    spec: PodSpec = replace(pod.spec, **changes)
    return replace(pod, spec=spec)

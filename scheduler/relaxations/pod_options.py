"""The changes of what a pod demands besides: other pods, spreading, volumes, claims, labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plugins import names
from plugins.pod_topology_spread.args import DO_NOT_SCHEDULE
from scheduler.relaxations.costs import COSTS, DROPPED_CONSTRAINT, WHOLE_SELECTOR, Kind
from scheduler.relaxations.node_options import MAX_OF_A_KIND
from scheduler.relaxations.option import MoreSkew, Option
from scheduler.relaxations.relaxation import Change
from scheduler.relaxations.unmet import MOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.objects import Container, Pod, PodAffinityTerm, TopologySpreadConstraint, Volume
    from cache.pod_info import PodInfo
    from cache.storage import Storage

_PODS: Final = frozenset({names.INTER_POD_AFFINITY})
_SPREAD: Final = frozenset({names.POD_TOPOLOGY_SPREAD})
_LABELS: Final = _PODS | _SPREAD
_VOLUMES: Final = frozenset(
    {
        names.VOLUME_BINDING, names.VOLUME_ZONE, names.VOLUME_RESTRICTIONS,
        names.NODE_VOLUME_LIMITS, names.NODE_AFFINITY,
    }
)  # fmt: skip
_CLAIMS: Final = frozenset({names.DYNAMIC_RESOURCES})

_PLACE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


# --- other pods -----------------------------------------------------------------------------------


def pod_term_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to drop a required term of pod affinity or pod anti-affinity."""
    affinity = info.pod.spec.affinity
    if affinity is None:
        return
    for kind, field, terms in (
        (Kind.POD_AFFINITY, "pod_affinity", affinity.pod_affinity),
        (Kind.POD_ANTI_AFFINITY, "pod_anti_affinity", affinity.pod_anti_affinity),
    ):
        required = terms and terms.required_during_scheduling_ignored_during_execution
        for index, term in enumerate((required or ())[:MAX_OF_A_KIND]):
            words = "affinity to" if kind is Kind.POD_AFFINITY else "anti-affinity to"
            shown = f"{_term_text(term)} by {term.topology_key}"
            change = Change(
                kind, f"spec.affinity.{kind}.{_REQUIRED}[{index}]", shown, shown, "",
                f"make the {words} {shown} a preference", COSTS[kind],
            )  # fmt: skip
            yield Option(change, partial(_without_term, field=field, dropped=term), _PODS)


def whole_term_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to make all required terms of a kind preferences, where there are many."""
    affinity = info.pod.spec.affinity
    if affinity is None:
        return
    for kind, field, terms, words in (
        (Kind.POD_AFFINITY, "pod_affinity", affinity.pod_affinity, "pod affinity"),
        (Kind.POD_ANTI_AFFINITY, "pod_anti_affinity", affinity.pod_anti_affinity, "anti-affinity"),
    ):
        required = terms and terms.required_during_scheduling_ignored_during_execution
        count = len(required or ())
        if count > MOST:
            change = Change(
                kind, f"spec.affinity.{kind}.{_REQUIRED}", "", f"{count} terms", "",
                f"make all {count} required terms of {words} preferences", WHOLE_SELECTOR,
            )  # fmt: skip
            yield Option(change, partial(_without_term, field=field, dropped=None), _PODS)


def _term_text(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    if selector is None:
        return "no pods"
    shown = [f"{key}={value}" for key, value in selector.match_labels.items()]
    shown += [
        " ".join(filter(None, (each.key, each.operator, ",".join(each.values[:4]))))
        for each in selector.match_expressions[:4]
    ]
    return f"pods with {', '.join(shown[:4])}" if shown else "all pods"


def _without_term(pod: Pod, field: str, dropped: PodAffinityTerm | None) -> Pod:
    """Return the pod without a required term, or without any."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    terms = getattr(affinity, field)
    left = tuple(
        each
        for each in terms.required_during_scheduling_ignored_during_execution
        if dropped is not None and each is not dropped
    )
    changed = replace(terms, required_during_scheduling_ignored_during_execution=left)
    return _with_spec(pod, affinity=replace(affinity, **{field: changed}))


def label_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to drop a label of the pod, by which terms and constraints select it."""
    for key, value in list(info.labels.items())[:MAX_OF_A_KIND]:
        change = Change(
            Kind.LABEL, f"metadata.labels[{key}]", key, value, "",
            f"drop its label {key}={value}", COSTS[Kind.LABEL],
        )  # fmt: skip
        yield Option(change, partial(_without_label, key=key), _LABELS)


def _without_label(pod: Pod, key: str) -> Pod:
    left = {each: value for each, value in pod.metadata.labels.items() if each != key}
    return replace(pod, metadata=replace(pod.metadata, labels=left))


# --- spreading ------------------------------------------------------------------------------------


def spread_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to make a spread constraint of the pod a preference."""
    hard = [
        (index, each)
        for index, each in enumerate(info.pod.spec.topology_spread_constraints)
        if each.when_unsatisfiable == DO_NOT_SCHEDULE
    ]
    for index, constraint in hard[:MAX_OF_A_KIND]:
        key = constraint.topology_key
        change = Change(
            Kind.MAX_SKEW, f"spec.topologySpreadConstraints[{index}].whenUnsatisfiable", key,
            DO_NOT_SCHEDULE, "ScheduleAnyway", f"make the spreading over {key} a preference",
            DROPPED_CONSTRAINT,
        )  # fmt: skip
        edit = partial(_without_constraint, dropped=constraint)
        yield Option(change, edit, _SPREAD, tries=MoreSkew(constraint, index))


def _without_constraint(pod: Pod, dropped: TopologySpreadConstraint) -> Pod:
    """Return the pod with a constraint that is only a preference.

    Not without it: a pod without any constraint would get the default constraints of the profile.
    """
    constraints = tuple(
        replace(each, when_unsatisfiable="ScheduleAnyway") if each is dropped else each
        for each in pod.spec.topology_spread_constraints
    )
    return _with_spec(pod, topology_spread_constraints=constraints)


# --- volumes and claims ---------------------------------------------------------------------------


def volume_options(info: PodInfo, storage: Storage) -> Iterator[Option]:
    """Yield the options of a volume elsewhere, and to do without a volume."""
    for index, volume in enumerate(info.pod.spec.volumes[:MAX_OF_A_KIND]):
        where, claim = f"spec.volumes[{index}]", _claim_of(info, volume)
        if claim:
            yield from _moved_volume(info, claim, storage)
        text = f"do without the volume {volume.name}" + (f" (claim {claim})" if claim else "")
        change = Change(Kind.VOLUME, where, volume.name, volume.name, "", text, COSTS[Kind.VOLUME])
        yield Option(change, partial(_without_volume, name=volume.name), _VOLUMES)


def _claim_of(info: PodInfo, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{info.name}-{volume.name}" if volume.ephemeral is not None else ""


def _moved_volume(info: PodInfo, claim_name: str, storage: Storage) -> Iterator[Option]:
    claim = storage.claim(info.namespace, claim_name)
    bound = None if claim is None else storage.volume(claim.spec.volume_name)
    if bound is None:
        return
    labels = bound.metadata.labels
    places = [f"{key}={labels[key]}" for key in _PLACE_LABELS if key in labels]
    affinity = bound.spec.node_affinity
    required = None if affinity is None else affinity.required
    for term in () if required is None else required.node_selector_terms[:2]:
        places += [
            f"{each.key} {each.operator} {','.join(each.values[:4])}"
            for each in term.match_expressions[:4]
        ]
    if not places:
        return
    name = bound.metadata.name
    left = {key: value for key, value in labels.items() if key not in _PLACE_LABELS}
    anywhere = replace(
        bound,
        metadata=replace(bound.metadata, labels=left),
        spec=replace(bound.spec, node_affinity=None),
    )
    before = "; ".join(dict.fromkeys(places))
    change = Change(
        Kind.VOLUME_PLACE, "spec.nodeAffinity", name, before, "",
        f"have the volume {name} of claim {claim_name} there (it is bound to {before})",
        COSTS[Kind.VOLUME_PLACE],
    )  # fmt: skip
    yield Option(change, _as_it_is, _VOLUMES, volume=anywhere)


def _as_it_is(pod: Pod) -> Pod:
    return pod


def _without_volume(pod: Pod, name: str) -> Pod:
    return _with_spec(pod, volumes=tuple(each for each in pod.spec.volumes if each.name != name))


def claim_options(info: PodInfo) -> Iterator[Option]:
    """Yield the options to do without a claim of devices."""
    for index, claim in enumerate(info.pod.spec.resource_claims[:MAX_OF_A_KIND]):
        change = Change(
            Kind.RESOURCE_CLAIM, f"spec.resourceClaims[{index}]", claim.name, claim.name, "",
            f"do without the resource claim {claim.name}", COSTS[Kind.RESOURCE_CLAIM],
        )  # fmt: skip
        yield Option(change, partial(_without_claim, name=claim.name), _CLAIMS)


def _without_claim(pod: Pod, name: str) -> Pod:
    def without(container: Container) -> Container:
        uses = tuple(each for each in container.resources.claims if each.name != name)
        return replace(container, resources=replace(container.resources, claims=uses))

    spec = pod.spec
    return _with_spec(
        pod,
        resource_claims=tuple(each for each in spec.resource_claims if each.name != name),
        containers=tuple(map(without, spec.containers)),
        init_containers=tuple(map(without, spec.init_containers)),
    )


def _with_spec(pod: Pod, **changes: object) -> Pod:
    return replace(pod, spec=replace(pod.spec, **changes))

"""Decisions as lists of plain values: what is written, and what two decisions are compared by."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from plugins.framework.status import Status
from scheduler.decision.decision import NO_DIAGNOSIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.decision.decision import Decision, Diagnosis
    from scheduler.pod_groups.plan import GroupPlan
    from scheduler.pod_groups.preemption import GroupVictims


def decision_form(decision: Decision) -> list[Any]:
    """Return all of a decision but its number, its times and its pod."""
    return [
        decision.node_name,
        decision.score,
        decision.feasible_nodes,
        decision.evaluated_nodes,
        status_form(decision.status),
        decision.nominated_node_name,
        decision.post_filtered,
        decision.ran_out_at,
        None if decision.diagnosis is NO_DIAGNOSIS else _diagnosis_form(decision.diagnosis),
    ]


NODE, SCORE, FEASIBLE, EVALUATED, STATUS, NOMINATED, POST_FILTERED, RAN_OUT_AT, DIAGNOSIS = range(9)
"""Places in the form of a decision."""


def status_form(status: Status) -> list[Any]:
    """Return a status."""
    return [int(status.code), list(status.reasons), status.plugin]


def _diagnosis_form(diagnosis: Diagnosis) -> list[Any]:
    def optional(status: Status | None) -> list[Any] | None:
        return None if status is None else status_form(status)

    return [
        diagnosis.num_nodes,
        optional(diagnosis.pre_filter),
        optional(diagnosis.absent),
        [
            [status_form(group.status), len(group.node_names), names_digest(group.node_names)]
            for group in diagnosis.rejected
        ],
        diagnosis.post_filter_message,
        sorted(diagnosis.narrowing_plugins),
        diagnosis.by_extenders,
    ]


def names_digest(names: Sequence[str]) -> bytes:
    """Return what tells one set of names from another. Names have no line break."""
    return hashlib.blake2b("\n".join(sorted(names)).encode(), digest_size=8).digest()


def plan_form(plan: GroupPlan) -> list[Any]:
    """Return all of a plan."""
    return [
        plan.verdict.value,
        status_form(plan.status),
        plan.fitting,
        plan.counted,
        plan.domain,
        plan.preferred_domain,
        [
            [each.decision.info.uid, each.decision.node_name, each.decision.score]
            for each in plan.placed
        ],
        [[uid, decision_form(decision)] for uid, decision in sorted(plan.refused.items())],
    ]


def victims_form(found: GroupVictims | Status) -> list[Any]:
    """Return the victims for a group, or why there are none."""
    if isinstance(found, Status):
        return ["none", status_form(found)]
    return [
        "victims",
        [info.uid for info in found.pods],
        found.pdb_violations,
        [[info.uid, node_name] for info, node_name in found.members],
        found.priority,
        sorted(str(key) for key in found.gangs),
        found.gang_members,
        found.domain,
    ]

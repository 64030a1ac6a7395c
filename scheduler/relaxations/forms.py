"""The text form and the JSON form of relaxations.

The JSON form is::

    {"groups": [{"reasons": [{"plugin": p, "reasons": [...]}], "nodes": n, "names": [...],
                 "relaxations": [{"changes": [{"kind": k, "path": p, "subject": s, "from": a,
                                               "to": b, "text": t, "cost": c}],
                                  "cost": c, "nodes": n, "names": [...], "victims": [...],
                                  "numVictims": n}]}],
     "otherGroups": n,
     "newNode": null | {"like": name} | {"allocatable": {...}, "labels": {...}},
     "deciding": null | {"node": name, "total": n, "runnerUp": name, "runnerUpTotal": n,
                         "margins": {plugin: n}, "decidedBy": [plugin], "instead":
                         [{"kind": k, "subject": s, "text": t, "weight": w}]},
     "notes": [...], "verifications": n, "cpuSeconds": s}

``groups`` and ``newNode`` are those of a refused pod, ``deciding`` of one that would be placed. In
each group the cheapest relaxation is first; one without changes needs only its victims to go, which
preemption does by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.relaxations.relaxation import (
        Change,
        Deciding,
        Instead,
        NewNode,
        NodeGroup,
        Relaxation,
        Relaxations,
    )

MAX_NAMES: Final = 3


# --- JSON -----------------------------------------------------------------------------------------


def relaxations_data(found: Relaxations) -> dict[str, Any]:
    """Return plain data for JSON."""
    return {
        "groups": [_group_data(group) for group in found.groups],
        "otherGroups": found.num_other_groups,
        "newNode": None if found.new_node is None else _new_node_data(found.new_node),
        "deciding": None if found.deciding is None else _deciding_data(found.deciding),
        "notes": found.notes,
        "verifications": found.verifications,
        "cpuSeconds": round(found.cpu_s, 3),
    }


def _group_data(group: NodeGroup) -> dict[str, Any]:
    return {
        "reasons": [{"plugin": each.plugin, "reasons": each.reasons} for each in group.reasons],
        "nodes": group.num_nodes,
        "names": group.nodes,
        "relaxations": [_relaxation_data(each) for each in group.relaxations],
    }


def _relaxation_data(relaxation: Relaxation) -> dict[str, Any]:
    return {
        "changes": [_change_data(change) for change in relaxation.changes],
        "cost": round(relaxation.cost, 3),
        "nodes": relaxation.num_nodes,
        "names": relaxation.nodes,
        "victims": relaxation.victims,
        "numVictims": relaxation.num_victims,
    }


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "path": change.path,
        "subject": change.subject,
        "from": change.before,
        "to": change.after,
        "text": change.text,
        "cost": round(change.cost, 3),
    }


def _new_node_data(new_node: NewNode) -> dict[str, Any]:
    if new_node.like:
        return {"like": new_node.like}
    return {"allocatable": dict(new_node.allocatable), "labels": dict(new_node.labels)}


def _deciding_data(deciding: Deciding) -> dict[str, Any]:
    return {
        "node": deciding.node,
        "total": deciding.total,
        "runnerUp": deciding.runner_up,
        "runnerUpTotal": deciding.runner_up_total,
        "margins": dict(deciding.margins or {}),
        "decidedBy": deciding.decided_by,
        "instead": [_instead_data(each) for each in deciding.instead],
    }


def _instead_data(instead: Instead) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": instead.kind, "subject": instead.subject, "text": instead.text}
    return data | {"weight": instead.value} if instead.kind == "weight" else data


# --- text -----------------------------------------------------------------------------------------


def relaxations_text(found: Relaxations) -> str:
    """Return lines for a terminal; empty if there is nothing to say."""
    lines = list(_lines(found))
    return "".join(f"{line}\n" for line in lines)


def _lines(found: Relaxations) -> Iterator[str]:
    if found.deciding is not None:
        yield from _deciding_lines(found.deciding)
    elif found.groups:
        yield "What would help, by the filters' verdict on the changed pod:"
        yield from _groups_lines(found)
    if found.new_node is not None:
        yield f"A node that would do: {_new_node_text(found.new_node)}"
    yield from found.notes


def _groups_lines(found: Relaxations) -> Iterator[str]:
    helped = [group for group in found.groups if group.relaxations]
    for group in helped:
        yield from _group_lines(group)
    left = [group for group in found.groups if not group.relaxations]
    if left:
        nodes = sum(group.num_nodes for group in left)
        what = "too much is in the way for one change or two"
        if found.notes:
            what = "nothing was found"
        yield f"{nodes:7}  other nodes: {what}" if helped else f"{nodes:7}  nodes: {what}"
    if found.num_other_groups:
        yield f"{'':9}{found.num_other_groups} more groups of nodes were not looked at"


def _group_lines(group: NodeGroup) -> Iterator[str]:
    reasons = "; ".join(f"{', '.join(each.reasons)} [{each.plugin}]" for each in group.reasons)
    yield f"{group.num_nodes:7}  {reasons}"
    for at, relaxation in enumerate(group.relaxations):
        yield f"{'':11}{'or ' if at else ''}{_relaxation_text(relaxation, group.num_nodes)}"


def _relaxation_text(relaxation: Relaxation, num_nodes: int) -> str:
    what = " and ".join(change.text for change in relaxation.changes)
    if not what:
        what = "nothing has to change: preemption makes room"
    where = _where(relaxation, num_nodes)
    text = f"{what}: {where}"
    if relaxation.victims:
        text += f", without {_some(relaxation.victims, relaxation.num_victims)}"
    elif relaxation.num_victims:
        text += f", without {relaxation.num_victims} other pods"
    return text


def _where(relaxation: Relaxation, num_nodes: int) -> str:
    if not relaxation.nodes:
        count = relaxation.num_nodes
        return "1 node" if count == 1 else f"{count} nodes"
    if num_nodes > MAX_NAMES and relaxation.num_nodes == num_nodes:
        return "all of them"
    return _some(relaxation.nodes, relaxation.num_nodes)


def _some(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    left = count - min(len(names), MAX_NAMES)
    return f"{shown} and {left} more" if left > 0 else shown


def _new_node_text(new_node: NewNode) -> str:
    if new_node.like:
        return f"one more like {new_node.like}, empty but for its DaemonSets"
    amounts = ", ".join(f"{name} {amount}" for name, amount in new_node.allocatable.items())
    labels = ", ".join(f"{key}={value}" for key, value in sorted(new_node.labels.items()))
    text = f"of a new shape, with {amounts or 'room for one pod'}"
    return f"{text} and the labels {labels}" if labels else text


def _deciding_lines(deciding: Deciding) -> Iterator[str]:
    if not deciding.runner_up:
        yield f"{deciding.node} is the only node that can run it: no score decided."
        return
    gap = deciding.total - deciding.runner_up_total
    margins = ", ".join(f"{name} {value:+}" for name, value in (deciding.margins or {}).items())
    behind = f"{deciding.node} leads {deciding.runner_up} by {gap}"
    if gap < 0:
        behind = f"{deciding.node} is behind {deciding.runner_up} by {-gap} now"
    elif not gap:
        behind = f"{deciding.node} and {deciding.runner_up} are equally good"
    yield f"{behind} ({margins})" if margins else behind
    if deciding.decided_by:
        yield f"It would not have won without {' or without '.join(deciding.decided_by)}."
    if deciding.instead and gap >= 0:
        yield f"{deciding.runner_up} would have won with:"
        for each in deciding.instead:
            yield f"  {each.text}"

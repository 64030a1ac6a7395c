"""What the hints of a plugin say, whichever of its registrations say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.framework.queueing_hints import GroupHint

if TYPE_CHECKING:
    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin


def ask(
    plugin: Plugin, resource: Resource, waiting: Pod, old: Any, new: Any, *, additions: bool = False
) -> Hint:
    """Return whether any hint of the plugin says Queue: of kube-scheduler's, or of the others."""
    happened = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    for each in plugin.events_to_register():
        hint = each.hint
        is_addition = isinstance(hint, GroupHint) and hint.is_addition
        concerned = each.event.resource is resource and each.event.action & happened
        if concerned and is_addition is additions:
            assert hint is not None
            if hint(waiting, old, new) is Hint.QUEUE:
                return Hint.QUEUE
    return Hint.SKIP


def listens_to(plugin: Plugin) -> dict[Resource, Action]:
    """Return what a plugin wants to hear of, by resource."""
    wanted: dict[Resource, Action] = {}
    for each in plugin.events_to_register():
        wanted[each.event.resource] = wanted.get(each.event.resource, Action(0)) | each.event.action
    return wanted

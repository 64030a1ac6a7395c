"""Run a profile's PreBind plugins, in parallel where they allow it.

*Source*: pkg/scheduler/framework/runtime/framework.go, RunPreBindPreFlights and RunPreBindPlugins
(1.36).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plugins.framework.status import SKIP, SUCCESS, Code, Status, failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import PreBindPlugin

    PreBind: TypeAlias = Callable[[CycleState, PodInfo, str], Awaitable[Status]]
    Measured: TypeAlias = tuple[PreBindPlugin, PreBind]


def run_pre_flights(
    plugins: Sequence[Measured], state: CycleState, info: PodInfo, node_name: str
) -> Status:
    """Ask every PreBind whether it has something to do; what they say is kept in ``state``.

    Returns
    -------
    Success when any has, Skip when none has, an Error when one fails or answers with a code that
    has no meaning here.
    """
    answer = SKIP
    for plugin, _ in plugins:
        name = plugin.name
        try:
            flight = plugin.pre_bind_pre_flight(state, info, node_name)
            status = flight.status
        except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
            return failure(error, f'running PreBindPreFlight "{name}"').by(name)
        if flight.allow_parallel:
            state.parallel_pre_bind.add(name)
        if status.is_success:
            answer = SUCCESS
            state.waits_in_pre_bind |= not flight.is_brief
        elif status.code is Code.SKIP:
            state.skip_pre_bind.add(name)
        elif status.code is Code.ERROR:
            why = f'running PreBindPreFlight "{name}": {status.message}'
            return Status(Code.ERROR, (why,), name, status.error)
        else:
            why = f"PreBindPreFlight {name} returned {status.code.title}, which is unsupported"
            return Status(Code.ERROR, (why,), name)
    return answer


async def run_pre_binds(
    plugins: Sequence[Measured], state: CycleState, info: PodInfo, node_name: str
) -> Status:
    """Let the plugins prepare the binding, after :func:`run_pre_flights` with the same ``state``.

    Plugins that stand next to each other and allow others beside them start together; when one of
    them fails the rest are cancelled and their answers are not read.

    Parameters
    ----------
    plugins
        Each with the call that measures its ``pre_bind``.
    """
    for group in _groups(plugins, state):
        if len(group) == 1:
            status = await _pre_bind(*group[0], state, info, node_name)
        else:
            status = await _pre_bind_together(group, state, info, node_name)
        if not status.is_success:
            return status
    return SUCCESS


def _groups(plugins: Sequence[Measured], state: CycleState) -> list[list[Measured]]:
    """Return the plugins that have something to do, in groups that may run at one time."""
    groups: list[list[Measured]] = []
    together: list[Measured] | None = None
    for measured in plugins:
        plugin = measured[0]
        skipped = plugin.name in state.skip_pre_bind
        if plugin.name in state.parallel_pre_bind:
            if skipped:
                continue
            if together is None:
                together = []
                groups.append(together)
            together.append(measured)
        else:
            # One that wants to be alone parts its neighbours even when it has nothing to do.
            together = None
            if not skipped:
                groups.append([measured])
    return groups


async def _pre_bind(
    plugin: PreBindPlugin, pre_bind: PreBind, state: CycleState, info: PodInfo, node_name: str
) -> Status:
    try:
        status = await pre_bind(state, info, node_name)
    except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
        status = failure(error, f'running PreBind plugin "{plugin.name}"')
    return status.by(plugin.name)


async def _pre_bind_together(
    group: Sequence[Measured], state: CycleState, info: PodInfo, node_name: str
) -> Status:
    # Of several that run beside each other nobody can tell what each of them takes.
    tasks = [
        asyncio.ensure_future(_pre_bind(each, each.pre_bind, state, info, node_name))
        for each, _ in group
    ]
    try:
        for done in asyncio.as_completed(tasks):
            status = await done
            if not status.is_success:
                return status
    finally:
        for task in tasks:
            task.cancel()
        # The pod is undone next: nobody may still be at work on it then.
        await asyncio.gather(*tasks, return_exceptions=True)
    return SUCCESS

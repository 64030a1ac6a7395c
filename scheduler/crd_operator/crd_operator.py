"""The operator as the app sees it: made, started, waited for at the start, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from scheduler.client.credentials import Credentials
    from scheduler.client.transport import Transport
    from scheduler.crd_operator.options import OperatorOptions
    from scheduler.metrics import Metrics
    from scheduler.policy.policies import Policies


class CrdOperator:
    """Takes SchedulingProfiles over, and writes into them what became of them.

    Parameters
    ----------
    loop
        The I/O loop.
    transport
        The way to the API server for lists and statuses, behind its write fence.
    load_credentials
        Called on kopf's own loop: kopf has connections of its own.
    policies
        Who compiles and swaps.
    may_write
        Whether this process leads; asked from the loop. Only the leader writes status.
    shadow_report
        What the shadow run of a SchedulingProfile has found so far, as plain data for its status;
        None when there is nothing. Asked from the loop, must be quick.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: Transport,
        load_credentials: Callable[[], Awaitable[Credentials]],
        policies: Policies,
        options: OperatorOptions,
        metrics: Metrics,
        *,
        may_write: Callable[[], bool] = lambda: True,
        shadow_report: Callable[[str], Mapping[str, object] | None] = lambda _: None,
    ) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Begin to list, to watch and to write."""
        raise NotImplementedError

    async def wait_first_list(self, timeout_s: float) -> bool:
        """Wait until the SchedulingProfiles that are there have been given to the policies.

        Return False when time is up first: then they come later, while pods are being scheduled.
        At once true where the kind is not installed.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """End all of it; what runs goes on running."""
        raise NotImplementedError

"""All informers of a process: one for each resource and selector, however many ask for it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from scheduler.informers.informer import Informer
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.vital import no_death, watch_task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.client.transport import Transport
    from scheduler.informers.informer import InformerStatistics
    from scheduler.informers.watch_events import ObjectKind, T
    from scheduler.vital import OnDeath


class InformerFactory:
    """Make informers, run them and stop them.

    Parameters
    ----------
    transport
        How to reach the API server; shared by all informers.
    options
        How the informers read the API server.
    on_death
        Called with the name of an informer that ends without being stopped.

    Concurrency: loop-confined, but for `has_synced`, `staleness_s` and `statistics`.
    """

    def __init__(
        self,
        transport: Transport,
        options: ReflectorOptions | None = None,
        on_death: OnDeath = no_death,
    ) -> None:
        self._on_death = on_death
        self._transport = transport
        self._options = options if options is not None else ReflectorOptions()
        self._informers: dict[tuple[str, str | None], Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False

    def informer(
        self,
        kind: ObjectKind[T],
        *,
        field_selector: str | None = None,
        transform: Callable[[T], T] | None = None,
    ) -> Informer[T]:
        """Return the informer of `kind` with that selector, making it if it is the first call.

        After `start`, a new informer starts at once.

        Raises
        ------
        ValueError
            There is one already, with another `transform`.
        """
        key = (kind.name, field_selector)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self._transport,
                kind,
                field_selector=field_selector,
                transform=transform,
                options=self._options,
                on_restore=partial(self._restored, key),
            )
            self._informers[key] = informer
            if self._started:
                self._run(informer)
        elif transform is not None and transform is not informer.transform:
            raise ValueError(f"{kind.name} already have an informer with another transform")
        return cast("Informer[T]", informer)

    # --- running ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all informers on the running loop. Starting twice changes nothing."""
        if not self._started:
            self._started = True
            for informer in self._informers.values():
                self._run(informer)

    async def wait_synced(self) -> None:
        """Return once every informer has taken in and delivered a whole list."""
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    async def stop(self) -> None:
        """Stop all informers and wait until they have; stores stay as they are."""
        tasks, self._tasks = self._tasks, []
        self._started = False
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _restored(self, shown_by: tuple[str, str | None]) -> None:
        """Have all other informers list anew: etcd was restored, and one of them has shown it."""
        for key, informer in self._informers.items():
            if key != shown_by:
                informer.expect_restore()

    def _run(self, informer: Informer[Any]) -> None:
        task = asyncio.get_running_loop().create_task(
            informer.run(), name=f"informer-{informer.kind.name}"
        )
        watch_task(task, self._on_death)
        self._tasks.append(task)

    # --- what can be asked --------------------------------------------------------------------

    @property
    def has_synced(self) -> bool:
        """Whether every informer has taken in and delivered a whole list."""
        return all(informer.has_synced for informer in list(self._informers.values()))

    def staleness_s(self, kind: ObjectKind[Any]) -> float:
        """Return seconds since the server was last heard of on the most silent watch of `kind`.

        Raises
        ------
        KeyError
            Nobody has asked for an informer of `kind`.
        """
        now = self._options.clock()
        values = [
            informer.staleness_s(now)
            for (name, _), informer in list(self._informers.items())
            if name == kind.name
        ]
        if not values:
            raise KeyError(kind.name)
        return max(values)

    def statistics(self) -> Mapping[str, InformerStatistics]:
        """Return the counts of each informer by resource, with the selector where there is one."""
        return {
            name if selector is None else f"{name}?{selector}": informer.statistics()
            for (name, selector), informer in list(self._informers.items())
        }

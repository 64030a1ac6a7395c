"""Create the informers of a process: one for each resource, shared by all its users."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from scheduler.informers.informer import Informer
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.process.vital import no_death, watch_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scheduler.client.transport import Transport
    from scheduler.informers.watch_events import ObjectKind, T
    from scheduler.process.vital import OnDeath


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

    *Concurrency*: loop-confined, but for `all`.
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
        self._informers: dict[str, Informer[Any]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started = False

    def informer(
        self, kind: ObjectKind[T], *, transform: Callable[[T], T] | None = None
    ) -> Informer[T]:
        """Return the informer of `kind`, making it if it is the first call.

        After `start`, a new informer starts at once.

        Raises
        ------
        ValueError
            There is one already, with another `transform`.
        """
        informer = self._informers.get(kind.name)
        if informer is None:
            informer = Informer(
                self._transport,
                kind,
                transform=transform,
                options=self._options,
                on_restore=partial(self._restored, kind.name),
            )
            self._informers[kind.name] = informer
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
        tasks, self._tasks = self._tasks, {}
        self._started = False
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def remove(self, name: str) -> None:
        """Stop the informer of one resource, and report all that it has as deleted."""
        informer = self._informers.pop(name)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        informer.forget_all()

    def _restored(self, shown_by: str) -> None:
        """Have all other informers list anew: etcd was restored, and one of them has shown it."""
        for name, informer in self._informers.items():
            if name != shown_by:
                informer.expect_restore()

    def _run(self, informer: Informer[Any]) -> None:
        task = asyncio.get_running_loop().create_task(
            informer.run(), name=f"informer-{informer.kind.name}"
        )
        watch_task(task, self._on_death)
        self._tasks[informer.kind.name] = task

    # --- what can be asked --------------------------------------------------------------------

    @property
    def all(self) -> Sequence[Informer[Any]]:
        """Each informer once."""
        return tuple(self._informers.values())


# --- of the watches of several factories, by resource ---------------------------------------------


def staleness_s(informers: Iterable[Informer[Any]], now_s: float) -> dict[str, float]:
    """Return the seconds since the most silent watch of each resource last said anything."""
    silent_s: dict[str, float] = {}
    for each in informers:
        name = each.kind.name
        silent_s[name] = max(silent_s.get(name, 0.0), each.staleness_s(now_s))
    return silent_s


def relists(informers: Iterable[Informer[Any]]) -> dict[str, float]:
    """Return the lists of each resource after the first one of each watch."""
    lists: Counter[str] = Counter()
    for each in informers:
        lists[each.kind.name] += max(each.statistics().lists - 1, 0)
    return dict(lists)


def restores(informers: Iterable[Informer[Any]]) -> dict[str, float]:
    """Return the lists of each resource from before what was known that were believed."""
    rewinds: Counter[str] = Counter()
    for each in informers:
        rewinds[each.kind.name] += each.statistics().rewinds
    return dict(rewinds)

"""A server on listeners of its own, as the tests of serving want it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.metrics import Metrics
from scheduler.serving.health import Health
from scheduler.serving.listener import listeners
from scheduler.serving.server import Server

if TYPE_CHECKING:
    from scheduler.serving.options import ServingOptions


class OwnServer(Server):
    """A server that knows where it is reached."""

    def __init__(self, options: ServingOptions, metrics=None, health=None, **more) -> None:
        self.listeners = listeners(options)
        super().__init__(options, self.listeners, metrics or Metrics(), health or Health(), **more)

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(listener.url for listener in self.listeners)

    @property
    def address(self) -> str:
        return self.listeners[-1].address

"""Listings of builders' objects, and a server of them that tests can ask."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, web

from plugins.registry import PLUGINS
from scheduler.config import default_config, running_profiles
from scheduler.ui.desk import Desk
from scheduler.ui.guard import Guard
from scheduler.ui.leader_sources import LeaderSources
from scheduler.ui.listing import Listing, Origin, Policy, listing_of
from scheduler.ui.offline_sources import OfflineSources
from scheduler.ui.pending_series import PendingSeries
from scheduler.ui.server import PageServer
from tests.scheduler.explain.cluster_files import as_object, raw

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scheduler.ui.leader_sources import Asks
    from tests.builders import NodeBuilder, PodBuilder

NOW_S = 1_800_000_000.0


def policy() -> Policy:
    return Policy(running_profiles(default_config()), PLUGINS, "default")


def listing(
    *objects: NodeBuilder | PodBuilder | dict[str, Any], now_s: float = NOW_S, namespace: str = ""
) -> Listing:
    plain = [each if isinstance(each, dict) else as_object(each) for each in objects]
    origin = Origin("https://cluster", namespace)
    return listing_of([(raw(each), "") for each in plain], policy(), now_s, origin)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


class Browser:
    """Asks a server on loopback, as a browser on its page would."""

    def __init__(self, session: ClientSession, port: int, guard: Guard) -> None:
        self._session = session
        self.origin = f"http://127.0.0.1:{port}"
        self.root = f"{self.origin}/{guard.token}"

    async def get(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.get(
            f"{self.root}{path}", headers=named, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers, await response.text())

    async def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        named = {"Origin": self.origin, **headers}
        async with self._session.post(self.root + path, data=form, headers=named) as response:
            return Answer(response.status, response.headers, await response.text())


def visit(
    shown: Listing, do: Callable[[Browser], Awaitable[Any]], leader: Asks | None = None
) -> Any:
    """Serve a listing, and perhaps a leader's answers; return what a visitor makes of it."""
    return asyncio.run(_visit(shown, do, leader))


async def _visit(
    shown: Listing, do: Callable[[Browser], Awaitable[Any]], leader: Asks | None
) -> Any:
    desk = Desk(shown)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    guard = Guard(port)
    own = OfflineSources(desk)
    asked = None if leader is None else LeaderSources(leader, own, shown.origin.namespace)
    series = None if leader is None else PendingSeries()
    app = PageServer(desk, own, guard, "dump.json", asked, series).application()
    runner = web.AppRunner(app, access_log=None)
    try:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        async with ClientSession() as session:
            return await do(Browser(session, port, guard))
    finally:
        await runner.cleanup()
        desk.close()

"""An insight server over real TLS, with users by token whose rights a table gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp

from scheduler.client.errors import ApiError
from scheduler.serving.access_reviews import ResourceRight, User
from scheduler.serving.options import ServingOptions
from tests.scheduler.serving.client_authorities import client_context
from tests.scheduler.serving.served import OwnServer

if TYPE_CHECKING:
    from scheduler.serving.server import UserPage

OPTIONS = ServingOptions(bind_address="127.0.0.1", secure_port=0)

RIGHTS: Mapping[str, frozenset[str]] = {
    "admin": frozenset({"get pods *", "list pods *", "get nodes", "list schedulingprofiles"}),
    "tenant": frozenset({"get pods a/*", "list pods a", "create pods a"}),
    "viewer": frozenset({"get pods a/*", "list pods a", "get nodes"}),
    "nobody": frozenset(),
}
"""What each user may do."""


class Rights:
    """An API server that knows users by tokens that are their names."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def authorities(self) -> dict[str, str]:
        return {}

    async def user_of(self, token: str) -> User | None:
        known = token in RIGHTS or token.startswith("doubtful")
        return User(username=token) if known else None

    async def is_allowed(self, user: User, verb: str, path: str) -> bool:
        return False

    async def may(self, user: User, right: ResourceRight) -> bool:
        where = right.namespace if not right.name else f"{right.namespace}/*"
        text = f"{right.verb} {right.resource} {where}".strip()
        self.asked.append(f"{user.username}: {text}")
        if user.username.startswith("doubtful"):
            raise ApiError(500, "InternalError", "who knows")
        held = RIGHTS[user.username]
        return text in held or f"{right.verb} {right.resource} *" in held


Fetch = Callable[..., Awaitable[tuple[int, Any, Mapping[str, str]]]]


def visit(pages: list[UserPage], scene: Callable[[Fetch], Awaitable[Any]]) -> Any:
    """Serve pages while a scene fetches some of them."""

    async def play() -> Any:
        server = OwnServer(OPTIONS, reviews=Rights(), pages=pages)
        await server.start()
        async with asyncio.timeout(60), aiohttp.ClientSession() as client:

            async def fetch(path: str, token: str | None = "admin", **more: Any) -> Any:
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                method = "POST" if "data" in more else "GET"
                async with client.request(
                    method,
                    f"{server.addresses[0]}/insight/v1/{path}",
                    headers=headers,
                    ssl=client_context(),
                    **more,
                ) as answer:
                    return answer.status, json.loads(await answer.text()), answer.headers

            try:
                return await scene(fetch)
            finally:
                await server.stop()

    return asyncio.run(play())

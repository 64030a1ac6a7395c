"""The HTTP server of the page: paths, and what is shown when a question cannot be answered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from aiohttp import hdrs, web

from scheduler.ui.decision_stream import Cursor, stream_page
from scheduler.ui.guard import FRESH_FOR_S
from scheduler.ui.nodes_view import cell_name, node_list, nodes_page, one_node
from scheduler.ui.pending_view import Trends, counts_of, overview
from scheduler.ui.pod_view import nodes_page as pod_nodes_page
from scheduler.ui.pod_view import pod_page
from scheduler.ui.rendering import HERE, Renderer
from scheduler.ui.sources import SourceError
from scheduler.ui.what_if_view import filled, forecast_page, form_page, question_of
from scheduler.what_if import QuestionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scheduler.ui.desk import Desk
    from scheduler.ui.guard import Guard
    from scheduler.ui.leader_sources import LeaderSources
    from scheduler.ui.pending_series import PendingSeries
    from scheduler.ui.sources import Sources

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_BODY_BYTES: Final = 500_000

MAX_DECISIONS: Final = 200
"""How many decisions the stream shows at once."""

MAX_FOLLOWED: Final = 1000
"""How many decisions are read at once: the leader's own limit."""

_STATIC: Final[Mapping[str, str]] = {
    "berth.css": "text/css",
    "berth.js": "text/javascript",
    "berth.svg": "image/svg+xml",
}


class PageServer:
    """Answers with pages.

    Parameters
    ----------
    desk
        The listing.
    sources
        Answers from the listing.
    guard
        Who may ask.
    title
        What is shown: a file, or the address of a cluster.
    leader
        Answers by the leader; None where it is not asked.
    series
        Counts of pending pods while the page runs; None for a dump.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        desk: Desk,
        sources: Sources,
        guard: Guard,
        title: str,
        leader: LeaderSources | None = None,
        series: PendingSeries | None = None,
    ) -> None:
        self._desk = desk
        self._sources = sources if leader is None else leader
        self._guard = guard
        self._series = series
        self._root = f"/{guard.token}"
        self._render = Renderer(desk, self._root, title, leader)
        self._files = {name: (HERE / "static" / name).read_bytes() for name in _STATIC}

    def application(self) -> web.Application:
        """Return the application with all paths."""
        app = web.Application(
            middlewares=[self._guard.middleware()], client_max_size=MAX_BODY_BYTES
        )
        root = self._root
        for path, handler in {
            "/": self._pending,
            "/pending": self._pending,
            "/pod": self._find,
            "/pods/{namespace}/{name}": self._pod,
            "/pods/{namespace}/{name}/nodes": self._pod_nodes,
            "/pods/{namespace}/{name}/help": self._help,
            "/nodes": self._nodes,
            "/nodes/list": self._node_list,
            "/nodes/cell": self._cell,
            "/nodes/one/{name}": self._node,
            "/decisions": self._decisions,
            "/decisions/rows": self._decision_rows,
            "/policies": self._policies,
            "/what-if": self._what_if_form,
            "/static/{name}": self._static,
        }.items():
            app.router.add_get(root + path, self._guarded(handler))
        app.router.add_get(root, self._home)
        app.router.add_post(f"{root}/what-if", self._guarded(self._what_if))
        return app

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except SourceError as error:
                is_part = request.headers.get("Sec-Fetch-Dest") == "empty"
                template = "part_error.html" if is_part else "error.html"
                status = 200 if is_part else 404
                return self._render.page(template, "", {"message": str(error)}, status)

        return answer

    async def _home(self, _: web.Request) -> web.Response:
        return web.Response(status=308, headers={hdrs.LOCATION: f"{self._root}/"})

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _STATIC:
            raise web.HTTPNotFound
        return web.Response(
            body=self._files[name],
            content_type=_STATIC[name],
            headers={hdrs.CACHE_CONTROL: f"private, max-age={FRESH_FOR_S}"},
        )

    # --- pending pods, and one of them ----------------------------------------------------------

    async def _pending(self, request: web.Request) -> web.Response:
        pending = await self._sources.pending()
        trends = None
        if self._series is not None:
            now_s = time.time() if pending.leader else self._desk.listing.now_s
            trends = Trends(*self._series.trends(now_s, counts_of(pending), pending.leader))
        shown = await self._desk.work(overview, request.query, pending, trends)
        return self._render.page("pending.html", "pending", shown)

    async def _find(self, request: web.Request) -> web.Response:
        """Lead from the search field to a pod, or to the pods whose names contain the text."""
        text = request.query.get("q", "").strip()[:506]
        namespace, slash, name = text.partition("/")
        listing = self._desk.listing
        if slash and f"{namespace}/{name}" in listing.cluster.pods:
            url = _path(self._root, "pods", namespace, name)
        else:
            found = [key for key in listing.cluster.pods if key.endswith(f"/{text}")]
            if len(found) == 1:
                url = _path(self._root, "pods", *found[0].split("/", 1))
            else:
                url = _path(self._root, "pending", q=text)
        return web.Response(status=303, headers={hdrs.LOCATION: url})

    async def _pod(self, request: web.Request) -> web.Response:
        shown = await self._desk.work(pod_page, *_pod_of(request))
        return self._render.page("pod.html", "pending", shown)

    async def _pod_nodes(self, request: web.Request) -> web.Response:
        shown = await self._desk.work(pod_nodes_page, *_pod_of(request), request.query)
        return self._render.page("pod_nodes.html", "pending", shown)

    async def _help(self, request: web.Request) -> web.Response:
        """Return the part of a pod's page that takes longer: what would help."""
        why = await self._sources.why(*_pod_of(request))
        return self._render.page("part_help.html", "", {"why": why, "now": why.now or {}})

    # --- nodes ----------------------------------------------------------------------------------

    async def _nodes(self, request: web.Request) -> web.Response:
        shown = await self._desk.work(nodes_page, request.query)
        return self._render.page("nodes.html", "nodes", shown)

    async def _node_list(self, request: web.Request) -> web.Response:
        shown = await self._desk.work(node_list, request.query)
        return self._render.page("node_list.html", "nodes", shown)

    async def _node(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        shown = await self._desk.work(one_node, name, request.query)
        return self._render.page("node.html", "nodes", shown)

    async def _cell(self, request: web.Request) -> web.Response:
        name = await self._desk.work(cell_name, request.query)
        if request.query.get("as") == "text":
            return web.Response(text=name)
        url = _path(self._root, "nodes", "one", name)
        return web.Response(status=303, headers={hdrs.LOCATION: url})

    # --- decisions and policies -----------------------------------------------------------------

    async def _decisions(self, request: web.Request) -> web.Response:
        return self._render.page("decisions.html", "decisions", await self._stream(request))

    async def _decision_rows(self, request: web.Request) -> web.Response:
        return self._render.page("part_decisions.html", "", await self._stream(request))

    async def _stream(self, request: web.Request) -> dict[str, Any]:
        cursor = Cursor.of(request.query.get("cursor", ""))
        found = await self._sources.decisions(cursor.after, MAX_FOLLOWED)
        if not cursor.is_followed_by(found):
            found = await self._sources.decisions(0, MAX_DECISIONS) if cursor.after else found
            cursor = Cursor()
        is_whole = not self._desk.listing.is_partial
        return stream_page(cursor, found, MAX_DECISIONS, is_whole=is_whole)

    async def _policies(self, _: web.Request) -> web.Response:
        policies = await self._sources.policies()
        return self._render.page("policies.html", "policies", {"policies": policies})

    # --- what if --------------------------------------------------------------------------------

    async def _what_if_form(self, request: web.Request) -> web.Response:
        return self._question(form_page(filled(request.query)))

    async def _what_if(self, request: web.Request) -> web.Response:
        form = filled(await request.post())
        try:
            question = question_of(form)
            found = await self._sources.what_if(question)
        except (QuestionError, SourceError) as error:
            return self._question(form_page(form, str(error)))
        return self._question(forecast_page(form, found))

    def _question(self, shown: Mapping[str, Any]) -> web.Response:
        known = self._desk.listing.cluster.nodes
        return self._render.page("what_if.html", "what-if", {**shown, "known": known})


def _pod_of(request: web.Request) -> tuple[str, str]:
    return request.match_info["namespace"], request.match_info["name"]


def _path(root: str, *segments: str, **query: str) -> str:
    path = "/".join([root, *(quote(segment, safe="") for segment in segments)])
    return f"{path}?{urlencode(query)}" if query else path

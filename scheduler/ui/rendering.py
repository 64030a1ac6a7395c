"""Templates: everything that comes from objects is escaped, and a missing name is an error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scheduler.ui import amounts, charts, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.ui.desk import Desk
    from scheduler.ui.leader_sources import LeaderSources

HERE: Final = Path(__file__).parent


def environment() -> Environment:
    """Return the templates of this package."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "amount": amounts.amount,
        "clock": times.clock,
        "count": amounts.count,
        "percent": amounts.percent,
        "short_time": times.short_time,
        "span": times.span,
        "unit": amounts.unit,
        "when": times.day_and_clock,
    }
    found.globals |= {
        "bars_of": charts.bars_of,
        "line_of": charts.line_of,
        "time_line": charts.time_line,
    }
    return found


class Renderer:
    """Makes responses of templates.

    Parameters
    ----------
    desk
        The listing that the head of each page is about.
    root
        The first segment of every path, with its slash.
    title
        What is shown: a file, or the address of a cluster.
    leader
        The leader; None where it is not asked.
    """

    def __init__(
        self, desk: Desk, root: str, title: str, leader: LeaderSources | None = None
    ) -> None:
        self._desk = desk
        self._leader = leader
        self._environment = environment()
        self._environment.globals |= {"root": root, "source": title}

    def page(
        self, template: str, view: str, values: Mapping[str, Any], status: int = 200
    ) -> web.Response:
        """Return a page, or a part of one."""
        listing = self._desk.listing
        text = self._environment.get_template(template).render(
            view=view,
            head={
                "as_of_s": listing.now_s,
                "nodes": len(listing.cluster.nodes),
                "pods": len(listing.cluster.pods),
                "pending": len(listing.pending),
                "live": self._desk.is_live,
                "failure": self._desk.failure,
                "left_out": listing.left_out,
                "namespace": listing.origin.namespace,
                "leader": self._leader.leader if self._leader else "",
                "problem": self._leader.problem if self._leader else "",
            },
            **values,
        )
        return web.Response(text=text, content_type="text/html", status=status)

"""Run the liveness and readiness checks, and format the response.

*Source*: k8s.io/apiserver/pkg/server/healthz, healthz.go (0.36), for the form of the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import structlog
from aiohttp import hdrs, web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Check: TypeAlias = Callable[[], str | None]
    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Health:
    """What has to be well, by name.

    Each check returns None, or what is wrong in a few words that anybody may read. It is called on
    the loop and must not wait.

    Attributes
    ----------
    readiness
        For ``/readyz``.
    liveness
        For ``/livez`` and ``/healthz``. That the loop answers is always checked.
    details
        More about a check of `liveness` that has failed, for those who may read pages: it is told
        under a path of its own, and not where that is open to anybody.
    """

    readiness: Mapping[str, Check] = field(default_factory=dict)
    liveness: Mapping[str, Check] = field(default_factory=dict)
    details: Mapping[str, Check] = field(default_factory=dict)


def add_health(
    app: web.Application, name: str, checks: Mapping[str, Check], details: Mapping[str, Check]
) -> None:
    """Serve ``/<name>``, and each check by itself under ``/<name>/<check>``.

    Parameters
    ----------
    details
        More about a check that has failed, told where it is asked for by itself.
    """
    checks = {"ping": _ping, **checks}
    app.router.add_get(f"/{name}", _all_of(name, checks))
    for check_name, check in checks.items():
        app.router.add_get(
            f"/{name}/{check_name}", _one_of(check_name, check, details.get(check_name))
        )


def _ping() -> str | None:
    """Say nothing: that the loop answers is all there is to it."""
    return None


def _all_of(name: str, checks: Mapping[str, Check]) -> Handler:
    async def serve(request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", ()))
        lines: list[str] = []
        is_well = True
        for check_name, check in checks.items():
            if check_name in excluded:
                lines.append(f"[+]{check_name} excluded: ok")
                continue
            problem = _problem(check_name, check)
            is_well = is_well and problem is None
            lines.append(
                f"[+]{check_name} ok" if problem is None else f"[-]{check_name} failed: {problem}"
            )
        if is_well and "verbose" not in request.query:
            return web.Response(text="ok")
        lines.append(f"{name} check {'passed' if is_well else 'failed'}")
        return _answer(is_well, "\n".join(lines) + "\n")

    return serve


def _one_of(name: str, check: Check, detail: Check | None) -> Handler:
    async def serve(_: web.Request) -> web.Response:
        problem = _problem(name, check)
        if problem is None:
            return _answer(is_well=True, text="ok")
        more = _problem(name, detail) if detail is not None else None
        return _answer(is_well=False, text=f"{problem}: {more}\n" if more else f"{problem}\n")

    return serve


def _answer(is_well: bool, text: str) -> web.Response:
    return web.Response(
        status=200 if is_well else 500,
        text=text,
        headers={"X-Content-Type-Options": "nosniff", hdrs.CACHE_CONTROL: "no-store"},
    )


def _problem(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:
        # A check that cannot answer is not well, and why not is for the log alone.
        log.exception("health check failed", check=name)
        return "the check itself failed"

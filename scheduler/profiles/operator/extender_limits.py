"""Limits for the extenders of SchedulingProfiles, which are stricter than for those of the file.

The author of the configuration file operates Berth. The author of a SchedulingProfile may decide
where pods run, but must not be able to make Berth read files, wait for minutes, or send requests to
every server that it can reach.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from plugins.framework.go_duration import duration_of_seconds
from scheduler.config import Mistake
from scheduler.config.config_error import child, item, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.config import Extender

MAX_TIMEOUT: Final = duration_of_seconds(10)
"""Twice kube-scheduler's default. The scheduling thread waits for the responses of extenders, which
delays the pods of all profiles."""

_PORTS: Final = {"http": 80, "https": 443}
_VERB: Final = re.compile(r"[A-Za-z0-9_.~/-]*")
_VERBS: Final = (
    ("filterVerb", "filter_verb"),
    ("preemptVerb", "preempt_verb"),
    ("prioritizeVerb", "prioritize_verb"),
    ("bindVerb", "bind_verb"),
)
_FILES: Final = (("certFile", "cert_file"), ("keyFile", "key_file"), ("caFile", "ca_file"))


def check_own_extenders(
    extenders: Sequence[Extender], allowed: Sequence[str], where: str
) -> Iterator[Mistake]:
    """Yield the mistakes in extenders that are allowed in a file but not in a SchedulingProfile.

    Parameters
    ----------
    allowed
        URL prefixes of the allowed extenders.
    where
        The path of the list of extenders, for mistakes.
    """
    prefixes = [urlsplit(each) for each in allowed]
    for index, extender in enumerate(extenders):
        path = item(where, index)
        if not any(_is_below(extender.url_prefix, each) for each in prefixes):
            why = f"{shown(extender.url_prefix)} is not allowed"
            yield Mistake(child(path, "urlPrefix"), f"{why}; see --scheduling-profiles-extenders")
        for name, attribute in _VERBS:
            verb = getattr(extender, attribute)
            if not _VERB.fullmatch(verb) or not _is_plain(verb):
                yield Mistake(child(path, name), f"{shown(verb)} is not a valid path")
        if extender.http_timeout > MAX_TIMEOUT:
            why = f"must be at most {MAX_TIMEOUT}, not {extender.http_timeout}"
            yield Mistake(child(path, "httpTimeout"), why)
        for name, attribute in _FILES if extender.tls_config is not None else ():
            if getattr(extender.tls_config, attribute):
                why = f"a SchedulingProfile names no files; use {name.removesuffix('File')}Data"
                yield Mistake(child(child(path, "tlsConfig"), name), why)


def why_no_prefix(text: str) -> str | None:
    """Return why a text is not a valid allowed URL; None if it is valid."""
    try:
        url = urlsplit(text)
        is_url = _origin(url) is not None and _is_plain(url.path)
    except ValueError:
        is_url = False
    return None if is_url else f"{text!r} is not an http:// or https:// URL of a server and a path"


def _is_below(text: str, prefix: SplitResult) -> bool:
    try:
        url = urlsplit(text)
        origin = _origin(url)
        wanted = _origin(prefix)
    except ValueError:
        return False
    if origin is None or origin != wanted or not _is_plain(url.path):
        return False
    base = prefix.path.rstrip("/")
    return url.path == base or url.path.startswith(f"{base}/")


def _origin(url: SplitResult) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None if the URL is ambiguous.

    Raises
    ------
    ValueError
        When the port is not valid.
    """
    if url.scheme not in _PORTS or not url.hostname or "@" in url.netloc:
        return None
    if url.query or url.fragment or "\\" in url.netloc:
        return None
    return url.scheme, url.hostname, url.port or _PORTS[url.scheme]


def _is_plain(path: str) -> bool:
    """Return whether a path has no ``.`` or ``..`` elements."""
    parts = unquote(path).replace("\\", "/").split("/")
    return "." not in parts and ".." not in parts

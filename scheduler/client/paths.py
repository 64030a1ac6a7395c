"""Build API paths from names, and classify a path without parsing its names.

*Source*: Kubernetes API concepts, resource URIs.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

_PLAIN: Final = re.compile(r"[A-Za-z0-9._~:-]+")

_REVIEWS: Final = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")


def segment(name: str) -> str:
    """Return `name` as one segment of a path.

    Names that the API server accepted are returned as they are. Anything else is encoded, so
    that a name can neither end the path nor lead to another resource.

    Raises
    ------
    ValueError
        No encoding can make a segment of it: it is empty, ``.`` or ``..``.
    """
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not the name of an object")
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


def in_namespace(path: str, namespace: str) -> str:
    """Return the path of a list in one namespace, made from that over all namespaces.

    An empty namespace is that of cluster-scoped objects: the path stays as it is.
    """
    if not namespace:
        return path
    start, _, resource = path.rpartition("/")
    return f"{start}/namespaces/{segment(namespace)}/{resource}"


def stores_nothing(path: str) -> bool:
    """Tell whether a POST to this path asks a question: reviews are answered and forgotten."""
    return path.startswith(_REVIEWS)


def namespace_of(path: str) -> str:
    """Return the namespace that a path leads into; empty where there is none."""
    _, marker, rest = path.partition("/namespaces/")
    name, slash, _ = rest.partition("/")
    return name if marker and slash else ""


def resource_of(path: str) -> str:
    """Return what a path is about, without names: ``pods/binding``, ``events``, ``version``."""
    parts = path.strip("/").split("/")
    # /api/v1/... or /apis/<group>/<version>/...
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    if not rest:
        return parts[0] if len(parts) == 1 else "/".join(parts[:2])
    if rest[0] == "namespaces" and len(rest) >= 3:
        rest = rest[2:]
    return "/".join((rest[0], *rest[2:3]))

"""Kubeconfig files for tests: made, written and loaded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import yaml

from scheduler.client.credential_search import load_credentials

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.client.credentials import Credentials

SERVER = "https://127.0.0.1:6443"


def config(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    current_context: str = "here",
    **more: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current_context,
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        **more,
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def load(kubeconfig: Path | None) -> Credentials:
    return asyncio.run(load_credentials(str(kubeconfig) if kubeconfig else None))


def header_of(kubeconfig: Path | None) -> str | None:
    async def main() -> str | None:
        found = await load_credentials(str(kubeconfig) if kubeconfig else None)
        return await found.auth_header()

    return asyncio.run(main())

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from scheduler.client import credential_search
from tests.scheduler.client.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    Run = Callable[[Coroutine[Any, Any, Any]], Any]


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine to its end on each kind of loop; a minute is for ever."""

    def run_on_loop(main: Coroutine[Any, Any, Any]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(120):
                return await main

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(bounded())

    return run_on_loop


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the credentials and proxies of whoever runs the tests out of them."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(credential_search, "SERVICE_ACCOUNT_FOLDER", tmp_path / "serviceaccount")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)

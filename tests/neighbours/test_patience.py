"""Requests that fail for a while are sent again, and refusals are not."""

from __future__ import annotations

import asyncio

import pytest

from scheduler.client.errors import ApiError
from tests.neighbours import patience
from tests.neighbours.patience import insist


class Server:
    """Answers with these statuses, one after the other; 0 is success, None is no answer."""

    def __init__(self, *statuses: int | None) -> None:
        self.left = list(statuses)

    async def request(self) -> None:
        status = self.left.pop(0)
        if status != 0:
            raise ApiError(status, "Reason", "text")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(patience, "_PAUSE_S", 0.0)


@pytest.mark.parametrize(
    "statuses",
    [
        pytest.param((0,), id="at once"),
        pytest.param((None, 503, 429, 0), id="after a while"),
        pytest.param((None, 409), id="an attempt without an answer took effect"),
    ],
)
def test_request_is_sent_until_it_is_answered(statuses):
    server = Server(*statuses)
    asyncio.run(insist(server.request, fine=(409,)))
    assert not server.left


def test_refusal_is_raised():
    with pytest.raises(ApiError):
        asyncio.run(insist(Server(403, 0).request))


def test_patience_ends(monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", -1.0)
    with pytest.raises(ApiError):
        asyncio.run(insist(Server(503, 0).request))

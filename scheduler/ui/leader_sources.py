"""Asks the leader what the page wants to know; where it does not say, the user's own lists answer.

    question -> the leader, for as long as it can be asked
             -> else the own lists, with a sentence that says why

While the leader cannot be asked, no view waits for it: :meth:`LeaderSources.probe` finds out when
it can be asked again.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from scheduler.client.errors import ApiError, ClientConfigError
from scheduler.insight.command import STATES
from scheduler.insight.leader_client import AskError
from scheduler.ui.sources import Decisions, Forecast, Pending, Policies, SourceError, Why
from scheduler.what_if import QuestionError, decode_question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scheduler.ui.sources import Sources

    T = TypeVar("T")
    AnswerT = TypeVar("AnswerT", Decisions, Forecast, Pending, Policies, Why)

READ_S: Final = 6.0
"""How long a view waits for the leader: longer than it takes to ask three access reviews."""

WORK_S: Final = 110.0
"""How long an explanation or a forecast is waited for: longer than the client's own limit."""

_FINAL: Final = frozenset({"BadRequest", "Invalid", "NotFound"})
"""The reasons of refusals that concern the question itself: own lists would say no better."""


class Asks(Protocol):
    """Asks the leader, as :class:`scheduler.insight.leader_client.LeaderClient` does.

    Attributes
    ----------
    leader
        The pod that has answered last.
    """

    leader: str

    async def ask(
        self, name: str, query: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> bytes:
        """Return the JSON answer of ``/insight/v1/NAME``; raises AskError."""
        ...


class _NotSaidError(Exception):
    """The leader does not say; the message is one sentence."""


class LeaderSources:
    """Answers by the leader. See :class:`scheduler.ui.sources.Sources`.

    Parameters
    ----------
    client
        Asks with the user's credentials.
    own
        Answers from the user's own lists.
    namespace
        The namespace that questions about many pods are limited to; empty for all.

    Attributes
    ----------
    problem
        Why the leader cannot be asked at present; empty if it can, or was not asked yet.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, client: Asks, own: Sources, namespace: str = "") -> None:
        self._client = client
        self._own = own
        self._query = {"namespace": namespace} if namespace else {}
        self.problem = ""

    @property
    def leader(self) -> str:
        """The leader's pod that has answered last; empty while it cannot be asked."""
        return "" if self.problem else self._client.leader

    async def why(self, namespace: str, name: str) -> Why:
        """Return the last decisions about a pod, and what would be decided now."""
        query = {"namespace": namespace, "name": name}
        found = await self._leaders_or(
            lambda: self._ask("why", Why, WORK_S, query), lambda: self._own.why(namespace, name)
        )
        return replace(found, state=STATES.get(found.state, found.state))

    async def decisions(self, after: int, limit: int) -> Decisions:
        """Return the outcomes of attempts after a number."""
        query = {**self._query, "after": str(after), "limit": str(limit)}
        return await self._leaders_or(
            lambda: self._ask("decisions", Decisions, READ_S, query),
            lambda: self._own.decisions(after, limit),
        )

    async def pending(self) -> Pending:
        """Return the pending pods by reason."""
        return await self._leaders_or(self._pending, self._own.pending)

    async def policies(self) -> Policies:
        """Return the profiles and policies, with the comparison of shadows."""
        return await self._leaders_or(
            lambda: self._ask("policies", Policies, READ_S), self._own.policies
        )

    async def what_if(self, question: Mapping[str, Any]) -> Forecast:
        """Return the forecast for a question."""
        body = msgspec.json.encode(question)
        try:
            decode_question(body)
        except QuestionError as error:
            raise SourceError(str(error)) from error

        async def ask() -> Forecast:
            data = await self._ask("what-if", dict[str, Any], WORK_S, body=body)
            return Forecast(data=data)

        return await self._leaders_or(ask, lambda: self._own.what_if(question))

    async def probe(self) -> Pending | None:
        """Return the pending pods as the leader counts them; None if it does not say.

        Afterwards ``problem`` says whether the leader can be asked.
        """
        try:
            return replace(await self._pending(), leader=self._client.leader)
        except (_NotSaidError, SourceError):
            return None

    async def _pending(self) -> Pending:
        return await self._ask("pending", Pending, READ_S, self._query)

    async def _leaders_or(
        self, ask: Callable[[], Awaitable[AnswerT]], own: Callable[[], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Return the leader's answer, or else the own one with the reason if it is new."""
        known = self.problem
        try:
            if known:
                raise _NotSaidError(known)
            return replace(await ask(), leader=self._client.leader)
        except _NotSaidError as error:
            try:
                return replace(await own(), unsaid="" if known else str(error))
            except SourceError as own_error:
                raise SourceError(f"{error}; {own_error}") from error

    async def _ask(
        self,
        name: str,
        form: type[T],
        limit_s: float,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> T:
        """Return the leader's answer to a question.

        Raises
        ------
        SourceError
            The question has a mistake, or is about what does not exist.
        _NotSaidError
            The leader does not say.
        """
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._client.ask(name, query, body)
        except TimeoutError as error:
            raise self._not_asked(f"it has not answered within {limit_s:g} s") from error
        except AskError as error:
            raise self._refusal(error) from error
        except (ApiError, ClientConfigError, OSError, ValueError) as error:
            raise self._not_asked(str(error)) from error
        self.problem = ""
        try:
            return msgspec.json.decode(answer, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _NotSaidError(f"its answer cannot be read: {error}") from error

    def _refusal(self, error: AskError) -> Exception:
        if error.status == HTTPStatus.UNAUTHORIZED or not error.reason:
            return self._not_asked(str(error))
        self.problem = ""
        return SourceError(str(error)) if error.reason in _FINAL else _NotSaidError(str(error))

    def _not_asked(self, why: str) -> _NotSaidError:
        self.problem = why
        return _NotSaidError(why)

"""Who may ask what would happen: new pods concern their namespaces, all else concerns all pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.insight.refused import RefusedError
from scheduler.insight.rights import forbidden

if TYPE_CHECKING:
    from scheduler.serving.server import Visitor

MAX_NAMESPACES: Final = 5
"""Namespaces of one question for which rights are reviewed, each by a request."""


class Scope(NamedTuple):
    """What a question concerns.

    Parameters
    ----------
    names_nodes
        It drains, removes or copies nodes.
    concerns_all
        The answer is about pods of any namespace.
    verbs
        What a user has to be allowed to do with pods in ``namespaces`` otherwise.
    """

    names_nodes: bool
    concerns_all: bool
    verbs: tuple[str, ...]
    namespaces: tuple[str, ...]


def scope_of(body: bytes) -> Scope:
    """Return what a question concerns.

    Raises
    ------
    RefusedError
        It has a mistake.
    """
    # The scheduler itself forecasts nothing, and its start should not wait for these imports.
    from scheduler.what_if import QuestionError, decode_question  # noqa: PLC0415

    try:
        question = decode_question(body)
        namespaces = question.namespaces()
    except QuestionError as error:
        raise RefusedError(422, "Invalid", str(error)) from error
    verbs = {"create": question.objects, "list": question.podgroup}
    return Scope(
        bool(question.drain or question.remove or question.add),
        bool(question.drain or question.remove or question.pending or question.config is not None),
        tuple(verb for verb, wanted in verbs.items() if wanted),
        tuple(sorted(namespaces)),
    )


async def require_forecast(
    visitor: Visitor, scope: Scope, *, shows_nodes: bool, shows_pods: bool
) -> None:
    """Return if a user may ask a question.

    Parameters
    ----------
    shows_nodes, shows_pods
        Whether the user may get nodes, and list the pods of all namespaces.

    Raises
    ------
    RefusedError
        They may not.
    ApiError
        The API server does not say.
    """
    if scope.names_nodes and not shows_nodes:
        raise forbidden(visitor, "get nodes, which a question that names nodes takes")
    if shows_pods:
        return
    if scope.concerns_all or len(scope.namespaces) > MAX_NAMESPACES:
        what = "pods of others" if scope.concerns_all else f"more than {MAX_NAMESPACES} namespaces"
        why = f"which a question about {what} takes"
        raise forbidden(visitor, f"list pods in all namespaces, {why}")
    for namespace in scope.namespaces:
        for verb in scope.verbs:
            if not await visitor.may(verb, "pods", namespace=namespace):
                raise forbidden(visitor, f"{verb} pods in the namespace {namespace!r}")

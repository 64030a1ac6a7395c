"""The command ``berth why``: asks the running scheduler about one pod."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.client.credential_search import load_credentials
from scheduler.explain import ExplainError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from scheduler.insight.leader_client import LeaderAddress

STATES: Final = {
    "active": "waits for its turn",
    "assumed": "has a node; its binding is under way",
    "backoff": "waits before another attempt",
    "bound": "is bound",
    "ended": "has ended",
    "foreign": "is not for this scheduler",
    "gated": "is not tried at present",
    "grouped": "waits to be tried with its pod group",
    "in_flight": "is being tried",
    "other_pool": "belongs to another pool, or is on its way there",
    "unschedulable": "waits for a change that may help",
}
"""What the states of :func:`scheduler.insight.pod_state.pod_state` mean."""


def add_why_command(commands: Any) -> None:
    """Add the command ``why`` to the subparsers ``commands``."""
    why = commands.add_parser(
        "why",
        help="ask the running scheduler why a pod waits, or why it runs where it does",
        description="Print the last decisions about a pod, and what would be decided now. The "
        "leader is asked through the API server, with your kubeconfig; see docs/why.md.",
    )
    why.set_defaults(command=_why)
    why.add_argument("pod", metavar="[NS/]NAME", help="the pod")
    why.add_argument("-n", "--namespace", metavar="NS", help="its namespace (default)")
    add_leader_flags(why)
    why.add_argument("-o", "--output", choices=("text", "json"), default="text")


def add_leader_flags(parser: argparse.ArgumentParser, port_flag: str = "--port") -> None:
    """Add the flags that say where the leader is, for :func:`ask_leader`.

    Parameters
    ----------
    port_flag
        For a command whose ``--port`` is another port.
    """
    parser.add_argument("--kubeconfig", metavar="F", help="how to reach the API server")
    parser.add_argument(
        "--berth-namespace",
        metavar="NS",
        default="berth-system",
        help="the namespace of Berth (%(default)s)",
    )
    parser.add_argument(
        "--lease", metavar="NAME", default="berth", help="the Lease of its leader (%(default)s)"
    )
    parser.add_argument(
        port_flag,
        dest="leader_port",
        metavar="PORT",
        type=int,
        default=10259,
        help="of its HTTPS (%(default)s)",
    )
    parser.add_argument(
        "--leader-ca",
        metavar="F",
        default="",
        help="PEM of the authority that has signed the leader's certificate; without it, only the "
        "certificate that the leader has published in the Lease is accepted",
    )
    parser.add_argument(
        "--leader-name",
        metavar="DNS",
        default="",
        help="with --leader-ca, the name in that certificate (LEASE.NS.svc)",
    )


def leader_address(options: argparse.Namespace) -> LeaderAddress:
    """Return where the leader is, by the options of :func:`add_leader_flags`."""
    # It imports aiohttp, which other commands should not wait for.
    from scheduler.insight.leader_client import LeaderAddress  # noqa: PLC0415 - see above

    return LeaderAddress(
        options.berth_namespace,
        options.lease,
        options.leader_port,
        options.leader_ca,
        options.leader_name,
    )


def ask_leader(
    options: argparse.Namespace,
    name: str,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> bytes:
    """Return the leader's answer, as JSON; the options are those of :func:`add_leader_flags`.

    Raises
    ------
    ExplainError, ClientConfigError
        One sentence each.
    """
    # It imports aiohttp, which other commands should not wait for.
    from scheduler.insight.leader_client import (  # noqa: PLC0415 - see above
        AskError,
        LeaderClient,
    )

    async def ask() -> bytes:
        credentials = await load_credentials(options.kubeconfig)
        client = LeaderClient(credentials, leader_address(options))
        try:
            return await client.ask(name, query, body)
        finally:
            await client.close()

    try:
        return asyncio.run(ask())
    except (AskError, ValueError) as error:
        raise ExplainError(str(error)) from error


def _why(options: argparse.Namespace) -> int:
    namespace, _, name = options.pod.rpartition("/")
    if namespace and options.namespace and namespace != options.namespace:
        raise ExplainError(f"{options.pod} and --namespace {options.namespace} contradict")
    query = {"namespace": namespace or options.namespace or "default", "name": name}
    body = ask_leader(options, "why", {**query, "form": options.output})
    if options.output == "json":
        sys.stdout.write(body.decode() + "\n")
    else:
        sys.stdout.write(why_text(msgspec.json.decode(body, type=WhyAnswer)))
    return 0


class _Attempt(msgspec.Struct, frozen=True):
    time: str = ""
    pod: str = ""
    group: str = ""
    profile: str = ""
    node: str = ""
    message: str = ""
    plugins: tuple[str, ...] = ()
    score: int | None = None
    runner_up: str | None = None
    runner_up_score: int | None = None
    attempts: int = 0


class WhyAnswer(msgspec.Struct, frozen=True):
    """The parts of the answer that the text form shows."""

    pod: str
    state: str
    decisions: tuple[_Attempt, ...] = ()
    text: str = ""
    notes: tuple[str, ...] = ()
    pool: str = ""


def why_text(answer: WhyAnswer) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: WhyAnswer) -> Iterator[str]:
    yield f"Pod {answer.pod} {STATES.get(answer.state, f'is in the state {answer.state}')}."
    yield ""
    if answer.decisions:
        yield "Its last attempts:"
        for attempt in answer.decisions:
            yield f"  {attempt.time[:19].replace('T', ' ')}Z  {_outcome(attempt)}"
    else:
        yield "This leader has not tried it, or so long ago that it has forgotten."
    if answer.text:
        yield ""
        yield "If it were tried now:"
        yield from (f"  {line}".rstrip() for line in answer.text.rstrip().splitlines())
    if answer.notes or answer.pool:
        yield ""
    yield from answer.notes
    if answer.pool:
        yield f"Only the nodes of {answer.pool} are looked at."


def _outcome(attempt: _Attempt) -> str:
    if attempt.node:
        score = "" if attempt.score is None else f", {attempt.score} points"
        return f"bound to {attempt.node} (attempt {attempt.attempts}{score}{_second(attempt)})"
    whose = f"pod group {attempt.group}: " if attempt.group else ""
    count = f" (attempt {attempt.attempts})" if attempt.attempts else ""
    return f"{whose}{attempt.message}{count}"


def _is_higher(score: int | None, other: int | None) -> bool:
    return score is not None and other is not None and score > other


def _second(attempt: _Attempt) -> str:
    if attempt.runner_up is None:
        return ""
    if attempt.runner_up_score == attempt.score:
        return f"; {attempt.runner_up} is equally good"
    if _is_higher(attempt.runner_up_score, attempt.score):
        return f"; {attempt.runner_up} with {attempt.runner_up_score} was left to other schedulers"
    return f"; second best is {attempt.runner_up} with {attempt.runner_up_score}"

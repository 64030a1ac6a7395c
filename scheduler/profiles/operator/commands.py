"""The commands ``berth profiles`` and ``berth rollback``."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.paths import segment
from scheduler.client.transport import Transport
from scheduler.process.expected_error import ExpectedError
from scheduler.process.version import VERSION
from scheduler.profiles.operator.history import entries_of_raw
from scheduler.profiles.operator.profile_table import details, table
from scheduler.profiles.operator.scheduling_profile import KIND, PATH

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Mapping, Sequence

_JSON_PATCH: Final = "application/json-patch+json"
_TRIES: Final = 5
_WAIT_S: Final = 5.0
_POLL_S: Final = 0.1


class ProfileError(ExpectedError):
    """A command has failed; the message is one sentence for the user."""


def add_profile_commands(commands: Any) -> None:
    """Add ``profiles`` and ``rollback`` to the result of ``add_subparsers``."""
    profiles = commands.add_parser(
        "profiles", help="list the SchedulingProfiles of a cluster, or describe one"
    )
    profiles.set_defaults(command=_profiles)
    profiles.add_argument("name", metavar="NAME", nargs="?", help="describe this SchedulingProfile")
    profiles.add_argument("--kubeconfig", metavar="F", help="path to a kubeconfig file")
    profiles.add_argument("-o", "--output", choices=("text", "json"), default="text")

    rollback = commands.add_parser(
        "rollback", help="return a SchedulingProfile to its last good generation"
    )
    rollback.set_defaults(command=_rollback)
    rollback.add_argument("name", metavar="NAME", help="the SchedulingProfile")
    rollback.add_argument(
        "--to",
        metavar="GENERATION",
        type=int,
        help="the good generation to return to, as listed by `berth profiles NAME` (default: the "
        "last good generation before the present one)",
    )
    rollback.add_argument("--kubeconfig", metavar="F", help="path to a kubeconfig file")


def _profiles(options: argparse.Namespace) -> int:
    async def read(transport: Transport) -> list[dict[str, Any]]:
        if options.name is not None:
            return [await _get(transport, options.name)]
        return await _list(transport)

    profiles = _run(options.kubeconfig, options.name, read)
    if options.output == "json":
        sys.stdout.write(json.dumps(profiles, indent=2) + "\n")
    elif options.name is not None:
        sys.stdout.write(details(profiles[0], time.time()))
    elif profiles:
        sys.stdout.write(table(profiles, time.time()))
    else:
        sys.stderr.write("berth: there are no SchedulingProfiles\n")
    return 0


def _rollback(options: argparse.Namespace) -> int:
    async def change(transport: Transport) -> str:
        return await roll_back(transport, options.name, options.to)

    sys.stdout.write(_run(options.kubeconfig, options.name, change) + "\n")
    return 0


async def roll_back(transport: Transport, name: str, generation: int | None) -> str:
    """Replace the spec of a SchedulingProfile with an earlier good one; return a text for the user.

    Parameters
    ----------
    generation
        The generation to return to; None for the last good one before the present one.

    Raises
    ------
    ProfileError
        When there is no such good generation, or its spec equals the present one.
    ApiError
        When the API server refuses the request.
    """
    for _ in range(_TRIES):
        profile = await _get(transport, name)
        entry = _entry(profile, generation)
        patch = [
            # A concurrent change is not overwritten: the test fails and the object is read again.
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": profile["metadata"]["resourceVersion"],
            },
            {"op": "replace", "path": "/spec", "value": entry["spec"]},
        ]
        try:
            response = await transport.request(
                "PATCH",
                f"{PATH}/{segment(name)}",
                query=[("fieldManager", "berth-rollback")],
                body=msgspec.json.encode(patch),
                content_type=_JSON_PATCH,
            )
        except ApiError as error:
            if error.status in (409, 422) and await _has_changed(transport, profile):
                continue
            raise
        new = int(msgspec.json.decode(response.body)["metadata"]["generation"])
        before = f"generation {entry['generation']} of {name} is generation {new} now"
        return f"{before}, {await _outcome(transport, name, new)}"
    raise ProfileError(f"{KIND} {name} keeps changing; try again")


def _entry(profile: Mapping[str, Any], generation: int | None) -> Mapping[str, Any]:
    """Return the entry of the history to return to."""
    name, present = profile["metadata"]["name"], profile["metadata"]["generation"]
    entries = entries_of_raw(profile)
    known = ", ".join(str(entry["generation"]) for entry in entries) or "none"
    if generation is None:
        before = [entry for entry in entries if entry["generation"] != present]
        if not before:
            raise ProfileError(f"{KIND} {name} has no good generation before {present}")
        entry = before[0]
    else:
        matching = [entry for entry in entries if entry["generation"] == generation]
        if not matching:
            raise ProfileError(
                f"generation {generation} of {KIND} {name} is not stored; "
                f"the good generations are: {known}"
            )
        entry = matching[0]
    if entry["spec"] == profile.get("spec"):
        raise ProfileError(f"{KIND} {name} has the spec of generation {entry['generation']} now")
    return entry


async def _has_changed(transport: Transport, profile: Mapping[str, Any]) -> bool:
    now = await _get(transport, profile["metadata"]["name"])
    return bool(now["metadata"]["resourceVersion"] != profile["metadata"]["resourceVersion"])


async def _outcome(transport: Transport, name: str, generation: int) -> str:
    """Wait up to `_WAIT_S` for the status of a generation; return the outcome as text."""
    until_s = time.monotonic() + _WAIT_S
    while time.monotonic() < until_s:
        profile = await _get(transport, name)
        status = profile.get("status") or {}
        if status.get("activeGeneration") == generation:
            return "and decides"
        if status.get("observedGeneration") == generation:
            conditions = {each["type"]: each for each in status.get("conditions") or ()}
            return f"and does not decide: {conditions.get('Degraded', {}).get('message', '')}"
        await asyncio.sleep(_POLL_S)
    return f"and no leader has applied it within {_WAIT_S:.0f} s"


# --- the cluster ------------------------------------------------------------------------------


def _run(
    kubeconfig: str | None, name: str | None, request: Callable[[Transport], Awaitable[Any]]
) -> Any:
    async def run() -> Any:
        credentials = await load_credentials(kubeconfig)
        transport = Transport(credentials, user_agent=f"berth/{VERSION} (profiles)")
        try:
            return await request(transport)
        finally:
            await transport.close()

    try:
        return asyncio.run(run())
    except ApiError as error:
        raise ProfileError(_error_text(error, name)) from error


def _error_text(error: ApiError, name: str | None) -> str:
    if error.status != 404:
        return f"the API server reports: {error.message}" if error.status else str(error)
    if name is not None and error.reason == "NotFound" and name in error.message:
        return f"there is no {KIND} {name}"
    return f"the cluster has no {KIND}s: their CustomResourceDefinition is missing"


async def _get(transport: Transport, name: str) -> dict[str, Any]:
    response = await transport.request("GET", f"{PATH}/{segment(name)}")
    profile: dict[str, Any] = msgspec.json.decode(response.body)
    return profile


async def _list(transport: Transport) -> list[dict[str, Any]]:
    response = await transport.request("GET", PATH)
    profiles: Sequence[dict[str, Any]] = msgspec.json.decode(response.body)["items"]
    return sorted(profiles, key=lambda profile: str(profile["metadata"]["name"]))

"""Lists the SchedulingProfiles of a running cluster once."""

from __future__ import annotations

from typing import Final

import msgspec

from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.transport import Transport
from scheduler.process.version import VERSION
from scheduler.shadow.command import PROFILES_PATH


class _RawList(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


_LIST: Final = msgspec.json.Decoder(_RawList)


async def address_and_policies(kubeconfig: str | None) -> tuple[str, tuple[msgspec.Raw, ...]]:
    """Return the address of the API server, and the SchedulingProfiles that the user may list.

    None of them if the cluster has no such kind, or the user has no permission.

    Raises
    ------
    ClientConfigError
        When no configuration of the client is found or usable.
    """
    credentials = await load_credentials(kubeconfig)
    transport = Transport(credentials, user_agent=f"berth/{VERSION} (ui)")
    try:
        answer = await transport.request("GET", PROFILES_PATH)
        return credentials.base_url, _LIST.decode(answer.body).items
    except (ApiError, msgspec.DecodeError):
        return credentials.base_url, ()
    finally:
        await transport.close()

"""Support old ``auth-provider`` users (OpenID Connect, Google); the client library renews tokens.

Only this module needs the `kubernetes` package for authentication, so only this module imports it:
the import takes longer than connecting to an API server and listing it. The module is imported
when a kubeconfig contains such a user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigLoader

from scheduler.client.auth_source import LibraryAuth
from scheduler.client.errors import ClientConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME = "chosen"


async def provider_auth(
    cluster: Mapping[str, Any], user: Mapping[str, Any], path: Path, where: str
) -> LibraryAuth:
    """Return the proof that an ``auth-provider`` gives, after it has given one.

    Parameters
    ----------
    cluster, user
        As the kubeconfig has them, without nulls.
    path
        Of the file that `user` stands in.
    where
        For error messages.

    Raises
    ------
    ClientConfigError
        The library makes nothing of it.
    """
    # The library is given one context only, and of the user nothing that is done better here.
    by_library = {key: value for key, value in user.items() if key not in ("exec", "tokenFile")}
    context = {"cluster": _NAME, "user": _NAME}
    loader = KubeConfigLoader(
        ConfigNode(
            "kubeconfig",
            {
                "current-context": _NAME,
                "contexts": [{"name": _NAME, "context": context}],
                "clusters": [_node("cluster", {"server": cluster.get("server")}, path)],
                "users": [_node("user", by_library, path)],
            },
        ),
        config_base_path=None,  # the user's own file decides
    )
    configuration = Configuration()

    async def renew() -> object:
        await loader.load_and_set(configuration)
        return configuration.api_key.get("BearerToken")

    try:
        await renew()
    except Exception as error:  # the library raises anything from KeyError to OSError
        raise ClientConfigError(f"{where}: {error}") from error
    return LibraryAuth(renew, where)


def _node(key: str, value: dict[str, Any], path: Path) -> Any:
    return ConfigNode(f"{path}/{_NAME}", {"name": _NAME, key: value}, str(path))

"""Read kubeconfig files and service accounts: the server's address and the client's credentials.

Of the client library's loaders only what nobody else knows is used, the old auth-providers (see
:mod:`scheduler.client.auth_provider`). The rest is done here: importing the library takes half a
second of CPU, and it raises a KeyError or a TypeError for most mistakes in the file, takes the
current context from the last of several files where kubectl takes the first, reads a token file
once, and swallows the failure of an exec plugin.

*Source*: client-go 1.36, tools/clientcmd (loader.go: merging; validation.go: what must be there;
client_config.go: what goes before what) and rest/config.go, InClusterConfig.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yarl import URL

from scheduler.client.auth_source import AuthSource, StaticAuth, TokenFile, bearer
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ClientConfigError
from scheduler.client.exec_plugin import ExecPlugin
from scheduler.client.proxy import checked_proxy, environment_proxy
from scheduler.client.tls import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")


class _Entry:
    """A named cluster, context or user, and the file that it stands in."""

    def __init__(self, name: str, value: dict[str, Any], path: Path) -> None:
        self.name = name
        self.value = value
        self.path = path


class _Kubeconfig:
    """What several files say together: of each name the first entry counts."""

    def __init__(self) -> None:
        self.current_context = ""
        self.entries: dict[str, dict[str, _Entry]] = {section: {} for section in _SECTIONS}

    def merge(self, path: Path) -> None:
        config = _parse(path)
        if not self.current_context:
            self.current_context = config.get("current-context") or ""
        for section, key in _SECTIONS.items():
            for i, item in enumerate(_list(config, section, path)):
                where = f"kubeconfig {path}: {section}[{i}]"
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise ClientConfigError(f"{where} has no name")
                value = item.get(key)
                if not isinstance(value, dict | None):
                    raise ClientConfigError(f"{where}.{key} is not a mapping")
                # A null is as good as nothing to kubectl; the library stumbles over it.
                given = {k: v for k, v in (value or {}).items() if v is not None}
                self.entries[section].setdefault(item["name"], _Entry(item["name"], given, path))

    def find(self, section: str, name: object, wanted_by: str) -> _Entry:
        entries = self.entries[section]
        if isinstance(name, str) and name in entries:
            return entries[name]
        there = ", ".join(sorted(entries)) or "none"
        raise ClientConfigError(f"{wanted_by} {name!r}, but its {section} are: {there}")


async def read_kubeconfig(paths: Sequence[Path]) -> Credentials:
    """Read kubeconfig files; of what stands in more than one, the first counts.

    Parameters
    ----------
    paths
        At least one.

    Raises
    ------
    ClientConfigError
        A file cannot be read or has a mistake in it.
    """
    config = _Kubeconfig()
    for path in paths:
        config.merge(path)
    where = "kubeconfig " + os.pathsep.join(map(str, paths))
    name = config.current_context
    if not name:
        there = ", ".join(sorted(config.entries["contexts"])) or "none"
        raise ClientConfigError(
            f"{where}: there is no current-context; choose one with `kubectl config use-context` "
            f"(its contexts are: {there})"
        )
    chosen = config.find("contexts", name, f"{where} has the current-context")
    in_context = f"{where}: context {name!r} names the"
    cluster = config.find("clusters", chosen.value.get("cluster"), f"{in_context} cluster")
    user = _Entry("", {}, chosen.path)
    if chosen.value.get("user"):
        user = config.find("users", chosen.value["user"], f"{in_context} user")
    return await _credentials(cluster, user)


def read_service_account(folder: Path, environ: Mapping[str, str]) -> Credentials:
    """Read what the kubelet mounts into a pod.

    Parameters
    ----------
    folder
        Holds ``token`` and ``ca.crt``.
    environ
        Has ``KUBERNETES_SERVICE_HOST`` and ``KUBERNETES_SERVICE_PORT``.

    Raises
    ------
    ClientConfigError
        Something of it is missing.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ClientConfigError(
            f"service account in {folder}: KUBERNETES_SERVICE_HOST or _PORT is not set"
        )
    authority = folder / "ca.crt"
    if not authority.is_file() or authority.stat().st_size == 0:
        raise ClientConfigError(
            f"service account in {folder}: there is no certification authority, ca.crt"
        )
    base_url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Credentials(
        base_url,
        source=TokenFile(folder / "token", "service account"),
        tls=TlsFiles("service account", ca_file=str(authority)),
        proxy=environment_proxy(base_url, environ),
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ClientConfigError(
            f"kubeconfig {path} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise ClientConfigError(f"kubeconfig {path} is not text in UTF-8") from error
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise ClientConfigError(f"kubeconfig {path} is not YAML: {problem}{at}") from error
    if config is None:
        raise ClientConfigError(f"kubeconfig {path} is empty")
    if not isinstance(config, dict):
        raise ClientConfigError(f"kubeconfig {path} is not a mapping but a {type(config).__name__}")
    return config


def _list(config: dict[str, Any], section: str, path: Path) -> list[Any]:
    items = config.get(section) or []
    if not isinstance(items, list):
        raise ClientConfigError(f"kubeconfig {path}: {section} is not a list")
    return items


async def _credentials(cluster: _Entry, user: _Entry) -> Credentials:
    in_cluster = f"kubeconfig {cluster.path}, cluster {cluster.name!r}"
    in_user = f"kubeconfig {user.path}, user {user.name!r}"
    server = cluster.value.get("server")
    if not _is_http_url(server):
        raise ClientConfigError(f"{in_cluster}: server is {server!r}, not an http(s):// URL")
    for key in _IMPERSONATION:
        if user.value.get(key):
            raise ClientConfigError(f"{in_user}: impersonation ({key!r}) is not supported")
    _check_certificate(cluster, "certificate-authority", in_cluster)
    _check_certificate(user, "client-certificate", in_user)
    _check_certificate(user, "client-key", in_user)
    base_url = str(server)
    tls = None
    if base_url.startswith("https://"):
        tls = TlsFiles(
            f"{in_cluster}, user {user.name!r}",
            ca_file=_file(cluster, "certificate-authority"),
            cert_file=_file(user, "client-certificate"),
            key_file=_file(user, "client-key"),
            ca_data=_embedded(cluster, "certificate-authority", in_cluster),
            cert_data=_embedded(user, "client-certificate", in_user),
            key_data=_embedded(user, "client-key", in_user),
            verify=not cluster.value.get("insecure-skip-tls-verify"),
        )
    proxy = cluster.value.get("proxy-url")
    return Credentials(
        base_url,
        source=await _auth_source(cluster, user, in_user),
        tls=tls,
        tls_server_name=cluster.value.get("tls-server-name") or None,
        proxy=checked_proxy(str(proxy), f"{in_cluster}: proxy-url")
        if proxy
        else environment_proxy(base_url, os.environ),
    )


def _is_http_url(value: object) -> bool:
    try:
        url = URL(value) if isinstance(value, str) else URL()
    except ValueError:
        return False
    return url.scheme in ("https", "http") and bool(url.host)


async def _auth_source(cluster: _Entry, user: _Entry, where: str) -> AuthSource:
    folder = user.path.absolute().parent
    if user.value.get("auth-provider"):
        # The only user who must wait for the client library's import.
        from scheduler.client.auth_provider import provider_auth  # noqa: PLC0415 - see above

        return await provider_auth(cluster.value, user.value, user.path, where)
    if plugin := user.value.get("exec"):
        if not isinstance(plugin, dict):
            raise ClientConfigError(f"{where}: exec is not a mapping")
        told = _cluster_info(cluster)
        return ExecPlugin.from_config(where, plugin, folder, told)
    if token_file := user.value.get("tokenFile"):
        return TokenFile(folder / str(token_file), where)
    if token := user.value.get("token"):
        return StaticAuth(bearer(str(token), where))
    if username := user.value.get("username"):
        pair = f"{username}:{user.value.get('password', '')}"
        return StaticAuth(f"Basic {base64.b64encode(pair.encode()).decode()}")
    return StaticAuth()


def _embedded(entry: _Entry, key: str, where: str) -> str | None:
    """Return what stands under ``key-data``: PEM, which is text."""
    data = entry.value.get(f"{key}-data")
    if not data:
        return None
    try:
        pem = base64.b64decode("".join(str(data).split()), validate=True)
    except ValueError as error:
        raise ClientConfigError(f"{where}: {key}-data is not base64") from error
    return pem.decode("ascii", "replace")


def _file(entry: _Entry, key: str) -> str | None:
    """Return the path of a file; the file that the entry stands in is where it begins."""
    name = entry.value.get(key)
    if not name or entry.value.get(f"{key}-data"):
        return None
    return str(entry.path.absolute().parent / str(name))


def _check_certificate(entry: _Entry, key: str, where: str) -> None:
    if _embedded(entry, key, where) is not None:
        return
    path = _file(entry, key)
    if path is not None and not Path(path).is_file():
        raise ClientConfigError(f"{where}: {key} names {path}, which is not a file")


def _cluster_info(cluster: _Entry) -> dict[str, Any]:
    """Return the cluster as an exec plugin is told of it: with the authority itself."""
    told = dict(cluster.value)
    name = told.get("certificate-authority")
    if name and not told.get("certificate-authority-data"):
        pem = (cluster.path.absolute().parent / str(name)).read_bytes()
        told["certificate-authority-data"] = base64.b64encode(pem).decode()
    return told

"""Kubeconfig files and service accounts, read with the client library's own loaders.

The library finds the certificates, decodes what is embedded, and knows the old auth-providers.
What it does badly is done here: it raises a KeyError or a TypeError for most mistakes in the file,
takes the current context from the last of several files where kubectl takes the first, reads a
token file once, and swallows the failure of an exec plugin.

Source: client-go 1.36, tools/clientcmd (loader.go: merging; validation.go: what must be there).
"""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigLoader
from yarl import URL

from scheduler.client.auth_source import (
    AuthSource,
    ExecAuth,
    LibraryAuth,
    StaticAuth,
    TokenFile,
    bearer,
)
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ClientConfigError
from scheduler.client.exec_plugin import ExecPlugin
from scheduler.client.proxy import checked_proxy, environment_proxy
from scheduler.client.tls import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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


async def read_kubeconfig(paths: Sequence[Path], context: str | None) -> Credentials:
    """Read kubeconfig files; of what stands in more than one, the first counts.

    Parameters
    ----------
    paths
        At least one.
    context
        Name of a context, or None for the current one.

    Raises
    ------
    ClientConfigError
        A file cannot be read or has a mistake in it.
    """
    config = _Kubeconfig()
    for path in paths:
        config.merge(path)
    where = "kubeconfig " + os.pathsep.join(map(str, paths))
    name = context or config.current_context
    if not name:
        there = ", ".join(sorted(config.entries["contexts"])) or "none"
        raise ClientConfigError(
            f"{where}: there is no current-context; choose one with `kubectl config use-context` "
            f"(its contexts are: {there})"
        )
    asked = "was asked for context" if context else "has the current-context"
    chosen = config.find("contexts", name, f"{where} {asked}")
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
    configuration = Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(folder / "token"),
        cert_filename=str(folder / "ca.crt"),
        # Its way of renewing the token raises when the file is empty for a moment.
        try_refresh_token=False,
        environ=environ,
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ClientConfigError(f"service account in {folder}: {error}") from error
    base_url = str(configuration.host)
    return Credentials(
        base_url,
        source=TokenFile(folder / "token", "service account"),
        tls=TlsFiles("service account", ca_file=str(configuration.ssl_ca_cert)),
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
    loader = _loader(cluster, user)
    configuration = Configuration()
    try:
        await loader.load_and_set(configuration)
    except Exception as error:  # the library raises anything from KeyError to OSError
        raise ClientConfigError(f"{in_cluster}, user {user.name!r}: {error}") from error
    base_url = str(configuration.host)
    tls = None
    if base_url.startswith("https://"):
        tls = TlsFiles(
            f"{in_cluster}, user {user.name!r}",
            ca_file=configuration.ssl_ca_cert,
            cert_file=configuration.cert_file,
            key_file=configuration.key_file,
            verify=bool(configuration.verify_ssl),
        )
    proxy = cluster.value.get("proxy-url")
    return Credentials(
        base_url,
        source=_auth_source(loader, configuration, cluster, user, in_user),
        tls=tls,
        tls_server_name=configuration.tls_server_name or None,
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


def _loader(cluster: _Entry, user: _Entry) -> Any:
    # The library is given one context only, and of the user nothing that is done better here.
    by_library = dict(user.value)
    if by_library.pop("exec", None) or by_library.pop("tokenFile", None):
        by_library.pop("token", None)
    name = "chosen"
    return KubeConfigLoader(
        ConfigNode(
            "kubeconfig",
            {
                "current-context": name,
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "clusters": [_node(name, "cluster", cluster.value, cluster.path)],
                "users": [_node(name, "user", by_library, user.path)],
            },
        ),
        config_base_path=None,  # each entry's own file decides
    )


def _node(name: str, key: str, value: dict[str, Any], path: Path) -> Any:
    return ConfigNode(f"{path}/{name}", {"name": name, key: value}, str(path))


def _auth_source(
    loader: Any, configuration: Any, cluster: _Entry, user: _Entry, where: str
) -> AuthSource:
    folder = user.path.absolute().parent
    if user.value.get("auth-provider"):

        async def renew() -> object:
            await loader.load_and_set(configuration)
            return configuration.api_key.get("BearerToken")

        return LibraryAuth(renew, where)
    if plugin := user.value.get("exec"):
        if not isinstance(plugin, dict):
            raise ClientConfigError(f"{where}: exec is not a mapping")
        told = _cluster_info(cluster)
        return ExecAuth(ExecPlugin.from_config(where, plugin, folder, told))
    if token_file := user.value.get("tokenFile"):
        return TokenFile(folder / str(token_file), where)
    header = configuration.api_key.get("BearerToken")
    if header is None:
        return StaticAuth()
    kind, _, value = str(header).partition(" ")
    return StaticAuth(bearer(value, where) if kind == "Bearer" else str(header))


def _check_certificate(entry: _Entry, key: str, where: str) -> None:
    if data := entry.value.get(f"{key}-data"):
        try:
            base64.b64decode("".join(str(data).split()), validate=True)
        except ValueError as error:
            raise ClientConfigError(f"{where}: {key}-data is not base64") from error
    elif name := entry.value.get(key):
        path = entry.path.absolute().parent / str(name)
        if not path.is_file():
            raise ClientConfigError(f"{where}: {key} names {path}, which is not a file")


def _cluster_info(cluster: _Entry) -> dict[str, Any]:
    """Return the cluster as an exec plugin is told of it: with the authority itself."""
    told = dict(cluster.value)
    name = told.get("certificate-authority")
    if name and not told.get("certificate-authority-data"):
        pem = (cluster.path.absolute().parent / str(name)).read_bytes()
        told["certificate-authority-data"] = base64.b64encode(pem).decode()
    return told

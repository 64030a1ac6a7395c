"""Run the program that a kubeconfig names to obtain credentials, and read its output.

The client library runs such programs too, but logs their failure instead of reporting it, waits
for them without a limit, and knows neither ``provideClusterInfo`` nor commands beside the
kubeconfig.

*Source*: client-go 1.36, plugin/pkg/client/auth/exec/exec.go; client.authentication.k8s.io.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.value import Value
from scheduler.client.auth_source import Grant, bearer
from scheduler.client.errors import ClientConfigError
from scheduler.client.tls import CertificatePair

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TIMEOUT_S: Final = 60.0

_API_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)


class ExecPlugin(Value, frozen=True):
    """How to run a plugin; it is run when what it gave before runs out.

    Attributes
    ----------
    where
        Whose it is, for error messages.
    command
        A path, or a name to be looked up on ``$PATH``.
    cluster
        What the plugin is told of the cluster, or None.
    """

    where: str
    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    install_hint: str = ""

    @classmethod
    def from_config(
        cls, where: str, config: Mapping[str, Any], base_path: Path, cluster: Mapping[str, Any]
    ) -> ExecPlugin:
        """Read the ``exec`` of a kubeconfig's user.

        Parameters
        ----------
        base_path
            The kubeconfig's folder: a command with a slash in it is relative to that.
        cluster
            The kubeconfig's cluster, for ``provideClusterInfo``.

        Raises
        ------
        ClientConfigError
            It cannot be run, whatever the program.
        """
        command = config.get("command")
        api_version = config.get("apiVersion")
        if not isinstance(command, str) or not command:
            raise ClientConfigError(f"{where}: exec.command is missing")
        if api_version not in _API_VERSIONS:
            raise ClientConfigError(
                f"{where}: exec.apiVersion is {api_version!r}, "
                f"not one of {', '.join(_API_VERSIONS)}"
            )
        if config.get("interactiveMode") == "Always":
            raise ClientConfigError(
                f"{where}: {command} wants a terminal (interactiveMode: Always), which a "
                "scheduler does not have"
            )
        if "/" in command:
            command = str(base_path / command)
        try:
            args = tuple(str(arg) for arg in config.get("args") or ())
            env = {str(item["name"]): str(item["value"]) for item in config.get("env") or ()}
        except (TypeError, KeyError) as error:
            raise ClientConfigError(
                f"{where}: exec.args has to be a list, exec.env a list of name and value"
            ) from error
        return cls(
            where=where,
            command=command,
            api_version=str(api_version),
            args=args,
            env=env,
            cluster=_cluster_info(cluster) if config.get("provideClusterInfo") else None,
            install_hint=str(config.get("installHint") or ""),
        )

    async def obtain(self) -> Grant:
        """Run the program and return what it gave: a token, a client certificate, or both.

        Raises
        ------
        ClientConfigError
            It cannot be found or run, it failed, ran for more than `TIMEOUT_S`, or its answer is
            not an ExecCredential.

        *Concurrency*: the program runs in a thread's keeping, because child processes of a loop
        are at home in the main thread only.
        """
        return await asyncio.to_thread(self._run)

    def _run(self) -> Grant:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        try:
            done = subprocess.run(  # noqa: S603 - the kubeconfig's owner chose the program
                [self.command, *self.args],
                env={
                    **os.environ,
                    **self.env,
                    "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            hint = f": {self.install_hint.strip()}" if self.install_hint else ""
            raise ClientConfigError(
                f"{self.where}: the program {self.command} was not found{hint}"
            ) from None
        except subprocess.TimeoutExpired:
            raise self._failure(f"gave no answer within {TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise self._failure(f"cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            said = f": {lines[-1].strip()}" if lines else ""
            raise self._failure(f"ended with status {done.returncode}{said}")
        return self._read(done.stdout)

    def _read(self, output: bytes) -> Grant:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._failure(f"did not print an ExecCredential: {error}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self.api_version:
            raise self._failure(
                f"printed {answer.api_version} {answer.kind}, not {self.api_version} ExecCredential"
            )
        status = answer.status
        if status is None:
            raise self._failure("printed no status")
        pair = None
        if status.client_certificate_data and status.client_key_data:
            pair = CertificatePair(status.client_certificate_data, status.client_key_data)
        elif status.client_certificate_data or status.client_key_data:
            raise self._failure("printed a certificate without its key, or a key alone")
        if not status.token and pair is None:
            raise self._failure("printed neither a token nor a certificate")
        valid_for_s = math.inf
        if status.expiration_timestamp is not None:
            left = status.expiration_timestamp - dt.datetime.now(dt.UTC)
            valid_for_s = max(left.total_seconds(), 0.0)
        return Grant(
            header=bearer(status.token, self.where) if status.token else None,
            pair=pair,
            # The last tenth, at most a minute, is for the program to run in.
            fresh_for_s=max(valid_for_s * 0.9, valid_for_s - 60.0),
            valid_for_s=valid_for_s,
        )

    def _failure(self, what: str) -> ClientConfigError:
        return ClientConfigError(f"{self.where}: the program {self.command} {what}")


class _AnswerStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    # A Go time always has a zone; one without is refused.
    expiration_timestamp: dt.datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _AnswerStatus | None = None


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    keys = (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
        "proxy-url",
    )
    info = {key: cluster[key] for key in keys if cluster.get(key)}
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info

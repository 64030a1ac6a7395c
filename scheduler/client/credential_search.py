"""Find the API server and the credentials: in kubeconfig files, or in the pod of this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scheduler.client.errors import ClientConfigError
from scheduler.client.kubeconfig import read_kubeconfig, read_service_account

if TYPE_CHECKING:
    from scheduler.client.credentials import Credentials

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


async def load_credentials(kubeconfig: str | None) -> Credentials:
    """Find the way to the API server and check everything that can be checked without it.

    The first of these that is there: `kubeconfig`; the files in ``$KUBECONFIG``; the service
    account of the pod that this runs in; ``~/.kube/config``.

    Parameters
    ----------
    kubeconfig
        Path of a kubeconfig file.

    Raises
    ------
    ClientConfigError
        Nothing was found, or what was found cannot be used: one sentence that says what and why.
    """
    paths = _kubeconfig_paths(kubeconfig)
    if paths:
        credentials = await read_kubeconfig(paths)
    else:
        credentials = read_service_account(SERVICE_ACCOUNT_FOLDER, os.environ)
    await credentials.auth_header()
    return credentials


def own_namespace() -> str | None:
    """Return the namespace of the pod that this runs in; None outside of any."""
    try:
        return (SERVICE_ACCOUNT_FOLDER / "namespace").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _kubeconfig_paths(kubeconfig: str | None) -> list[Path]:
    """Return the files to read; none of them for the pod's service account."""
    if kubeconfig is not None:
        return [Path(kubeconfig).expanduser()]
    if variable := os.environ.get("KUBECONFIG"):
        paths = [Path(name).expanduser() for name in variable.split(os.pathsep) if name]
        # As with kubectl, some of a list may be missing. If all are, the message is about the
        # first.
        return [path for path in paths if path.exists()] or paths[:1]
    if _in_cluster():
        return []
    path = Path.home() / ".kube" / "config"
    if path.exists():
        return [path]
    raise ClientConfigError(
        "no kubeconfig was given, $KUBECONFIG is not set, this is not a pod with a service "
        f"account, and there is no {path}"
    )


def _in_cluster() -> bool:
    return bool(
        os.environ.get("KUBERNETES_SERVICE_HOST")
        and os.environ.get("KUBERNETES_SERVICE_PORT")
        and (SERVICE_ACCOUNT_FOLDER / "token").exists()
    )

"""What the Dockerfile builds with, pinned: ``make pins``.

the base image      by the digest that its registry has for the tag; the Dockerfile names both
the build tools     with hashes, out of uv.lock; image/build-tools.txt
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Final

from tests.deploy.chart import ROOT

DOCKERFILE: Final = ROOT / "Dockerfile"
BUILD_TOOLS: Final = ROOT / "image" / "build-tools.txt"
BASE: Final = re.compile(
    r"^ARG BASE=(?P<host>[^/@\s]+)/(?P<name>[^:@\s]+):(?P<tag>[^@\s]+)"
    r"@(?P<digest>sha256:[0-9a-f]{64})$",
    re.MULTILINE,
)
_EXPORT: Final = ("export", "--frozen", "--only-group", "build", "--no-emit-project", "--no-header")
_KINDS: Final = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json"
)
"""Lists of the images of all architectures, and not the image of one."""

_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_TIMEOUT_S: Final = 30.0
_HUB: Final = {"docker.io": "https://registry-1.docker.io"}
"""Where a registry is that is not at its name."""


def digest_of(url: str, name: str, tag: str) -> str:
    """Return the digest that a registry has for a tag.

    Raises
    ------
    OSError
        It cannot be reached, or refuses.
    ValueError
        It answers without one.
    """
    asked = urllib.request.Request(
        f"{url}/v2/{name}/manifests/{tag}", method="HEAD", headers={"Accept": _KINDS}
    )
    try:
        answer = urllib.request.urlopen(asked, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != 401:
            raise
        with error:
            token = _token(error.headers.get("WWW-Authenticate", ""))
        asked.add_header("Authorization", f"Bearer {token}")
        answer = urllib.request.urlopen(asked, timeout=_TIMEOUT_S)
    with answer:
        digest = str(answer.headers.get("Docker-Content-Digest", ""))
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"{url} has no digest for {name}:{tag}: {digest!r}")
    return digest


def _token(challenge: str) -> str:
    """Return a token for whoever is asked to bring one."""
    found = dict(_PARAMETER.findall(challenge))
    query = urllib.parse.urlencode(
        {key: found[key] for key in ("service", "scope") if key in found}
    )
    with urllib.request.urlopen(f"{found['realm']}?{query}", timeout=_TIMEOUT_S) as answer:
        return str(json.load(answer)["token"])


def pinned(text: str, digest: str) -> str:
    """Return the Dockerfile with another digest of its base."""
    (found,) = BASE.finditer(text)
    return text[: found.start("digest")] + digest + text[found.end("digest") :]


def build_tools() -> str:
    """Return what uv.lock says of the build tools, as pip reads it."""
    command = [shutil.which("uv") or str(ROOT / ".uv/bin/uv"), *_EXPORT]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Write both anew."""
    BUILD_TOOLS.write_text(build_tools())
    text = DOCKERFILE.read_text()
    (base,) = BASE.finditer(text)
    host = base["host"]
    digest = digest_of(_HUB.get(host, f"https://{host}"), base["name"], base["tag"])
    DOCKERFILE.write_text(pinned(text, digest))
    print(f"{host}/{base['name']}:{base['tag']}@{digest}")


if __name__ == "__main__":
    main()

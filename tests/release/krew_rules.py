"""The rules for manifests of krew plugins, written anew, and those for what krew extracts.

*Source*: krew v0.4.5: `site/content/docs/developer-guide/plugin-manifest.md` and
`naming-guide.md` for the fields, `internal/index/validation/validate.go` and
`internal/installation/semver/version.go` for what is refused, `pkg/index/types.go` for the names
of all fields, `internal/download/downloader.go` for archives.
"""

from __future__ import annotations

import re
import tarfile
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

API_VERSION: Final = "krew.googlecontainertools.github.com/v1alpha2"

_MANIFEST: Final = {"apiVersion", "kind", "metadata", "spec"}
_SPEC: Final = {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
_PLATFORM: Final = {"uri", "sha256", "bin", "files", "license", "selector"}
_OPERATORS: Final = {"In", "NotIn", "Exists", "DoesNotExist"}
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_WINDOWS: Final = re.compile(r"con|prn|aux|nul|com[1-9]|lpt[1-9]")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MAX_SHORT: Final = 50
"""``kubectl krew search`` cuts it there."""

# semver.org: no leading zeros in numbers; pre-release and build metadata are optional.
_VERSION: Final = re.compile(
    r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][\w-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][\w-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)


def problems(manifest: Mapping[str, Any], name: str) -> list[str]:
    """Return why krew or its index would refuse a manifest, each with its path; empty if not.

    Parameters
    ----------
    name
        Of its file, without the extension.
    """
    return [*_of_head(manifest, name), *_of_spec(manifest.get("spec") or {})]


def _of_head(manifest: Mapping[str, Any], name: str) -> Iterator[str]:
    yield from _unknown(manifest, _MANIFEST, "")
    if manifest.get("apiVersion") != API_VERSION:
        yield f"apiVersion: must be {API_VERSION}"
    if manifest.get("kind") != "Plugin":
        yield "kind: must be Plugin"
    own = (manifest.get("metadata") or {}).get("name")
    if own != name:
        yield f"metadata.name: must be {name}, the name of the file"
    if not _NAME.fullmatch(name) or _WINDOWS.fullmatch(name):
        yield "metadata.name: must be lower-case words with dashes between them"
    if name.startswith("kubectl"):
        yield "metadata.name: must not repeat kubectl"


def _of_spec(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(spec, _SPEC, "spec.")
    if not _VERSION.fullmatch(str(spec.get("version", ""))):
        yield "spec.version: must be a semantic version with the prefix v"
    short = spec.get("shortDescription") or ""
    if not short or "\n" in short or "\r" in short:
        yield "spec.shortDescription: must be one line"
    if len(short) > _MAX_SHORT:
        yield f"spec.shortDescription: must not exceed {_MAX_SHORT} characters"
    for field in ("description", "homepage"):
        if not spec.get(field):
            yield f"spec.{field}: is required"
    platforms = spec.get("platforms") or []
    if not platforms:
        yield "spec.platforms: must have at least one platform"
    for index, platform in enumerate(platforms):
        yield from _of_platform(platform, f"spec.platforms[{index}]")


def _of_platform(platform: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _unknown(platform, _PLATFORM, f"{path}.")
    uri = str(platform.get("uri", ""))
    if not re.fullmatch(r"https://\S+\.(tar\.gz|zip)", uri):
        yield f"{path}.uri: must be the https address of a .tar.gz or .zip archive"
    if not _SHA256.fullmatch(str(platform.get("sha256", ""))):
        yield f"{path}.sha256: must be 64 lower-case hexadecimal digits"
    if not platform.get("bin"):
        yield f"{path}.bin: is required"
    if "files" in platform:
        yield from _of_files(platform["files"], f"{path}.files")
    yield from _of_selector(platform.get("selector"), f"{path}.selector")


def _of_files(files: Any, path: str) -> Iterator[str]:
    if not files:
        yield f"{path}: must be absent or not empty"
        return
    for index, operation in enumerate(files):
        for field in ("from", "to"):
            if not operation.get(field):
                yield f"{path}[{index}].{field}: is required"


def _of_selector(selector: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    if not selector:
        yield f"{path}: is required"
        return
    yield from _unknown(selector, {"matchLabels", "matchExpressions"}, f"{path}.")
    for field in selector:
        if not selector[field]:
            yield f"{path}.{field}: must not be empty"
    keys = list(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        keys.append(expression.get("key"))
        if expression.get("operator") not in _OPERATORS:
            yield f"{path}.matchExpressions: must have one of the operators {sorted(_OPERATORS)}"
    for key in keys:
        if key not in ("os", "arch"):
            yield f"{path}: must select by os and arch only, not by {key}"


def _unknown(found: Mapping[str, Any], known: set[str], prefix: str) -> Iterator[str]:
    for field in sorted(set(found) - known):
        yield f"{prefix}{field}: is no field of a manifest"


def archive_problems(archive: Path, program: str) -> list[str]:
    """Return why krew would not extract an archive, or not find the program in it."""
    found = []
    with tarfile.open(archive) as opened:
        entries = opened.getmembers()
    for entry in entries:
        if ".." in entry.name or entry.name.startswith(("/", "\\")):
            found.append(f"{entry.name}: the name is suspicious to krew")
        if not entry.isreg() and not entry.isdir():
            found.append(f"{entry.name}: krew extracts files and folders only")
    if not any(entry.name == program and entry.mode & 0o100 for entry in entries):
        found.append(f"{program}: the program is not in the archive")
    return found

"""Return the bill of materials of an image: of all that is locked, what is installed there.

    uv export --format cyclonedx1.5 | /opt/berth/bin/python sbom.py pyproject.toml BASE

The lock file is for every platform and every Python; an image has one of each. What is installed
and not locked ends the build.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

_SEPARATORS = re.compile(r"[-_.]+")


def installed() -> set[tuple[str, str]]:
    """Return names, normalised, and versions of the distributions of this interpreter."""
    return {
        (_SEPARATORS.sub("-", each.metadata["Name"]).lower(), each.version)
        for each in importlib.metadata.distributions()
    }


def narrowed(bom: dict[str, Any], there: set[tuple[str, str]]) -> dict[str, Any]:
    """Return a bill of materials with those components that are there.

    Raises
    ------
    ValueError
        Something is there that it does not list.
    """
    components = [each for each in bom["components"] if (each["name"], each["version"]) in there]
    missing = there - {(each["name"], each["version"]) for each in components}
    if missing:
        raise ValueError(f"installed and not locked: {sorted(missing)}")
    kept = {each["bom-ref"] for each in components} | {bom["metadata"]["component"]["bom-ref"]}
    dependencies = [
        {**each, "dependsOn": [ref for ref in each.get("dependsOn", ()) if ref in kept]}
        for each in bom["dependencies"]
        if each["ref"] in kept
    ]
    return {**bom, "components": components, "dependencies": dependencies}


def main(pyproject: str, base: str) -> None:
    """Read a bill of materials from standard input and write that of this image."""
    version = tomllib.loads(Path(pyproject).read_text(encoding="utf-8"))["project"]["version"]
    bom = narrowed(json.load(sys.stdin), installed())
    bom["metadata"]["component"]["version"] = version
    bom["metadata"]["properties"] = [{"name": "berth:base-image", "value": base}]
    python = {"type": "platform", "name": "cpython", "version": platform.python_version()}
    bom["components"].append({**python, "bom-ref": f"cpython@{python['version']}"})
    json.dump(bom, sys.stdout, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])

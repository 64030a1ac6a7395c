"""The bill of materials of the Python package: all locked dependencies, in CycloneDX.

An image has its own, which lists what is installed in it: see image/sbom.py.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tests.release.source import VERSION, run, uv

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = "cyclonedx1.5"


def build_bill(source: Path, target: Path, time: int) -> Path:
    """Write the bill of materials; the same bytes from each build."""
    export = [uv(), "export", "--frozen", "--no-dev", "--all-extras", "--quiet"]
    found: dict[str, Any] = json.loads(
        run([*export, f"--format={FORMAT}", "--preview-features=sbom-export"], folder=source)
    )
    # A number of its own for each run, and the time of the run.
    found.pop("serialNumber", None)
    found["metadata"]["timestamp"] = datetime.fromtimestamp(time, UTC).isoformat()
    found["metadata"]["component"]["version"] = VERSION
    file = target / f"berth-{VERSION}.cdx.json"
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return file

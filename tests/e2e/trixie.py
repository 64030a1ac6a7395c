"""``make test-trixie``: the tests that need no control plane, on Debian 13 and its Python 3.13.

They run in a container of the image that e2e's second version stands on, with what uv.lock has for
that Python. Arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Final

from tests.controlplane.binaries import ControlPlaneError
from tests.e2e.images import NEXT_VERSION, ROOT, SUITES, build_base, configure_storage, run_in
from tests.e2e.packages import install_packages

_SCRIPT: Final = "tests/e2e/trixie.sh"


def main(arguments: list[str]) -> int:
    """Return 0 if all tests pass."""
    if os.geteuid() != 0:
        sys.stderr.write("a container is made: run this as root\n")
        return 1
    started = time.monotonic()
    try:
        install_packages()
        configure_storage()
        base = build_base(SUITES[NEXT_VERSION])
        with tempfile.NamedTemporaryFile(suffix=".tar") as source:
            listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout
            pack = ["tar", "--create", "--file", source.name, "--null", "--files-from=-"]
            subprocess.run(pack, cwd=ROOT, check=True, input=names)
            run_in(base, ["sh", f"/src/{_SCRIPT}", *arguments], {source.name: "/src"}, shown=True)
    except ControlPlaneError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"{time.monotonic() - started:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

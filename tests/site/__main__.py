"""``make site``: the documentation as a site, in .build/site.

Pages keep the places that they have in the repository, so that a link that works there works in the
site. Other files to which pages link, such as source files and manifests, are copied beside them.
The build ends with an error if a link or an anchor leads nowhere, or if a page is not in the menu.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.site.pages import INDEX, ROOT, index_of, linked_files, pages, staged_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOURCE: Final = ROOT / ".build" / "site-source"
UV: Final = ROOT / ".uv" / "bin" / "uv"


def stage(target: Path = SOURCE) -> None:
    """Copy all pages, and the files that they link to."""
    shutil.rmtree(target, ignore_errors=True)
    for page in pages():
        place = target / page.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(staged_text(page), encoding="utf-8")
    for file in linked_files():
        place = target / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            shutil.copyfile(file, place)
        elif not (place / INDEX).exists():
            place.mkdir(exist_ok=True)
            (place / INDEX).write_text(index_of(file), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Build the site; return mkdocs' status. ``serve`` as an argument serves it on loopback."""
    stage()
    command = ["serve"] if list(arguments) == ["serve"] else ["build", "--strict", *arguments]
    uv = shutil.which("uv") or str(UV)
    group = ["run", "--frozen", "--quiet", "--isolated", "--only-group", "site"]
    # The theme's notice about its successor is for whoever chooses a theme.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [uv, *group, "mkdocs", *command]
    return subprocess.run(build, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

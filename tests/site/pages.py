"""The pages of the documentation, and what they link to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIG: Final = ROOT / "mkdocs.yml"

INDEX: Final = "README.md"

_NAMES: Final = {"adr": "Architecture decisions"}
"""Of folders without an index of their own."""

_FENCE: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_COMMENT: Final = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return all pages: those at the top, the chart's, and those in docs/."""
    top = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
    return [
        *top,
        ROOT / "deploy" / "charts" / "berth" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def links_of(page: Path) -> Iterator[Path]:
    """Yield the files of the repository to which a page links."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        yield (page.parent / target).resolve()


def linked_files() -> list[Path]:
    """Return the files and folders that are no pages and that pages link to."""
    known = set(pages())
    linked = {target for page in known for target in links_of(page)}
    return sorted(each for each in linked if each.exists() and each not in known)


def staged_text(page: Path) -> str:
    """Return the text of a page for the site.

    Comments on lines of their own are left out, and links to folders lead to their index.
    """

    def to_index(link: re.Match[str]) -> str:
        if not (page.parent / link[1]).is_dir():
            return link[0]
        return link[0].replace(link[1], f"{link[1].rstrip('/')}/{INDEX}")

    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    return _LINK.sub(to_index, text)


def index_of(folder: Path) -> str:
    """Return an index of the pages in a folder that has none of its own."""
    titles = [(page.name, title_of(page)) for page in sorted(folder.glob("*.md"))]
    listed = "".join(f"- [{title}]({name})\n" for name, title in titles)
    return f"# {_NAMES.get(folder.name, folder.name)}\n\n{listed}"


def title_of(page: Path) -> str:
    """Return the title of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def configuration() -> dict[str, Any]:
    """Return mkdocs.yml; names of Python objects in it are strings."""
    loader = type("_Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("tag:yaml.org,2002:python/", _as_text)
    found: dict[str, Any] = yaml.load(CONFIG.read_text(encoding="utf-8"), Loader=loader)
    return found


def _as_text(loader: Any, suffix: str, node: Any) -> str:
    return suffix


def in_menu(entry: Any) -> Iterator[str]:
    """Yield the pages of the menu, as paths in the repository."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for inner in entry.values():
            yield from in_menu(inner)
    else:
        for inner in entry:
            yield from in_menu(inner)

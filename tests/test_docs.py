"""The documentation held against the code, where that is cheap."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
    ROOT / "deploy" / "charts" / "berth" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "runbooks").glob("*.md")),
    *sorted((ROOT / "docs" / "examples").glob("*.md")),
    *sorted((ROOT / "docs" / "questions").glob("*.md")),
    *ADRS,
]
MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("cache", "plugins", "scheduler")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__init__.py"
)

PATH = re.compile(r"`((?:cache|plugins|scheduler|tests|deploy|docs)/[\w./-]*?)(?:::(\w+))?`")
FIRST_CELL = re.compile(r"^\| `([^`]+\.py)` \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#([^)]*))?\)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def every(found: list[tuple[Path, str]]) -> list[object]:
    """Return a row for each thing that a page names."""
    rows = sorted({(name_of(page), thing) for page, thing in found})
    return [pytest.param(thing, id=f"{page}: {thing}") for page, thing in rows]


@cache
def functions_in(path: str) -> frozenset[str]:
    """Return the names of all functions and methods in a file of tests."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize(
    "path", every([(page, match[1]) for page in PAGES for match in PATH.finditer(text_of(page))])
)
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    "test",
    every(
        [
            (page, f"{match[1]}::{match[2]}")
            for page in PAGES
            for match in PATH.finditer(text_of(page))
            if match[2]
        ]
    ),
)
def test_a_test_that_is_named_exists(test: str) -> None:
    path, name = test.split("::")
    assert name in functions_in(path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(text_of(page)):
        target = page.parent / match[1]
        assert target.exists(), match[0]
        if match[2]:
            headings = re.findall(r"^#+ (.*)$", text_of(target), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
            assert match[2] in anchors, match[0]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_make_target_that_is_named_exists(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):.*##", text_of(ROOT / "Makefile"), re.MULTILINE)
    for named in re.findall(r"(?:^|`)make ([a-z][a-z -]*[a-z])", text_of(page), re.MULTILINE):
        assert set(named.split()) <= set(targets), named


def test_the_readme_shows_the_two_commands() -> None:
    readme = text_of(ROOT / "README.md")
    assert all(f"\nmake {target} " in readme for target in ("demo", "test"))


@pytest.mark.parametrize("page", ADRS, ids=name_of)
def test_a_choice_names_the_test_that_would_fail(page: Path) -> None:
    confirmation = text_of(page).split("### Confirmation", 1)[1]
    assert any(match[2] for match in PATH.finditer(confirmation))


def test_choices_are_numbered_without_a_gap() -> None:
    assert [page.name[:5] for page in ADRS] == [f"{n:04}-" for n in range(1, len(ADRS) + 1)]


def test_every_difference_in_the_code_is_told() -> None:
    different = {m for m in MODULES if "Differs:" in text_of(ROOT / m)}
    told = set(FIRST_CELL.findall(text_of(ROOT / "docs" / "differences.md")))
    assert told == different

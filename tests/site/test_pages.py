from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.site.__main__ import stage
from tests.site.pages import ROOT, configuration, in_menu, index_of, links_of, pages, staged_text

if TYPE_CHECKING:
    from pathlib import Path

MENU = list(in_menu(configuration()["nav"]))
GENERATED = {"docs/adr/README.md"}


def test_each_page_is_in_the_menu_once() -> None:
    named = {page.relative_to(ROOT).as_posix() for page in pages()}
    assert sorted(MENU) == sorted(named | GENERATED)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert [target for target in links_of(page) if not target.exists()] == []


def test_a_link_to_a_folder_leads_to_its_index() -> None:
    assert "](docs/adr/README.md)" in staged_text(ROOT / "README.md")
    assert "](docs/runbooks/README.md)" in staged_text(ROOT / "README.md")


def test_an_index_lists_the_titles(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# The second\n\nText\n")
    (tmp_path / "a.md").write_text("# The first\n")
    expected = f"# {tmp_path.name}\n\n- [The first](a.md)\n- [The second](b.md)\n"
    assert index_of(tmp_path) == expected


def test_staged_pages_have_all_that_they_link_to(tmp_path: Path) -> None:
    stage(tmp_path)
    for page in tmp_path.rglob("*.md"):
        assert [target for target in links_of(page) if not target.exists()] == [], page


def test_the_site_asks_no_other_server() -> None:
    theme = configuration()["theme"]
    assert theme["font"] is False
    assert "analytics" not in configuration().get("extra", {})

"""The pages about questions show what their commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tutorial.__main__ import QUESTIONS, TUTORIAL, follow, installed
from tests.tutorial.pages import Command, File, matches, steps, with_output
from tests.tutorial.session import Session

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
# A page

```yaml title="a/b.yaml"
kind: Pod
```

<!-- for: live -->
```console
$ echo one \\
    two
one two
$ true
$ printf 'a\\n\\nb\\n'
a

b
```

```python
x = 1
```
"""


@pytest.mark.parametrize("page", QUESTIONS, ids=lambda page: page.stem)
def test_the_outputs_of_a_page_are_real(page: Path, tmp_path: Path) -> None:
    for line, shown, printed, _ in follow(page, tmp_path, (), installed()):
        pytest.fail("\n".join([f"$ {line}", "page:", *shown, "printed:", *printed]))


@pytest.mark.parametrize("page", [*QUESTIONS, TUTORIAL], ids=lambda page: page.stem)
def test_a_page_has_commands(page: Path) -> None:
    assert any(isinstance(step, Command) for step in steps(page.read_text(encoding="utf-8")))


def test_a_page_is_read_as_steps() -> None:
    assert list(steps(PAGE)) == [
        File("a/b.yaml", "kind: Pod\n"),
        Command("echo one \\\n    two", ("one two",), "live"),
        Command("true", (), "live"),
        Command("printf 'a\\n\\nb\\n'", ("a", "", "b"), "live"),
    ]


def test_the_commands_of_a_page_print_what_it_shows(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert list(follow(page, tmp_path, {"live"}, {})) == []


def test_a_false_output_is_found_and_mended(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("one two\n$", "one\n$"))
    ((line, shown, printed, text),) = follow(page, tmp_path, {"live"}, {})
    assert (line, shown, printed) == ("echo one \\\n    two", ("one",), ("one two",))
    assert text == PAGE


@pytest.mark.parametrize(
    ("shown", "printed", "matched"),
    [
        pytest.param(("a",), ("a",), True, id="the same"),
        pytest.param(("a",), ("b",), False, id="another"),
        pytest.param(("a",), ("a", "b"), False, id="more"),
        pytest.param(("a ... c",), ("a b c",), True, id="any text"),
        pytest.param(("a ... c",), ("a b d",), False, id="any text, then another"),
        pytest.param(("a", "...", "d"), ("a", "b", "c", "d"), True, id="any lines"),
        pytest.param(("...",), (), True, id="no lines"),
        pytest.param(("a.c",), ("abc",), False, id="no pattern"),
        pytest.param(("a",), ("a  ",), True, id="blanks at the end"),
    ],
)
def test_outputs_are_compared(
    shown: tuple[str, ...], printed: tuple[str, ...], matched: bool
) -> None:
    assert matches(shown, printed) == matched


def test_an_output_that_is_shown_twice_cannot_be_replaced() -> None:
    with pytest.raises(AssertionError, match="not once in the page: true"):
        with_output("$ true\n$ true\n", Command("true", ()), ("a",))


def test_a_session_remembers(tmp_path: Path) -> None:
    with Session(tmp_path, {"GIVEN": "1"}) as session:
        session.run("cd / && here=$GIVEN")
        assert session.run('echo "$PWD $here"') == ("/ 1",)
        assert session.run("printf no-newline") == ("no-newline",)
        assert session.run("echo error >&2") == ("error",)

"""Mistakes that schedulers have made before, each as a text that says what happened.

Every scenario is played twice: with the scheduler as it is, where all that is expected holds, and
with the mechanism taken out that stands in the way of the mistake, where something does not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.regressions.broken_variants import VARIANTS
from tests.regressions.script import Script, ScriptError, UnmetError, parse, read
from tests.regressions.world import World

FOLDER = Path(__file__).parent
PATHS = sorted((FOLDER / "scenarios").glob("*.txt"))
EVERY = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PATHS])

HEAD = "A title\nthread: some/where#1\nbroken: undo-wakes-nobody\n"


def play(script: Script) -> None:
    async def scene() -> None:
        async with World() as world:
            await script.play(world)

    asyncio.run(scene())


@EVERY
def test_the_mistake_is_not_made(path: Path) -> None:
    play(read(path))


@EVERY
def test_the_mistake_would_be_noticed(path: Path) -> None:
    script = read(path)
    with VARIANTS[script.broken](), pytest.raises(UnmetError):
        play(script)


def test_every_variant_is_noticed_by_a_scenario() -> None:
    assert {read(path).broken for path in PATHS} == set(VARIANTS)


@EVERY
def test_the_table_has_a_line_for_it(path: Path) -> None:
    script = read(path)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    threads = ", ".join(script.threads)
    assert f"| `{path.name}` | {script.title} | {threads} | `{script.broken}` |" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "x.txt:1: the first line is the title", id="empty"),
        pytest.param("T\nbroken: x\n", "x.txt:2: this line is 'thread: ...'", id="no thread"),
        pytest.param(
            "T\nthread: 12\nbroken: undo-wakes-nobody\n", "x.txt:2: '12' is no", id="bad thread"
        ),
        pytest.param("T\nthread: a/b#1\n", "x.txt:3: this line is 'broken: ...'", id="no variant"),
        pytest.param(
            "T\nthread: a/b#1\nbroken: x\n", "x.txt:3: there is no variant 'x'", id="bad variant"
        ),
        pytest.param(f"{HEAD}cycle\n", "x.txt:4: nothing is expected", id="no expectation"),
        pytest.param(
            f"{HEAD}\njump\nexpect rest\n", "x.txt:5: no step reads 'jump'", id="bad step"
        ),
        pytest.param(
            f"{HEAD}node a size=4\nexpect rest\n", "x.txt:4: 'size=4' is none of cpu=", id="option"
        ),
        pytest.param(
            f"{HEAD}pod a cpu=x\nexpect rest\n", "x.txt:4: 'cpu=x': 'x' is no number", id="number"
        ),
        pytest.param(
            f"{HEAD}expect joy\n", "x.txt:4: nothing can be expected as 'joy'", id="bad expectation"
        ),
        pytest.param(
            f"{HEAD}meanwhile cycle\nexpect rest\n",
            "x.txt:4: 'cycle' cannot happen in the middle",
            id="cycle in a cycle",
        ),
    ],
)
def test_a_scenario_that_cannot_be_read_says_where(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match="^" + message.replace("(", r"\(")):
        parse(text, "x.txt")


def test_what_is_not_met_says_where_and_what_is() -> None:
    script = parse(f"{HEAD}node a\npod web\ncycle\nexpect backoff: web\n", "x.txt")
    with pytest.raises(UnmetError, match=r"^x\.txt:7: expect backoff: web: found nobody$"):
        play(script)

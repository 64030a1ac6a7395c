"""What needs git: revisions of the repository, unpacked to be measured."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.house.__main__ import main
from tests.house.checkout import CheckoutError, checked_out

if TYPE_CHECKING:
    from pathlib import Path

    from tests.house.conftest import Build

FILES = {f"{package}/__init__.py": "" for package in ("cache", "plugins")}
FILES |= {"scheduler/app.py": "import scheduler.loop\n"}


@pytest.fixture
def repository(build: Build) -> Path:
    """Return a repository with one commit."""
    root = build(FILES | {"tests/test_nothing.py": ""})
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com"]
        subprocess.run(["git", *identity, *command], cwd=root, check=True)
    return root


def test_a_revision_is_as_it_was(repository: Path) -> None:
    (repository / "scheduler" / "app.py").write_text("", encoding="utf-8")
    with checked_out("HEAD", repository) as folder:
        assert (folder / "scheduler" / "app.py").read_text() == FILES["scheduler/app.py"]
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("v9", "'v9' is neither a folder nor a revision: ", id="revision"),
        pytest.param("scheduler", "has no folder cache, plugins, scheduler", id="folder"),
    ],
)
def test_what_is_no_checkout_is_refused(
    repository: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    with pytest.raises(CheckoutError, match=message), checked_out(name, repository):
        pass


def test_an_unknown_checkout_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-revision", "--no-pod"]) == 2
    assert "neither a folder nor a revision" in capsys.readouterr().err

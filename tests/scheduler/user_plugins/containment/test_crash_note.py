"""What the next process gets to know."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from scheduler.user_plugins.containment.crash_note import POINTS, AtWork, Note, StateDirError


def run(script: str, path) -> int:
    """Run a script in a process of its own; return what it ended with."""
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)], timeout=300, check=False
    )
    return ended.returncode


BEGIN = """
    import os, pathlib, signal, sys
    from scheduler.user_plugins.containment.crash_note import Note
    note = Note(pathlib.Path(sys.argv[1]))
    slots = [note.enroll(name, f"digest-{name}") for name in ("One", "Two")]
    note.end(note.begin(slots[0], 0))
    before = note.begin(slots[1], 2)
"""
KILLED = BEGIN + "    os.kill(os.getpid(), signal.SIGKILL)"
GAVE_UP = BEGIN + "    note.give_up(); os._exit(1)"
CAME_BACK = BEGIN + "    note.end(before); os.kill(os.getpid(), signal.SIGKILL)"
CLOSED = BEGIN + "    note.close(); os._exit(0)"


@pytest.mark.parametrize(
    ("script", "left"),
    [
        pytest.param(KILLED, AtWork("Two", "digest-Two", "score", 2), id="killed within a call"),
        pytest.param(
            GAVE_UP, AtWork("Two", "digest-Two", "score", 2, hung=True), id="gave the call up"
        ),
        pytest.param(CAME_BACK, None, id="killed between two calls"),
        pytest.param(CLOSED, None, id="ended while a call was under way"),
    ],
)
def test_the_next_process_knows_what_was_at_work(tmp_path, script, left):
    run(script, tmp_path / "note")
    note = Note(tmp_path / "note")
    assert note.before == left
    note.close()


def test_a_new_note_says_nothing_of_the_old_one(tmp_path):
    run(KILLED, tmp_path / "note")
    Note(tmp_path / "note").close()
    note = Note(tmp_path / "note")
    assert note.before is None
    note.close()


@pytest.mark.parametrize(
    "content", [pytest.param(b"", id="empty"), pytest.param(b"x" * 70_000, id="something else")]
)
def test_a_file_that_is_no_note_is_written_anew(tmp_path, content):
    (tmp_path / "note").write_bytes(content)
    note = Note(tmp_path / "note")
    assert note.before is None
    note.close()


def test_two_processes_cannot_share_a_note(tmp_path):
    note = Note(tmp_path / "note")
    with pytest.raises(StateDirError, match="another process is using it"):
        Note(tmp_path / "note")
    note.close()


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StateDirError, match=r"nowhere/note: No such file or directory"):
        Note(tmp_path / "nowhere" / "note")


def test_a_call_within_a_call_gives_way_to_it_again():
    note = Note(None)
    outer, inner = note.enroll("Outer", "a"), note.enroll("Inner", "b")
    before = note.begin(outer, POINTS.index("filter"))
    note.end(note.begin(inner, POINTS.index("score")))
    assert note.at_work() == AtWork("Outer", "a", "filter", 2)
    note.end(before)
    assert note.at_work() is None


def test_one_plugin_has_one_record():
    note = Note(None)
    assert note.enroll("One", "a") == note.enroll("One", "a") != note.enroll("One", "b")


def test_more_plugins_than_records_are_told_without_a_name():
    note = Note(None)
    slots = {note.enroll(f"Plugin-{number}", "d") for number in range(300)}
    note.begin(max(slots), 0)
    assert note.at_work() == AtWork("", "", "filter", 1)


def test_a_long_name_is_cut_where_a_character_ends():
    note = Note(None)
    note.begin(note.enroll("ä" * 300, "d"), 0)
    at_work = note.at_work()
    assert at_work is not None
    assert at_work.plugin == "ä" * 96

"""Files of a journal that were cut, or are of another version, cluster or size."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from scheduler.cli import main
from scheduler.journal import Journal, JournalOptions, JournalWriter
from scheduler.journal.frames import (
    FORMAT,
    MAGIC,
    Header,
    encode,
    files_of,
    frame,
    header_frame,
    read_frames,
    read_header,
)
from scheduler.journal.segment_files import SegmentFiles
from tests.scheduler.journal.journaled import CUT, play_steps, replayed

if TYPE_CHECKING:
    from pathlib import Path

NAME = "0000000000001-00000{}.berth-journal"


def test_a_file_that_was_cut_anywhere_ends_at_its_last_complete_frame(tmp_path: Path) -> None:
    whole = header_frame(Header(FORMAT)) + frame(encode([["a"]])) + frame(encode([["b"]]))
    path = tmp_path / NAME.format(0)
    seen = set()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        header = read_header(path)
        frames = list(read_frames(path)) if header is not None else []
        assert frames == [[["a"]], [["b"]]][: len(frames)]
        seen.add((header is not None, len(frames)))
    assert seen == {(False, 0), (True, 0), (True, 1), (True, 2)}


def test_a_damaged_frame_ends_the_file(tmp_path: Path) -> None:
    whole = bytearray(header_frame(Header(FORMAT)) + frame(encode([["a"]])))
    whole[-3] ^= 1
    path = tmp_path / NAME.format(0)
    path.write_bytes(whole)
    assert list(read_frames(path)) == []


def test_a_journal_that_was_cut_is_replayed_up_to_there(tmp_path: Path) -> None:
    play_steps(["node n1", "pod p1", "cycle", "pod p2", "cycle"], tmp_path)
    (path,) = files_of(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert replayed(tmp_path).different == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(
            MAGIC + frame(encode({"format": 0, "berth": "0.0.9"})),
            "format 0, of an older version of berth (0.0.9)",
            id="older",
        ),
        pytest.param(
            MAGIC + frame(encode({"format": 99, "berth": "9.1"})),
            "format 99, of a newer version of berth (9.1)",
            id="newer",
        ),
        pytest.param(b"something else entirely", "is not a file of a journal", id="another file"),
        pytest.param(MAGIC + frame(encode([1])), "the header cannot be read", id="no header"),
        pytest.param(b"", "holds no journal", id="empty"),
        pytest.param(
            header_frame(Header(FORMAT)) + frame(encode([["decision", 1]])),
            "a record of kind 'decision'",
            id="senseless record",
        ),
        pytest.param(
            header_frame(Header(FORMAT)) + frame(encode([["node", 7]])),
            "a record of kind 'node'",
            id="object that is not there",
        ),
        pytest.param(
            header_frame(Header(FORMAT)) + frame(encode([["o", 1, 99, b""]])),
            "a record of kind 'o'",
            id="unknown type",
        ),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(
    content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME.format(0)).write_bytes(content)
    assert main(["replay", str(tmp_path)]) == 1
    assert told in capsys.readouterr().err


def test_files_of_two_clusters_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, cluster in enumerate(("uid-a", "uid-b")):
        path = tmp_path / NAME.format(number)
        path.write_bytes(header_frame(Header(FORMAT, cluster=cluster)))
    assert main(["replay", str(tmp_path)]) == 1
    assert "different clusters: " in (told := capsys.readouterr().err)
    assert "of uid-a" in told
    assert "of uid-b" in told


def test_a_directory_that_is_missing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 1
    assert "cannot be read: No such file or directory" in capsys.readouterr().err


def test_only_the_owner_can_read_files(tmp_path: Path) -> None:
    play_steps(["node n1", "pod p1", "cycle"], tmp_path / "new")
    (path,) = files_of(tmp_path / "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_oldest_files_are_deleted_beyond_the_bound(tmp_path: Path) -> None:
    files = SegmentFiles(JournalOptions(tmp_path, max_bytes=250))
    for number in range(5):
        files.open(NAME.format(number), b"x" * 100)
    files.close()
    assert [path.name for path in files_of(tmp_path)] == [NAME.format(3), NAME.format(4)]


def test_a_disk_that_fails_leaves_a_gap_and_is_tried_again(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.write_text("in the way")
    now = [0.0]
    journal = Journal(1, 1000)
    writer = JournalWriter(journal, JournalOptions(directory), lambda: now[0])
    journal.wants_cut = False
    journal.record("cut", [], "")
    writer.write_now()
    journal.record("renew", None, "n1")
    writer.write_now()
    assert writer.gaps == 1
    directory.unlink()
    now[0] = 100.0
    writer.write_now()
    assert journal.wants_cut
    journal.record("cut", [], "")
    writer.write_now()
    (path,) = files_of(directory)
    header = read_header(path)
    assert header is not None
    assert header.lost > 0


def test_an_entry_that_cannot_be_encoded_leaves_a_gap_and_the_disk_is_not_blamed(
    tmp_path: Path,
) -> None:
    journal = Journal(1, 1000)
    writer = JournalWriter(journal, JournalOptions(tmp_path))
    journal.record("cut", [], "")
    journal.record("renew", None, "n1")
    journal.record("decision", object(), "")
    journal.record("renew", None, "n2")
    with capture_logs() as logs:
        writer.write_now()
    told = [each["reason"] for each in logs if each["event"] == "journal has a gap"]
    assert told == ["an entry cannot be encoded"]
    assert writer.gaps == 1
    (path,) = files_of(tmp_path)
    assert [record for records in read_frames(path) for record in records] == [
        ["cut", [], ""],
        ["renew", None, "n1"],
    ]


def test_a_buffer_that_is_full_ends_the_journal_and_the_scheduler_goes_on(tmp_path: Path) -> None:
    journal = Journal(1, 10)
    writer = JournalWriter(journal, JournalOptions(tmp_path))
    journal.record("cut", [], "")
    for _ in range(20):
        journal.record("renew", None, "n1")
    assert len(journal.waiting) == 10
    writer.write_now()
    assert journal.is_over
    assert not journal.waiting


def test_a_replay_begins_at_any_file(tmp_path: Path) -> None:
    pods = [line for number in range(9) for line in (f"pod p{number}", "cycle")]
    pods[6:6] = [CUT]
    play_steps([*(f"node n{number}" for number in range(5)), *pods], tmp_path)
    assert replayed(tmp_path).equal == 9
    files_of(tmp_path)[0].unlink()
    later = replayed(tmp_path)
    assert (later.equal, later.different) == (6, 0)


def test_no_environment_command_or_secret_is_written(tmp_path: Path) -> None:
    play_steps(["node n1", "pod p1", "cycle"], tmp_path)
    (path,) = files_of(tmp_path)
    told = repr(list(read_frames(path)))
    assert "containers" in told
    for name in ("'env'", "envFrom", "command", "args:", "secret", "managedFields"):
        assert name not in told

"""A redacted journal is replayed to the same decisions, and contains no word of the original."""

from __future__ import annotations

import asyncio
import gc
import json
import stat
import threading
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.label_selectors import is_label_value
from cache.resources import is_extended_resource_name, is_qualified_name
from plugins.registry import PLUGINS
from scheduler.cli import main
from scheduler.journal import JournalOptions, JournalWriter
from scheduler.journal import aliases as aliases_module
from scheduler.journal import command as command_module
from scheduler.journal import redaction as redaction_module
from scheduler.journal.aliases import Aliases, WordCollector, is_kept
from scheduler.journal.frames import (
    FORMAT,
    Header,
    decode,
    encode,
    file_name,
    files_of,
    frame,
    header_frame,
    read_frames,
    read_header,
)
from scheduler.journal.kept_words import KEPT
from scheduler.journal.records import OBJECT, TYPES
from scheduler.journal.redacted_cel import HIDDEN, redacted_expression
from scheduler.journal.redacted_objects import redacted_object, walk_of
from scheduler.journal.redacted_records import DECISIONS, hidden, redacted_record
from scheduler.journal.redacted_texts import resource, version
from tests.regressions.bystander import Bystander, Judge
from tests.scheduler.cycle.test_group_histories import History
from tests.scheduler.journal.journaled import (
    CUT,
    KNOWN,
    JournaledScenario,
    play_lines,
    play_steps,
    play_world,
    quiet,
    replayed,
)
from tests.scheduler.journal.planted import FORMS, SECRET, planted, secrets
from tests.scheduler.journal.test_histories import BOUND_TO_A_VOLUME, arrives_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from scheduler.journal.aliases import Names

KEY = b"k" * 32
OF_TESTS = frozenset({Bystander.name, Judge.name})
KINDS = [pytest.param(index, id=kind.__name__) for index, kind in enumerate(TYPES)]


@pytest.fixture(autouse=True)
def plugins_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the plugins of worlds be Berth's own, whose names stay as they are."""
    monkeypatch.setattr(aliases_module, "KEPT", KEPT | OF_TESTS)
    monkeypatch.setattr(redaction_module, "PLUGINS", KNOWN)


def redact(directory: Path, target: Path, *more: str) -> None:
    assert main(["journal", "redact", str(directory), "-o", str(target), *more]) == 0


def aliases_for(use: Callable[[Names], object]) -> Aliases:
    """Return aliases for all words that something uses."""
    collector = WordCollector()
    use(collector)
    return Aliases(collector, KEY)


def plain_bytes(directory: Path) -> bytes:
    """Return all that is in the files of a journal, inflated."""
    found = b""
    for path in files_of(directory):
        header = read_header(path)
        assert header is not None
        found += encode(header) + b"".join(encode(records) for records in read_frames(path))
    return found


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        if value and value[0] == OBJECT:
            value = [decode(value[3])]
        for each in value:
            yield from strings_in(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings_in(each)


def test_decisions_of_users_plugins_are_compared_with_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(aliases_module, "KEPT", KEPT)
    monkeypatch.setattr(redaction_module, "PLUGINS", PLUGINS)
    monkeypatch.setattr(command_module, "known_plugins", lambda _: KNOWN)
    play_steps(["node n1", "pod p1 cpu=1", "cycle", "pod p2 cpu=8", "cycle"], tmp_path / "journal")
    redact(tmp_path / "journal", tmp_path / "without")
    assert "2 could not be compared before" in capsys.readouterr().out
    redact(tmp_path / "journal", tmp_path / "with", "--plugin-dir", str(tmp_path))
    assert "2 decisions come out of them" in capsys.readouterr().out
    without, found = replayed(tmp_path / "without"), replayed(tmp_path / "with")
    assert (without.equal, sum(without.not_compared.values())) == (0, 2)
    assert (found.equal, found.different, found.placed) == (2, 0, 1)


class OwnArgs(msgspec.Struct):
    """Arguments of a user's plugin, some of types that no plugin of Berth has."""

    label: str
    mode: Literal["soft", "hard"]
    pools: frozenset[str]
    more: Any
    share: float = 0.5


def test_arguments_of_users_plugins_have_aliases_but_for_words_of_their_types() -> None:
    given = {
        "label": "team",
        "mode": "hard",
        "pools": ["a-pool", "b-pool"],
        "more": {"owner": ["someone", 3]},
        "share": 0.25,
    }
    walk = walk_of(OwnArgs)
    names = aliases_for(lambda collector: walk(given, collector))
    found = walk(given, names)
    assert (found["mode"], found["share"], found["more"][names.word("owner")][1]) == (
        "hard",
        0.25,
        3,
    )
    told = set(strings_in(found)) - {*given, "hard"}
    assert told == set(map(names.word, ("team", "a-pool", "b-pool", "owner", "someone")))
    msgspec.convert(found, OwnArgs)


# --- the same decisions -----------------------------------------------------------------------


def assert_redacted(directory: Path, target: Path) -> None:
    """Check that a redacted journal is replayed as the journal, and has none of its words."""
    redact(directory, target)
    then, now = replayed(directory), replayed(target)
    assert not now.differences
    assert (now.equal, now.placed, now.groups) == (then.equal, then.placed, then.groups)
    assert sum(now.not_compared.values()) == sum(then.not_compared.values())
    collector = WordCollector()
    for path in files_of(directory):
        for record in (record for records in read_frames(path) for record in records):
            redacted_record(record, collector)
    collector.flush()
    words = {word.decode() for (word,) in collector.database.execute("SELECT word FROM words")}
    assert words
    left = {
        text
        for path in files_of(target)
        for records in read_frames(path)
        for text in strings_in(records)
    }
    assert not {word for word in words & left if not word.isdecimal()}


@pytest.mark.parametrize("seed", range(3))
def test_the_decisions_of_worlds_are_the_same(seed: int, tmp_path: Path) -> None:
    play_world(seed, tmp_path / "journal")
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")


@pytest.mark.parametrize("seed", range(2))
def test_plans_and_victims_for_groups_are_the_same(seed: int, tmp_path: Path) -> None:
    async def play() -> None:
        async with JournaledScenario() as world:
            writer = JournalWriter(world.journal, JournalOptions(tmp_path / "journal"))
            happening = History(world, seed)
            for number in range(40):
                await happening.happen()
                world.journal.wants_cut |= number == 20
            await happening.rest()
            writer.write_now()

    with quiet():
        asyncio.run(play())
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")


def test_a_decision_that_saw_a_change_which_arrived_meanwhile_still_does(tmp_path: Path) -> None:
    play_lines(BOUND_TO_A_VOLUME, tmp_path / "journal")
    arrives_meanwhile(tmp_path / "journal", "PersistentVolumeClaim")
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")
    assert replayed(tmp_path / "redacted").reordered == 1


def test_messages_contain_aliases_in_place_of_names(tmp_path: Path) -> None:
    """They are part of what a replay compares."""
    steps = [f"node {SECRET}-n1 cpu=1", f"pod {SECRET}-p1 cpu=8", "cycle"]
    play_steps(
        [*steps, f"group {SECRET}-g min=3", f"pod a group={SECRET}-g", "cycle"], tmp_path / "a"
    )
    redact(tmp_path / "a", tmp_path / "b")
    assert SECRET.encode() in plain_bytes(tmp_path / "a")
    assert SECRET.encode() not in plain_bytes(tmp_path / "b")
    assert b"Insufficient cpu" in plain_bytes(tmp_path / "b")


def test_a_decision_that_came_out_otherwise_still_does(tmp_path: Path) -> None:
    play_steps(["node n1", "node n2", "pod p1", "cycle", "pod p2", "cycle"], tmp_path)
    (path,) = files_of(tmp_path)
    header = read_header(path)
    assert header is not None
    frames = list(read_frames(path))
    first = next(r for records in frames for r in records if r[0] == "decision")
    form = first[DECISIONS["decision"]]
    form[0] = {"n1": "n2", "n2": "n1"}[form[0]]
    path.write_bytes(header_frame(header) + b"".join(frame(encode(each)) for each in frames))
    redact(tmp_path, tmp_path / "redacted")
    counts = replayed(tmp_path / "redacted")
    assert (counts.equal, counts.different) == (1, 1)


# --- no secrets -------------------------------------------------------------------------------


PLANTED = [*((form, 0) for form in FORMS), ("{}", 1), ("{}", 2)]
"""Each form in texts, and objects with the other types that a field can have."""


@pytest.mark.parametrize("index", KINDS)
def test_no_field_of_an_object_keeps_a_secret_of_any_form(index: int) -> None:
    for form, choice in PLANTED:
        content = encode(planted(TYPES[index], form, choice))
        assert SECRET in repr(content)
        aliases = aliases_for(lambda names, told=content: redacted_object(index, told, names))
        found = redacted_object(index, content, aliases)
        assert SECRET not in repr(decode(found)), form


def test_a_field_that_no_type_has_is_left_out() -> None:
    content = encode({"metadata": {"name": "a", "notes": "b"}, "more": {"c": "d"}})
    index = next(index for index, kind in enumerate(TYPES) if kind.__name__ == "Pod")
    aliases = aliases_for(lambda names: redacted_object(index, content, names))
    found = decode(redacted_object(index, content, aliases))
    assert found == {"metadata": {"name": aliases.plain("a")}}


@given(secrets(), secrets())
def test_no_record_about_a_decision_keeps_a_secret(one: str, other: str) -> None:
    status = [2, [one], other]
    form = [
        one,
        1,
        2,
        3,
        status,
        other,
        True,
        None,
        [1, status, status, [[status, 1, b"d"]], one, [other], True],
    ]
    reads = [["pod", one, other, 1], ["leaving", [one]], ["avoided", {one: 1.0}]]
    reads += [["foreign", {one: 1.0}], ["reserve", {f"{one}.example/{other}": [1]}]]
    reads.append(["start", one, [other], 1, 2, other])
    asked = [1, 2, 3.0, 4, reads]
    key = [one, other, "scheduling.k8s.io"]
    profile = {
        "name": one,
        "policy": other,
        "points": {"score": [one]},
        "weights": {one: 1},
        "percentage": None,
        "args": {one: {"a": other}, "NodeResourcesFit": {"ignoredResources": [one]}},
        "sources": {one: ["directory", other, one, other]},
        "extenders": False,
    }
    plan = ["fits", status, 1, 2, one, other, [[one, other, 1]], [[one, form]]]
    victims = ["victims", [one], 1, [[one, other]], 1, [f"{one}/{other}"], 1, one]
    records = [
        ["decision", asked, 1, one, key, False, form, 0.1],
        ["plan", asked, [1], one, key, 1, False, True, plan],
        ["victims", reads, victims],
        ["victims", reads, ["none", status]],
        ["config", 1, [profile]],
        ["metric", {one: 1.0}, other],
        ["cut", [one], ""],
        ["node_gone", None, one],
        ["group", "assume", True, key, [other]],
        ["claim", "restore", True, one, other],
    ]

    def written(names: Names) -> list[Any]:
        found = []
        for record in records:
            redacted = redacted_record(record, names)
            place = DECISIONS.get(record[0])
            if place is not None:
                redacted[place] = hidden(record[place], record[0], names)
            found.append(redacted)
        return found

    assert SECRET not in repr(written(aliases_for(written))).lower()


def test_an_unknown_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    content = header_frame(Header(FORMAT)) + frame(encode([["news", "a"]]))
    (directory / file_name(Header(FORMAT))).write_bytes(content)
    assert main(["journal", "redact", str(directory), "-o", str(tmp_path / "new")]) == 1
    assert "a record of kind 'news' is not known" in capsys.readouterr().err
    assert not list((tmp_path / "new").iterdir())


# --- aliases ----------------------------------------------------------------------------------

WORDS = st.text(st.sampled_from("ab01cpumeory.-_/ ")) | st.text(max_size=5)


@settings(max_examples=40)
@given(st.lists(WORDS, unique=True))
def test_aliases_have_the_order_of_the_words(words: list[str]) -> None:
    aliases = aliases_for(lambda names: [names.plain(word) for word in words])
    anchors = ["cpu", "memory"]
    ordered = sorted({*anchors, *(word for word in words if not is_kept(word))})
    assert sorted(map(aliases.plain, ordered)) == [aliases.plain(word) for word in ordered]
    assert len(set(map(aliases.plain, ordered))) == len(ordered)


@given(WORDS)
def test_an_alias_is_valid_where_the_word_is(word: str) -> None:
    aliases = aliases_for(lambda names: (names.word(word), resource(word, names)))
    alias = aliases.word(word)
    assert is_label_value(alias) == is_label_value(word)
    assert is_qualified_name(alias) == is_qualified_name(word)
    named = resource(word, aliases)
    assert is_extended_resource_name(named) == is_extended_resource_name(word)


@given(st.lists(st.integers(0, 10**6), min_size=2, unique=True))
def test_numbers_that_are_compared_keep_their_order(numbers: list[int]) -> None:
    def use(names: Names) -> None:
        names.compare("key")
        for number in numbers:
            names.value("key", str(number))

    aliases = aliases_for(use)
    ordered = [int(aliases.value("key", str(number))) for number in sorted(numbers)]
    assert ordered == list(range(1, len(numbers) + 1))


def test_the_same_key_makes_the_same_digest() -> None:
    one = aliases_for(lambda names: names.plain("a"))
    two = aliases_for(lambda names: [names.plain("a"), names.plain("b")])
    assert one.plain("a")[-8:] == two.plain("a")[-8:]
    collector = WordCollector()
    collector.plain("a")
    assert Aliases(collector, b"o" * 32).plain("a")[-8:] != one.plain("a")[-8:]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        pytest.param('device.driver == "d"', 'device . driver == "{d}"', id="driver"),
        pytest.param(
            'device.attributes["d"].m in ["x"] // why',
            'device . attributes [ "{d}" ] . {m} in [ "{x}" ]',
            id="attribute",
        ),
        pytest.param(
            'device.capacity["d"].m.compareTo(quantity("1Gi")) >= 0',
            'device . capacity [ "{d}" ] . {m} . compareTo ( quantity ( "1Gi" ) ) >= 0',
            id="capacity",
        ),
        pytest.param(
            'cel.bind(x, device.attributes["d"], has(x.m) && x.m)',
            'cel . bind ( {x} , device . attributes [ "{d}" ] , has ( {x} . {m} ) && {x} . {m} )',
            id="variables",
        ),
        pytest.param(
            'device.attributes["d"].m.isGreaterThan(semver("1.2.3"))',
            'device . attributes [ "{d}" ] . {m} . isGreaterThan ( semver ( "1.2.3" ) )',
            id="versions",
        ),
        pytest.param('device.attributes["d"].m.startsWith("x")', HIDDEN, id="letters"),
        pytest.param('device.attributes["d"].m + "x" == "dx"', HIDDEN, id="joined"),
        pytest.param("device.", "{device.} ?", id="no expression"),
    ],
)
def test_expressions_about_devices(text: str, form: str) -> None:
    words = ["d", "m", "x", text]
    aliases = aliases_for(
        lambda names: (redacted_expression(text, names), *map(names.plain, words))
    )
    expected = form
    for word in (*words[:3], "device."):
        if f"{{{word}}}" in form:
            expected = expected.replace(f"{{{word}}}", aliases.plain(word))
    assert redacted_expression(text, aliases) == expected


def test_versions_keep_their_numbers() -> None:
    aliases = aliases_for(lambda names: version("1.2.3-rc.1+mine", names))
    rc, mine = aliases.plain("rc"), aliases.plain("mine")
    assert version("1.2.3-rc.1+mine", aliases) == f"1.2.3-{rc}.1+{mine}"


# --- files ------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    play_steps(["node n1", "pod p1", "cycle", CUT, "pod p2", "cycle"], tmp_path / "journal")
    return tmp_path / "journal"


def test_a_redacted_journal_says_so_and_is_readable_by_its_owner_only(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redact(journal, tmp_path / "new")
    assert "2 decisions come out of them as they came out of the journal" in capsys.readouterr().out
    paths = files_of(tmp_path / "new")
    assert [path.name for path in paths] == [path.name for path in files_of(journal)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert main(["replay", str(tmp_path / "new")]) == 0
    assert "redacted" in capsys.readouterr().out


def test_all_that_a_journal_contains_can_be_printed(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redact(journal, tmp_path / "new")
    capsys.readouterr()
    assert main(["journal", "print", str(tmp_path / "new")]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(each["redacted"] for each in told if isinstance(each, dict))
    records = [each for each in told if isinstance(each, list)]
    assert sum(record[0] == "decision" for record in records) == 2
    nodes = [record[3] for record in records if record[0] == OBJECT and record[2] == "Node"]
    assert nodes[0]["status"]["allocatable"]["cpu"] == "4"


def test_a_journal_that_was_cut_is_redacted_up_to_there(journal: Path, tmp_path: Path) -> None:
    last = files_of(journal)[-1]
    last.write_bytes(last.read_bytes()[:-5])
    redact(journal, tmp_path / "new")
    assert replayed(tmp_path / "new").decisions == replayed(journal).decisions


def test_the_key_is_not_written(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    redact(journal, tmp_path / "one", "--key-file", str(tmp_path / "key"))
    redact(journal, tmp_path / "two", "--key-file", str(tmp_path / "key"))
    redact(journal, tmp_path / "three")
    assert plain_bytes(tmp_path / "one") == plain_bytes(tmp_path / "two")
    assert plain_bytes(tmp_path / "one") != plain_bytes(tmp_path / "three")
    assert KEY not in plain_bytes(tmp_path / "one")
    assert KEY.hex().encode() not in plain_bytes(tmp_path / "one")


@pytest.mark.parametrize(
    ("prepare", "more", "told"),
    [
        pytest.param("new/file", (), "new is not empty", id="not empty"),
        pytest.param("new", (), "cannot be written: ", id="a file"),
        pytest.param("key", ("--key-file", "key"), "a key has at least 16", id="short key"),
        pytest.param("", ("--key-file", "key"), "key cannot be read: ", id="no key"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(
    prepare: str,
    more: Sequence[str],
    told: str,
    journal: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if prepare:
        (tmp_path / prepare).parent.mkdir(exist_ok=True)
        (tmp_path / prepare).write_text("short")
    flags = [str(tmp_path / word) if word == "key" else word for word in more]
    assert main(["journal", "redact", str(journal), "-o", str(tmp_path / "new"), *flags]) == 1
    assert told in capsys.readouterr().err


def test_the_words_may_be_collected_as_garbage_on_another_thread(monkeypatch):
    kept = [WordCollector().database]
    raised = []
    monkeypatch.setattr("sys.unraisablehook", raised.append)
    thread = threading.Thread(target=lambda: (kept.clear(), gc.collect()))
    thread.start()
    thread.join()
    assert raised == []

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.config.config_error import ConfigError
from scheduler.config.document import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Plain,
    read_document,
    resolve_word,
)


def value_of(text: str) -> Plain:
    data, mistakes = read_document(f"value: {text}\n")
    assert mistakes == []
    assert isinstance(data, dict)
    return data["value"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("~", None, id="tilde"),
        pytest.param("null", None, id="null"),
        pytest.param("true", True, id="true"),
        pytest.param("Yes", True, id="yes"),
        pytest.param("y", True, id="y"),
        pytest.param("off", False, id="off"),
        pytest.param("12", 12, id="integer"),
        pytest.param("-0x1F", -31, id="hexadecimal"),
        pytest.param("0o17", 15, id="octal"),
        pytest.param("017", 15, id="octal-of-old"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("1_000", 1000, id="underscore"),
        pytest.param("09", 9.0, id="no-octal"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param(".5", 0.5, id="fraction"),
        pytest.param("1:30", "1:30", id="no-number-in-base-60"),
        pytest.param("2024-01-01", "2024-01-01", id="no-date"),
        pytest.param("1m30s", "1m30s", id="duration"),
        pytest.param(".nan", ".nan", id="not-a-number"),
        pytest.param("1e999", "1e999", id="too-large-a-number"),
        pytest.param("+", "+", id="sign"),
        pytest.param("--", "--", id="dashes"),
        pytest.param("'12'", "12", id="quoted"),
        pytest.param('"true"', "true", id="double-quoted"),
        pytest.param("!!str 12", "12", id="tagged-text"),
        pytest.param("! 12", "12", id="tagged-without-name"),
        pytest.param("!!int '12'", 12, id="tagged-integer"),
        pytest.param("!!float 1", 1, id="tagged-float"),
        pytest.param("!!null ''", None, id="tagged-null"),
        pytest.param("!!seq [a]", ["a"], id="tagged-list"),
        pytest.param("!!map {a: b}", {"a": "b"}, id="tagged-mapping"),
        pytest.param("[1, [a, {b: c}]]", [1, ["a", {"b": "c"}]], id="nested"),
    ],
)
def test_words_mean_what_they_mean_to_kube_scheduler(text: str, value: Plain) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        pytest.param("", "", "is empty", id="empty"),
        pytest.param("# nothing\n", "", "is empty", id="only-a-comment"),
        pytest.param("---\n", "", "is empty", id="only-a-marker"),
        pytest.param("a: [", "", "is not YAML: line ", id="not-closed"),
        pytest.param("a: b: c", "", "is not YAML: line 1, column 5", id="not-yaml"),
        pytest.param("a: \x00", "", "is not YAML", id="control-character"),
        pytest.param("a: 1\n---\nb: 2\n", "", "more than one document", id="two-documents"),
        pytest.param("a: 1\n---\n---\nb: 2\n", "", "more than one", id="three-documents"),
        pytest.param("a:\n  b: *x\n", "a.b", "*x names nothing", id="alias-of-nothing"),
        pytest.param("a: &x [*x]\n", "a[0]", "*x names nothing", id="alias-of-itself"),
        pytest.param("a:\n- ? [b]\n  : c\n", "a[0]", "a key that is not text", id="list-as-key"),
        pytest.param("a: !!binary aGk=\n", "a", "has no place", id="binary"),
        pytest.param("a: !!python/object:os.system {}\n", "a", "has no place", id="python-object"),
        pytest.param("a: !!python/name:os.system x\n", "a", "has no place", id="python-name"),
        pytest.param("a: !own [b]\n", "a", "has no place", id="own-tag"),
        pytest.param("a: !!int x\n", "a", "tagged !!int", id="wrong-tag"),
        pytest.param("a: !!int true\n", "a", "tagged !!int", id="boolean-is-no-integer"),
        pytest.param("a: {<<: [b]}\n", "a", "merges mappings, not 'b'", id="merge-of-text"),
        pytest.param('{"a": NaN}', "", "NaN is no number", id="json-nan"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, path: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(text)
    assert caught.value.path == path
    assert why in caught.value.why


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: {b: 1, c: 2, b: 3}", id="yaml"),
        pytest.param('{"a": {"b": 1, "c": 2, "b": 3}}', id="json"),
    ],
)
def test_a_repeated_key_is_named_and_the_first_counts(text: str) -> None:
    data, mistakes = read_document(text)
    assert data == {"a": {"b": 1, "c": 2}}
    assert [str(mistake) for mistake in mistakes] == ["a.b: stands there twice"]


def test_every_repeated_key_is_named() -> None:
    _, mistakes = read_document("a: 1\nb: [{c: 1, c: 2}]\na: 2\n")
    assert [mistake.path for mistake in mistakes] == ["b[0].c", "a"]


def test_a_last_marker_with_nothing_behind_it_is_no_second_document() -> None:
    assert read_document("---\na: 1\n---\n") == ({"a": 1}, [])


def test_aliases_stand_for_what_they_name() -> None:
    data, _ = read_document("a: &x {b: [1]}\nc: *x\n")
    assert data == {"a": {"b": [1]}, "c": {"b": [1]}}


def test_merged_mappings_give_way_to_written_keys_and_to_earlier_ones() -> None:
    data, _ = read_document("a: &a {k: a, l: a}\nb: &b {l: b, m: b}\nc: {<<: [*a, *b], k: c}\n")
    assert isinstance(data, dict)
    assert data["c"] == {"k": "c", "l": "a", "m": "b"}


def test_a_quoted_merge_key_is_a_key() -> None:
    assert read_document("'<<': {a: 1}\n") == ({"<<": {"a": 1}}, [])


def test_aliases_of_aliases_do_not_explode() -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError, match=f"more than {MAX_VALUES} values"):
        read_document(f"a0: &a0 [lol]\n{levels}")


def test_many_values_are_refused_without_aliases_too() -> None:
    with pytest.raises(ConfigError, match=f"more than {MAX_VALUES} values"):
        read_document(f"a: [{'0,' * MAX_VALUES}]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: " + "[" * 900 + "]" * 900, id="yaml"),
        pytest.param("a: " + "[" * 100_000, id="yaml-not-closed"),
        pytest.param('{"a": ' + "[" * 900 + "]" * 900 + "}", id="json"),
        pytest.param('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", id="json-beyond-any-stack"),
        pytest.param(
            "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200)),
            id="through-aliases",
        ),
    ],
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(ConfigError, match=f"deeper than {MAX_DEPTH}|is not YAML"):
        read_document(text)


def test_size_is_bounded() -> None:
    with pytest.raises(ConfigError, match=f"larger than {MAX_BYTES} bytes"):
        read_document("#" * (MAX_BYTES + 1))


def test_json_may_be_indented_with_tabs() -> None:
    assert read_document('{\n\t"a": "\\ud83d\\ude00"\n}') == ({"a": "\U0001f600"}, [])


def test_yaml_may_begin_with_a_brace() -> None:
    assert read_document("{a: 1}") == ({"a": 1}, [])


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), plain_values))
def test_json_reads_as_json(data: dict[str, Plain]) -> None:
    assert read_document(json.dumps(data)) == (data, [])


@given(st.text(max_size=20))
def test_any_word_has_a_meaning(text: str) -> None:
    resolve_word(text)


@given(st.text(alphabet="{}[]&*!|>-?:,#\"'% \nab<0~", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        read_document(text)

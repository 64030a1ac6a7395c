"""Aliases for the words of a journal: in the same order, equal where the words are equal.

A journal is read twice. :class:`WordCollector` takes all words of the first pass;
:class:`Aliases`, made from it, replaces them in the second. An alias is

    letter, rank among all words, keyed digest

The rank keeps the order. The digest (HMAC-SHA256, shortened) lets the owner of the key find a word
again, and the same word in two journals that were redacted with one key.
"""

from __future__ import annotations

import hmac
import re
import sqlite3
from bisect import bisect
from typing import TYPE_CHECKING, Final, Protocol

from cache.label_selectors import is_label_value
from cache.resources import is_qualified_name
from scheduler.journal.kept_words import ANCHORS, KEPT, KEPT_FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_BUFFERED: Final = 50_000
"""Words in memory before they go to the database."""

_REMEMBERED: Final = 200_000
"""Aliases in memory: about 40 MiB."""

_PAGES_KIB: Final = 64 * 1024
"""Of the database in memory; the rest is in a file without a name."""

_LETTERS: Final = "bdfknr"
"""Of words before, between and after the anchors."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_TAG_BYTES: Final = 4
_HIDDEN_BYTES: Final = 8


class Names(Protocol):
    """What the rules of fields call for each string of a journal, in both passes."""

    def word(self, text: str) -> str:
        """Return what stands for a word; it is a label's key or value if the word can be one."""

    def plain(self, text: str) -> str:
        """Return what stands for a word within another: letters and digits only."""

    def value(self, key: str, text: str) -> str:
        """Return what stands for the value of a label."""

    def claim(self, text: str) -> str:
        """Return what stands for the name of a PersistentVolumeClaim."""

    def derive(self, pod: str, volume: str) -> None:
        """Take up that a claim is named after a pod and its volume."""

    def compare(self, key: str) -> None:
        """Take up that values of a label are compared as numbers."""

    def hidden(self, text: str) -> str:
        """Return what stands for a text whose order nothing depends on."""

    def digest(self, content: bytes) -> bytes:
        """Return what stands for a digest."""


def is_kept(text: str) -> bool:
    """Return whether a word stays as it is."""
    return text in KEPT or KEPT_FORMS.fullmatch(text) is not None


class _Database(sqlite3.Connection):
    """A database that is closed when nothing refers to it any more."""

    def __del__(self) -> None:
        self.close()


class WordCollector:
    """Collects the words of the first pass, in bounded memory; returns each as it is.

    Parameters
    ----------
    plugins
        The names of users' plugins that stay as they are.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self, plugins: frozenset[str] = frozenset()) -> None:
        self.plugins = plugins
        # An empty name is a database in a file that is deleted as soon as it is opened. The garbage
        # collector closes it, on whichever thread it runs.
        self.database = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False, factory=_Database
        )
        for line in (
            "PRAGMA journal_mode=OFF",
            "PRAGMA synchronous=OFF",
            f"PRAGMA cache_size=-{_PAGES_KIB}",
            "BEGIN",  # all of it is one transaction, which never ends
            "CREATE TABLE words(word BLOB PRIMARY KEY) WITHOUT ROWID",
            "CREATE TABLE numbers(number INTEGER PRIMARY KEY)",
            "CREATE TABLE claims(claim BLOB PRIMARY KEY, pod TEXT, volume TEXT) WITHOUT ROWID",
        ):
            self.database.execute(line)
        self.compared: set[str] = set()
        self._words: set[str] = set()
        self._numbers: set[int] = set()
        self._claims: dict[str, tuple[str, str]] = {}

    def word(self, text: str) -> str:
        """Collect a word."""
        if not is_kept(text) and text not in self.plugins:
            self._words.add(text)
        if len(self._words) > _BUFFERED:
            self.flush()
        return text

    plain = word
    claim = word

    def value(self, key: str, text: str) -> str:
        """Collect the value of a label, as a word and as a number."""
        if _NUMBER.fullmatch(text):
            self._numbers.add(int(text))
        return self.word(text)

    def derive(self, pod: str, volume: str) -> None:
        """Take up that a claim is named after a pod and its volume."""
        self._claims[f"{pod}-{volume}"] = pod, volume
        if len(self._claims) > _BUFFERED:
            self.flush()

    def compare(self, key: str) -> None:
        """Take up that values of a label are compared as numbers."""
        self.compared.add(key)

    def hidden(self, text: str) -> str:
        """Return the text: it needs no place in the order."""
        return text

    def digest(self, content: bytes) -> bytes:
        """Return the digest."""
        return content

    def flush(self) -> None:
        """Move what is in memory to the database."""
        many = self.database.executemany
        words = sorted(word.encode() for word in self._words)
        many("INSERT OR IGNORE INTO words VALUES (?)", ((word,) for word in words))
        many("INSERT OR IGNORE INTO numbers VALUES (?)", ((each,) for each in self._numbers))
        many(
            "INSERT OR IGNORE INTO claims VALUES (?, ?, ?)",
            ((claim.encode(), *of) for claim, of in self._claims.items()),
        )
        self._words.clear()
        self._numbers.clear()
        self._claims.clear()


class Aliases:
    """Replaces words by aliases.

    Parameters
    ----------
    collected
        All words of the journal. It cannot be used afterwards.
    key
        Of the digests.

    Attributes
    ----------
    count
        The words that have an alias.

    Notes
    -----
    *Concurrency*: confined to its owner. *Cost*: 20 us for a word that was not used lately.
    """

    def __init__(self, collected: WordCollector, key: bytes) -> None:
        collected.flush()
        self._key = key
        self._compared = collected.compared
        self._plugins = collected.plugins
        self._database = database = collected.database
        for line in (
            "CREATE TABLE ranks(word BLOB PRIMARY KEY, rank INTEGER) WITHOUT ROWID",
            "INSERT INTO ranks SELECT word, row_number() OVER (ORDER BY word) FROM words",
            "DROP TABLE words",
            "CREATE TABLE places(number INTEGER PRIMARY KEY, rank INTEGER)",
            "INSERT INTO places SELECT number, row_number() OVER (ORDER BY number) FROM numbers",
            "DROP TABLE numbers",
        ):
            database.execute(line)
        (self.count,) = database.execute("SELECT count(*) FROM ranks").fetchone()
        self._width = len(_base_36(self.count))
        self._plain: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._claims: dict[str, str] = {}

    def word(self, text: str) -> str:
        """Return the alias of a word: valid as a label's key or value where the word is."""
        return _remembered(self._words, text, self._word)

    def _word(self, text: str) -> str:
        found = self.plain(text)
        if found == text or is_label_value(text):
            return found
        return f"{found}/k" if is_qualified_name(text) else f"{found}!"

    def plain(self, text: str) -> str:
        """Return the alias of a word as letters and digits."""
        return _remembered(self._plain, text, self._made)

    def _made(self, text: str) -> str:
        if is_kept(text) or text in self._plugins:
            return text
        rank = self._rank("SELECT rank FROM ranks WHERE word = ?", text.encode())
        letter = _LETTERS[bisect(ANCHORS, text)]
        return f"{letter}{_base_36(rank).rjust(self._width, '0')}{self._tag(text, _TAG_BYTES)}"

    def value(self, key: str, text: str) -> str:
        """Return the alias of a label's value; a number if values of this key are compared."""
        if key in self._compared and _NUMBER.fullmatch(text):
            rank = self._rank("SELECT rank FROM places WHERE number = ?", int(text))
            leading_zeros = len(text) - len(str(int(text)))
            return "0" * leading_zeros + str(rank)
        return self.word(text)

    def claim(self, text: str) -> str:
        """Return the alias of a claim's name; made of two others where pods derive it."""
        return _remembered(self._claims, text, self._claim)

    def _claim(self, text: str) -> str:
        query = "SELECT pod, volume FROM claims WHERE claim = ?"
        derived = self._database.execute(query, (text.encode(),)).fetchone()
        return self.word(text) if derived is None else "-".join(map(self.word, derived))

    def derive(self, pod: str, volume: str) -> None:
        """Do nothing: the first pass has taken it up."""

    def compare(self, key: str) -> None:
        """Do nothing: the first pass has taken it up."""

    def hidden(self, text: str) -> str:
        """Return the digest of a text."""
        return text if is_kept(text) else f"t{self._tag(text, _HIDDEN_BYTES)}"

    def digest(self, content: bytes) -> bytes:
        """Return the digest of bytes, as long as they are."""
        return hmac.digest(self._key, content, "sha256")[: len(content)]

    def _tag(self, text: str, num_bytes: int) -> str:
        return hmac.digest(self._key, text.encode(), "sha256")[:num_bytes].hex()

    def _rank(self, query: str, word: bytes | int) -> int:
        found = self._database.execute(query, (word,)).fetchone()
        if found is None:
            raise LookupError("a word that the first pass did not meet")
        rank: int = found[0]
        return rank


def words_of(names: Names, texts: Iterable[str]) -> list[str]:
    """Return what stands for several words."""
    return [names.word(text) for text in texts]


def _remembered(memory: dict[str, str], text: str, make: Callable[[str], str]) -> str:
    found = memory.get(text)
    if found is None:
        if len(memory) >= _REMEMBERED:
            memory.clear()
        found = memory[text] = make(text)
    return found


def _base_36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"

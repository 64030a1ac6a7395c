"""Each test configures a process of its own: logging is one for the whole process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scheduler.log_setup import configure_logging

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import logging, os, sys, threading, warnings
import structlog
log = structlog.get_logger("berth.test")
from scheduler.log_setup import configure_logging
configure_logging({format!r}, {level!r})
"""


def lines(script: str, *, format_: str = "json", level: str = "info") -> list[str]:
    """Return what a script logs, line by line."""
    source = PRELUDE.format(format=format_, level=level) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr.splitlines()


def records(script: str, **options: str) -> list[dict]:
    return [json.loads(line) for line in lines(script, **options)]


# --- JSON -------------------------------------------------------------------------------------


def test_a_line_has_time_level_logger_event_and_its_fields_in_this_order():
    (record,) = records('log.info("pod bound", pod="shop/web-0", node="n1", cycle=7)')
    assert list(record) == ["timestamp", "level", "logger", "event", "pod", "node", "cycle"]
    assert record | {"timestamp": ""} == {
        "timestamp": "",
        "level": "info",
        "logger": "berth.test",
        "event": "pod bound",
        "pod": "shop/web-0",
        "node": "n1",
        "cycle": 7,
    }


def test_the_time_is_utc():
    (record,) = records("os.environ['TZ'] = 'Asia/Tokyo'; log.info('now')")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", record["timestamp"])


def test_an_exception_is_one_field_of_the_same_line():
    (record,) = records(
        """
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("cycle failed", pod="shop/web-0")
        """
    )
    assert record["level"] == "error"
    assert record["exception"].startswith("Traceback")
    assert record["exception"].endswith("ZeroDivisionError: division by zero")


def test_what_is_bound_to_the_context_is_in_every_line():
    first, second = records(
        """
        structlog.contextvars.bind_contextvars(cycle=9)
        log.info("ours")
        logging.getLogger("aiohttp.server").warning("theirs")
        """
    )
    assert (first["cycle"], second["cycle"]) == (9, 9)


def test_lines_of_libraries_look_the_same():
    (record,) = records('logging.getLogger("kopf.reactor").warning("%s of %s", 1, 2)')
    assert list(record) == ["timestamp", "level", "logger", "event"]
    assert record["event"] == "1 of 2"
    assert record["logger"] == "kopf.reactor"
    assert record["level"] == "warning"


def test_warnings_are_lines():
    (record,) = records('warnings.warn("old")')
    assert "UserWarning: old" in record["event"]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param("debug", ["d", "i", "w", "e"], id="debug"),
        pytest.param("info", ["i", "w", "e"], id="info"),
        pytest.param("warning", ["w", "e"], id="warning"),
        pytest.param("error", ["e"], id="error"),
    ],
)
@pytest.mark.parametrize(
    "logger",
    [
        pytest.param("log", id="ours"),
        pytest.param('logging.getLogger("some.library")', id="theirs"),
    ],
)
def test_levels(level, expected, logger):
    script = "; ".join(
        f'{logger}.{name}("{name[0]}")' for name in ("debug", "info", "warning", "error")
    )
    assert [record["event"] for record in records(script, level=level)] == expected


def test_libraries_that_chatter_are_quiet_even_at_debug():
    script = 'logging.getLogger("kubernetes.aio.client.rest").debug("Authorization: ...")'
    assert lines(script, level="debug") == []


# --- what must not break it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("'two\\nlines'", "two\nlines", id="a line break"),
        pytest.param("'\\ud800'", "?", id="half a character"),
        pytest.param("ValueError('why')", "ValueError('why')", id="an exception"),
        pytest.param("{'a': (1, 2)}", {"a": [1, 2]}, id="a structure"),
        pytest.param("float('nan')", None, id="no number"),
        pytest.param("b'raw'", "cmF3", id="bytes"),
        pytest.param(
            "type('Odd', (), {'__repr__': lambda self: 1 / 0})()",
            "<Odd without text>",
            id="an object that cannot be shown",
        ),
    ],
)
def test_every_value_makes_one_line_of_json(value, expected):
    (record,) = records(f'log.info("seen", value={value}, node="n1")')
    assert record["value"] == expected
    assert record["node"] == "n1"


def test_a_wrong_record_of_a_library_is_a_line_and_no_exception():
    (record,) = records('logging.getLogger("x").warning("%d", "no number")')
    assert "cannot be formatted" in record["event"]


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param("sys.stderr.close()", id="closed"),
        pytest.param("sys.stderr = open('/dev/full', 'w', buffering=1)", id="disk full"),
        pytest.param(
            "r, w = os.pipe(); os.close(r); sys.stderr = open(w, 'w', buffering=1)",
            id="nobody reads",
        ),
    ],
)
def test_logging_into_nowhere_does_not_raise(sink):
    lines(
        f"""
        {sink}
        log.error("lost")
        logging.getLogger("library").error("lost too")
        os._exit(0)
        """
    )


def test_lines_of_several_threads_do_not_mix():
    found = records(
        """
        def write(name):
            for number in range(200):
                log.info("x" * 500, thread=name, number=number)
        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """
    )
    assert len(found) == 800


# --- for people -------------------------------------------------------------------------------


def test_console_lines_are_text():
    (line,) = lines('log.info("pod bound", pod="shop/web-0")', format_="console")
    assert re.search(r"info .*pod bound .*pod=shop/web-0$", line)


def test_console_lines_have_no_colours_without_a_terminal():
    assert "\x1b" not in "".join(lines('log.error("oops")', format_="console"))


def test_a_name_cannot_forge_a_console_line_or_move_the_cursor():
    (line,) = lines('log.info("seen", pod="a\\n2026 [error] b\\x1b[2J")', format_="console")
    assert "\x1b" not in line
    assert r"a\n2026" in line


def test_a_console_traceback_shows_no_local_variables():
    shown = lines(
        """
        def call():
            token = "s3cr" + "et"
            raise ValueError("refused")
        try:
            call()
        except ValueError:
            log.exception("oops")
        """,
        format_="console",
    )
    assert "ValueError: refused" in shown
    assert "s3cret" not in "\n".join(shown)


@pytest.mark.parametrize(
    ("format_", "level"),
    [
        pytest.param("yaml", "info", id="no such format"),
        pytest.param("json", "loud", id="no such level"),
    ],
)
def test_what_is_not_there_is_refused(format_, level):
    with pytest.raises(ValueError, match="is n"):
        configure_logging(format_, level)

from __future__ import annotations

import errno
import io
import json
import logging
import re
import sys
import threading
import warnings

import pytest
import structlog

from scheduler.process.log_setup import configure_logging, errors_to_stderr


@pytest.fixture
def lines(capsys, monkeypatch):
    """Configure logging, do something with a logger, and return the lines that came of it."""
    root = logging.getLogger()
    names = ("aiohttp.access", "asyncio", "kopf", "kubernetes", "urllib3")
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in names}
    configuration = structlog.get_config()
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def run(action, *, format_="json", level="info"):
        configure_logging(format_, level)
        action(structlog.get_logger("berth.test"))
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err.splitlines()

    yield run
    logging.captureWarnings(capture=False)
    structlog.contextvars.clear_contextvars()
    structlog.configure(**configuration)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def records(lines):
    """The same, with each line read as JSON."""
    return lambda action, **options: [json.loads(line) for line in lines(action, **options)]


def library(name: str = "some.library") -> logging.Logger:
    return logging.getLogger(name)


# --- JSON -------------------------------------------------------------------------------------


def test_a_line_has_time_level_logger_event_and_its_fields_in_this_order(records):
    (record,) = records(lambda log: log.info("pod bound", pod="shop/web-0", node="n1", cycle=7))
    assert list(record) == ["timestamp", "level", "logger", "event", "pod", "node", "cycle"]
    assert list(record.values())[1:] == ["info", "berth.test", "pod bound", "shop/web-0", "n1", 7]


def test_the_time_is_utc(records):
    (record,) = records(lambda log: log.info("now"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", record["timestamp"])


def test_an_exception_is_one_field_of_the_same_line(records):
    def fail(log):
        try:
            raise ValueError("why")
        except ValueError:
            log.exception("cycle failed", pod="shop/web-0")

    (record,) = records(fail)
    assert record["level"] == "error"
    assert record["exception"].startswith("Traceback")
    assert record["exception"].endswith("ValueError: why")


def test_what_is_bound_to_the_context_is_in_every_line(records):
    def log_both(log):
        structlog.contextvars.bind_contextvars(cycle=9)
        log.info("ours")
        library().warning("theirs")

    assert [record["cycle"] for record in records(log_both)] == [9, 9]


def test_lines_of_libraries_look_the_same(records):
    (record,) = records(lambda _: library("kopf.reactor").warning("%s of %s", 1, 2))
    assert list(record) == ["timestamp", "level", "logger", "event"]
    assert list(record.values())[1:] == ["warning", "kopf.reactor", "1 of 2"]


def test_warnings_are_lines(records):
    def warn(_):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(capture=True)
            warnings.warn("old", stacklevel=1)

    (record,) = records(warn)
    assert "UserWarning: old" in record["event"]


LEVELS = ("debug", "info", "warning", "error")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param("debug", ["debug", "info", "warning", "error"], id="debug"),
        pytest.param("info", ["info", "warning", "error"], id="info"),
        pytest.param("warning", ["warning", "error"], id="warning"),
        pytest.param("error", ["error"], id="error"),
    ],
)
@pytest.mark.parametrize(
    "choose",
    [pytest.param(lambda log: log, id="ours"), pytest.param(lambda _: library(), id="theirs")],
)
def test_levels(records, level, expected, choose):
    def log_all(log):
        for name in LEVELS:
            getattr(choose(log), name)(name)

    assert [record["event"] for record in records(log_all, level=level)] == expected


def test_libraries_that_chatter_are_quiet_even_at_debug(lines):
    chatter = library("kubernetes.aio.client.rest")
    assert lines(lambda _: chatter.debug("Authorization: ..."), level="debug") == []


# --- what must not break it -------------------------------------------------------------------


class Odd:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("two\nlines", "two\nlines", id="a line break"),
        pytest.param("\ud800", "?", id="half a character"),
        pytest.param(ValueError("why"), "ValueError('why')", id="an exception"),
        pytest.param({"a": (1, 2)}, {"a": [1, 2]}, id="a structure"),
        pytest.param(float("nan"), None, id="no number"),
        pytest.param(b"raw", "cmF3", id="bytes"),
        pytest.param(Odd(), "<Odd without text>", id="an object that cannot be shown"),
    ],
)
def test_every_value_makes_one_line_of_json(records, value, expected):
    (record,) = records(lambda log: log.info("seen", value=value, node="n1"))
    assert record["value"] == expected
    assert record["node"] == "n1"


def test_a_wrong_record_of_a_library_is_a_line_and_no_exception(records):
    (record,) = records(lambda _: library().warning("%d", "no number"))
    assert "cannot be formatted" in record["event"]


class Nowhere(io.StringIO):
    """A stream that cannot be written to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, _: str) -> int:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), id="disk full"),
        pytest.param(BrokenPipeError(errno.EPIPE, "Broken pipe"), id="nobody reads"),
        pytest.param(ValueError("I/O operation on closed file."), id="closed"),
    ],
)
def test_logging_into_nowhere_does_not_raise(lines, monkeypatch, error):
    def log_both(log):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", Nowhere(error))
            log.error("lost")
            library().error("lost too")

    assert lines(log_both) == []


def test_lines_of_several_threads_do_not_mix(records):
    def log_much(log):
        def write(name):
            for number in range(200):
                log.info("x" * 500, thread=name, number=number)

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(records(log_much)) == 800


# --- for people -------------------------------------------------------------------------------


def test_console_lines_are_text(lines):
    (line,) = lines(lambda log: log.info("pod bound", pod="shop/web-0"), format_="console")
    assert re.search(r"info .*pod bound .*pod=shop/web-0$", line)


def test_console_lines_have_no_colours_without_a_terminal(lines):
    (line,) = lines(lambda log: log.error("oops"), format_="console")
    assert "\x1b" not in line


def test_console_lines_have_colours_on_a_terminal(lines, monkeypatch):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)
    (line,) = lines(lambda log: log.error("oops"), format_="console")
    assert "\x1b[" in line


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a\n2026 [error] b", id="a forged line"),
        pytest.param("a\x1b[2Jb", id="the cursor"),
        pytest.param("a\x9b2Jb", id="the cursor in one byte"),
        pytest.param("a\u202eb", id="the direction of writing"),
    ],
)
def test_a_console_line_shows_controls_instead_of_obeying(lines, name):
    (line,) = lines(lambda log: log.info(name, pod=name), format_="console")
    assert line.isprintable()


def test_a_console_traceback_shows_no_local_variables(lines):
    def fail(log):
        token = "s3cr" + "et"
        try:
            raise ValueError(f"{len(token)} letters")
        except ValueError:
            log.exception("oops")

    shown = lines(fail, format_="console")
    assert "ValueError: 6 letters" in shown
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


def test_a_command_shows_errors_only_and_leaves_the_log_as_it_was(capsys):
    root = logging.getLogger()
    before = structlog.get_config(), root.level
    library = logging.getLogger("urllib3.connectionpool")
    with errors_to_stderr():
        log = structlog.get_logger("berth.test")
        log.info("connected")
        library.warning("retrying")
        log.error("broken")
    assert (structlog.get_config(), root.level) == before
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert "broken" in line

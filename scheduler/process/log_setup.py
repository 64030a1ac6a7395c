"""Set up logging: one JSON object per line, or text for people.

Everything goes to standard error: our own lines through structlog, the libraries' through the
standard library's `logging`, both through the same last steps. Logging never raises and never
stops the scheduler, whatever the line holds and even when nobody can write it.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
import structlog
from structlog.stdlib import ProcessorFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from structlog.typing import EventDict, Processor, WrappedLogger

Format: TypeAlias = Literal["json", "console"]

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

_QUIETER: Final = {
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "kopf": logging.INFO,
    "kubernetes": logging.INFO,
    "urllib3": logging.WARNING,
}
"""Libraries whose debug lines are about themselves, or may hold what is secret."""


def configure_logging(format: Format, level: str) -> None:  # noqa: A002 - the flag's name
    """Send all log lines of this process to standard error.

    Afterwards each line has ``timestamp`` (UTC), ``level``, ``logger``, ``event``, what was bound
    with :mod:`structlog.contextvars`, and its own fields; by custom ``pod`` is
    ``namespace/name``, ``node`` a name and ``cycle`` the number of a scheduling cycle. A
    traceback is one field, ``exception``.

    Parameters
    ----------
    format
        ``json``, or ``console``, which has colours on a terminal.
    level
        A key of `LEVELS`; lines below it cost a fraction of a microsecond.

    Raises
    ------
    ValueError
        Another format or level.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(LEVELS)}")
    if format not in ("json", "console"):
        raise ValueError(f"log format {format!r} is neither json nor console")
    last_steps = _last_steps(format)
    first_steps: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*first_steps, _add_logger_name, _add_fields, *last_steps],
        wrapper_class=_Logger,
        logger_factory=StderrLogger,
        cache_logger_on_first_use=True,
    )
    handler = _StderrHandler()
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[*first_steps, structlog.stdlib.add_logger_name],
            processors=[ProcessorFormatter.remove_processors_meta, *last_steps],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)
    logging.captureWarnings(capture=True)


@contextmanager
def errors_to_stderr() -> Iterator[None]:
    """Have lines of level error go to standard error, our own as text, and no others anywhere.

    For commands whose standard output is their answer. Afterwards all is as it was.
    """
    before = structlog.get_config()
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_last_steps("console"),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=StderrLogger,
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
        root.setLevel(level)


def set_level(level: str) -> None:
    """Let through lines of `level` and above from now on, of all loggers there are.

    Raises
    ------
    ValueError
        It is not a key of `LEVELS`.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(LEVELS)}")
    threshold = LEVELS[level]
    logger = structlog.make_filtering_bound_logger(threshold)
    for method in _METHODS:
        setattr(_Logger, method, getattr(logger, method))
    _Logger.level = level
    logging.getLogger().setLevel(threshold)
    for name, quieter in _QUIETER.items():
        logging.getLogger(name).setLevel(max(threshold, quieter))


def current_level() -> str:
    """Return the level that lines need at this moment."""
    return _Logger.level


_METHODS: Final = (
    *("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "msg"),
    *("log", "is_enabled_for", "get_effective_level"),
)


class _Logger(structlog.make_filtering_bound_logger(logging.DEBUG)):  # type: ignore[misc]
    """Every logger of ours, those that have been made included: its methods are exchanged.

    That way a line below the level costs what it costs with a level that cannot be changed.
    """

    level = "info"


class StderrLogger:
    """The end of the line: writes finished lines to standard error, one at a time.

    Parameters
    ----------
    name
        The logger's name, as in ``structlog.get_logger(name)``.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    __slots__ = ("name",)

    _lock = threading.Lock()

    def __init__(self, name: str = "") -> None:
        self.name = name

    def msg(self, line: str) -> None:
        """Write a line, in one call, so that lines of several threads do not mix."""
        with self._lock:
            try:
                sys.stderr.write(f"{line}\n")
            except (OSError, ValueError):
                # A full disk, a reader that went away, a closed file. Nobody can be told, and
                # scheduling goes on without a log.
                return

    debug = info = warning = error = critical = exception = msg


class _StderrHandler(logging.Handler):
    """The same end for the standard library's records."""

    _logger: Final = StderrLogger()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - as with logging's own handlers: any mistake in a record
            line = json.dumps({"event": "log record cannot be formatted", "error": repr(error)})
        self._logger.msg(line)


def _last_steps(format: Format) -> Sequence[Processor]:  # noqa: A002
    if format == "json":
        return (
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            _render_json,
        )
    return (
        structlog.processors.StackInfoRenderer(),
        _escape_controls,
        # Plain tracebacks: the pretty ones print local variables, a token among them one day.
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        ),
    )


_more_fields: list[Callable[[EventDict], None]] = []


@contextmanager
def more_fields(add: Callable[[EventDict], None]) -> Iterator[None]:
    """Have something add fields to each line of our own meanwhile; it never raises. Any thread."""
    _more_fields.append(add)
    try:
        yield
    finally:
        _more_fields.remove(add)


def _add_fields(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
    for add in _more_fields:
        add(event_dict)
    return event_dict


def _add_logger_name(logger: WrappedLogger, _: str, event_dict: EventDict) -> EventDict:
    event_dict["logger"] = logger.name
    return event_dict


_FIRST_KEYS: Final = ("timestamp", "level", "logger", "event")

_encode: Final = msgspec.json.Encoder(enc_hook=repr).encode


def _render_json(_: WrappedLogger, __: str, event_dict: EventDict) -> str:
    line: dict[str, Any] = {key: event_dict.pop(key, None) for key in _FIRST_KEYS}
    line.update(event_dict)
    try:
        return _encode(line).decode()
    except Exception:  # noqa: BLE001 - a value's own __repr__ may raise anything
        # Slower, for what has no UTF-8 or no text at all.
        return json.dumps({key: _plain(value) for key, value in line.items()})


def _plain(value: Any) -> int | float | str | None:
    if value is None or isinstance(value, int | float):
        return value
    try:
        return str(value).encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - see above
        return f"<{type(value).__name__} without text>"


def _escape_controls(_: WrappedLogger, __: str, event_dict: EventDict) -> EventDict:
    """Keep what a pod's owner wrote from moving the cursor or forging a line."""
    for key, value in event_dict.items():
        if isinstance(value, str) and not value.isprintable() and key != "stack":
            event_dict[key] = value.encode("unicode_escape", "backslashreplace").decode()
    return event_dict

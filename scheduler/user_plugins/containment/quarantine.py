"""The quarantine: plugin versions that are not run because the process ended during their calls.

The quarantine is stored in a file of the state directory, so that the next process reads it. An
entry is a plugin's name and the digest of its source: a changed file is a new version and is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from scheduler.user_plugins.containment.crash_note import StateDirError

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.user_plugins.containment.crash_note import AtWork
    from scheduler.user_plugins.containment.plugin_code import PluginCode

MAX_SUSPICIONS: Final = 2
"""The number of process deaths during a plugin's calls after which the plugin is quarantined: most
likely memory ran out. A single death may have any cause, such as a failure of the machine."""

log = structlog.get_logger(__name__)


class Entry(msgspec.Struct, rename="camel"):
    """The quarantine record of one version of a plugin."""

    plugin: str
    digest: str
    why: str = ""
    """What happened during the plugin's calls, as text."""
    deaths: int = 0
    """The number of times that the process ended during a call for an unknown reason."""
    left_out: bool = False


_DECODER: Final = msgspec.json.Decoder(list[Entry])


class LeftOut:
    """The plugin versions in quarantine, and those under suspicion.

    Parameters
    ----------
    path
        The file; None for a quarantine that ends with the process.

    Raises
    ------
    StateDirError
        When the file cannot be read. A file with invalid content is logged and replaced.

    Notes
    -----
    *Concurrency*: immutable after the start, except for :meth:`acquit`; any thread may read it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        entries = [] if path is None else _read(path)
        self._entries = {(entry.plugin, entry.digest): entry for entry in entries}

    def why(self, code: PluginCode) -> str:
        """Return why code is in quarantine; empty if it is not."""
        entry = self._entries.get((code.name, code.digest))
        return entry.why if entry is not None and entry.left_out else ""

    def entries(self) -> tuple[Entry, ...]:
        """Return the records of all plugin versions."""
        return tuple(self._entries.values())

    def judge(self, last: AtWork, *, held_the_lock: bool, timeout_s: float) -> Entry | None:
        """Record that the previous process ended during a call.

        Parameters
        ----------
        last
            The call.
        held_the_lock
            Whether the C timer ended the process: see
            :mod:`scheduler.user_plugins.containment.watchdog`.

        Returns
        -------
        The record of the code afterwards; None if the code is not known.
        """
        if not last.digest:
            return None
        entry = self._entries.setdefault(
            (last.plugin, last.digest), Entry(last.plugin, last.digest)
        )
        if last.hung or held_the_lock:
            entry.left_out = True
            entry.why = f"{last.point} did not come back within {timeout_s:g} s"
        else:
            entry.deaths += 1
            entry.left_out = entry.deaths >= MAX_SUSPICIONS
            entry.why = (
                f"the process was killed {entry.deaths} times in the middle of {last.point}: "
                "out of memory, perhaps"
                if entry.deaths > 1
                else f"the process was killed in the middle of {last.point}"
            )
        self._write()
        return entry

    def acquit(self, code: PluginCode) -> None:
        """Remove a suspicion: the process has run long enough without a crash in the code."""
        key = (code.name, code.digest)
        entry = self._entries.get(key)
        if entry is not None and not entry.left_out:
            del self._entries[key]
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self.entries())))
            fresh.replace(self._path)
        except OSError as error:
            log.error("cannot write the quarantine file", path=str(fresh), error=str(error))


def _read(path: Path) -> list[Entry]:
    try:
        return _DECODER.decode(path.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateDirError(f"{path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        log.error("cannot read the quarantine file", path=str(path), error=str(error))
        return []

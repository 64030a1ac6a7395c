"""Reload of the configuration file when its content changes.

# Differs: kube-scheduler reads its file once, at the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from cache.value import Value
from scheduler.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scheduler.config import SchedulerConfig
    from scheduler.profiles.known_profiles import KnownProfiles

log = structlog.get_logger(__name__)

_LIVE: Final = frozenset({"profiles", "extenders", "percentage_of_nodes_to_score"})
"""Fields of a configuration that take effect while berth runs."""

_SOURCE_FIELDS: Final = frozenset({"given", "replaced", "source", "api_version", "kind"})

APPLIED: Final = "applied"
REFUSED: Final = "refused"
UNCHANGED: Final = "unchanged"


class ConfigSource(Value, frozen=True):
    """The source of the configuration.

    Parameters
    ----------
    read
        Reads and validates the configuration. Raises ConfigError.
    path
        The file that is watched; None if there is no file.
    """

    read: Callable[[], SchedulerConfig]
    path: Path | None = None


class ConfigReload:
    """Reloads the configuration while Berth runs.

    A change is detected by the file's content, not by its timestamps: a mounted ConfigMap is a
    symlink that is replaced. A changed file is read after its content was equal in two successive
    checks, so that a partially written file is not applied.

    Parameters
    ----------
    started_with
        The configuration that this process was started with; fields that need a restart are
        compared with it.
    count
        Called with the result of each reload: ``applied``, ``refused`` or ``unchanged``.

    Attributes
    ----------
    problem
        Why the current file is not in force; empty if it is in force.
    needs_restart
        Fields of the file that take effect only after a restart.

    Notes
    -----
    *Concurrency*: confined to one thread, which is neither the scheduling thread nor the I/O loop;
    the attributes may be read from any thread.
    """

    def __init__(
        self,
        source: ConfigSource,
        known: KnownProfiles,
        started_with: SchedulerConfig,
        count: Callable[[str], None],
    ) -> None:
        self._source = source
        self._known = known
        self._started_with = started_with
        self._count = count
        self._applied_content = self._content()
        self._last_content = self._applied_content
        self.problem = ""
        self.needs_restart: tuple[str, ...] = ()

    def look(self) -> bool:
        """Reload if the content has changed and is stable; return whether it was reloaded."""
        content = self._content()
        settled, self._last_content = content == self._last_content, content
        if content == self._applied_content or not settled:
            return False
        self._applied_content = content
        self.reload()
        return True

    def reload(self) -> None:
        """Read the configuration and apply its live fields; an invalid one changes nothing."""
        try:
            config = self._source.read()
        except ConfigError as error:
            self._refuse(error)
            return
        before = self._known.config
        mistakes = self._known.set_file(config)
        if mistakes:
            self._refuse(ConfigError.of(mistakes, config.source))
            return
        self.problem = ""
        self.needs_restart = restart_fields(self._started_with, config)
        if self.needs_restart:
            log.warning("some configuration fields need a restart", fields=list(self.needs_restart))
        result = UNCHANGED if config == before else APPLIED
        self._count(result)
        log.info("configuration reloaded", source=config.source, result=result)

    def plugins_changed(self) -> None:
        """Rebuild the profiles that use replaced plugins.

        The set of plugins that the default configuration enables may have changed as well. If the
        configuration cannot be used any more, SchedulingProfiles still use the new plugins.
        """
        self.reload()
        if self.problem:
            self._known.plugins_changed()

    def _refuse(self, error: ConfigError) -> None:
        self.problem = str(error)
        self._count(REFUSED)
        log.error(
            "configuration cannot be used, keeping the last good one",
            error=str(error),
        )

    def _content(self) -> bytes | None:
        """Return the bytes of the file; None if there is no file or it cannot be read."""
        path = self._source.path
        if path is None:
            return None
        try:
            return path.read_bytes()
        except OSError:
            return None


def restart_fields(started_with: SchedulerConfig, config: SchedulerConfig) -> tuple[str, ...]:
    """Return the fields that differ and take effect only at the start, as paths of the file."""
    paths: list[str] = []
    for field in msgspec.structs.fields(type(config)):
        if field.name in _LIVE | _SOURCE_FIELDS:
            continue
        before, after = getattr(started_with, field.name), getattr(config, field.name)
        if before == after:
            continue
        if isinstance(after, msgspec.Struct):
            paths += (
                f"{field.encode_name}.{below.encode_name}"
                for below in msgspec.structs.fields(type(after))
                if getattr(before, below.name) != getattr(after, below.name)
            )
        else:
            paths.append(field.encode_name)
    return tuple(paths)

"""SchedulingProfiles as kopf hands them over, decoded, with the ConfigMaps that they name.

kopf hands over a list, object by object, and then events. Those of one object come in their order;
those of an object and of another one that was made under its name later need not. What is known is
kept in :class:`~scheduler.profiles.known_profiles.KnownProfiles` alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.errors import ApiError
from scheduler.profiles import Mode, ProfileObject
from scheduler.profiles.operator.history import last_good
from scheduler.profiles.operator.scheduling_profile import read_version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from scheduler.profiles import ProfileVersion, PythonSource
    from scheduler.profiles.known_profiles import KnownProfiles
    from scheduler.profiles.operator.options import OperatorOptions

log = structlog.get_logger(__name__)


class ProfileReconciler:
    """Gives each version of each SchedulingProfile to those that are known.

    Parameters
    ----------
    known
        Where each new version goes.
    read_config_map
        Returns ``data`` of a ConfigMap in berth's namespace, None if there is none; raises
        ApiError or TimeoutError. May wait.

    Notes
    -----
    *Concurrency*: confined to one thread, but for :attr:`names_config_maps`.
    """

    def __init__(
        self,
        known: KnownProfiles,
        options: OperatorOptions,
        read_config_map: Callable[[str], Mapping[str, str] | None],
    ) -> None:
        self._known = known
        self._options = options
        self._read_config_map = read_config_map

    @property
    def names_config_maps(self) -> bool:
        """Whether any SchedulingProfile names a ConfigMap. Any thread."""
        return any(
            source.kind == "config-map"
            for status in self._known.statuses().values()
            for source in status.version.python
        )

    def changed(self, raw: Mapping[str, Any], *, is_listed: bool = False) -> None:
        """Take over an object as the API server has it.

        Parameters
        ----------
        is_listed
            Whether it stands in a list: then it is what there is now, however old its version is,
            as after a restore of etcd.
        """
        found = ProfileObject.of(raw)
        status = self._known.status(found.name)
        known = None if status is None else status.version
        if known is not None and known.uid != found.uid:
            before = known.object
            if before is not None and found.version < before.version and not is_listed:
                return  # a late event of an object that was made again under its name
            self._remove(found.name)
            known = None
        if any(found.labels.get(key) != text for key, text in self._options.selector.items()):
            if known is not None:
                self._remove(found.name)
            return
        version = read_version(found, self._options)
        if known is not None and version.asks_for_the_same_as(_with_texts(known, lambda _: None)):
            self._known.put(replace(known, object=found))
            return
        version = self._complete(version, known)
        if known is None:
            self._put_last_good(found, version.mode)
        self._put(version)

    def deleted(self, raw: Mapping[str, Any]) -> None:
        """Forget an object, unless there is another one under its name."""
        status = self._known.status(raw["metadata"]["name"])
        if status is not None and status.version.uid == raw["metadata"]["uid"]:
            self._remove(status.version.name)

    def listed(self, uids: Collection[str]) -> None:
        """Forget all objects but these, which are all that there are."""
        for name, status in self._known.statuses().items():
            if status.version.uid not in uids:
                self._remove(name)

    def look_at_config_maps(self) -> None:
        """Read the ConfigMaps again that are named, and take over what has changed in them."""
        for status in self._known.statuses().values():
            version = self._complete(status.version, status.version)
            if version != status.version:
                self._put(version)

    # --- one version --------------------------------------------------------------------------

    def _put(self, version: ProfileVersion) -> None:
        status = self._known.put(version)
        log.info(
            "scheduling profile taken in",
            profile=version.name,
            generation=version.generation,
            accepted=status.accepted.status,
            mistakes=[str(each) for each in status.mistakes],
        )

    def _put_last_good(self, found: ProfileObject, mode: Mode) -> None:
        """Before a version that may be bad, let the one run that its status names as the last good.

        This process has not seen it: it has been started, or the kind installed, since.
        """
        good = last_good(found) if mode is Mode.ACTIVE else None
        if good is None:
            return
        version = read_version(good, self._options)
        if not version.mistakes:
            # Without an object: no status says that this is the newest generation.
            self._known.put(replace(self._complete(version, None), object=None))

    def _remove(self, name: str) -> None:
        self._known.remove(name)
        log.info("scheduling profile gone", profile=name)

    def _complete(self, version: ProfileVersion, before: ProfileVersion | None) -> ProfileVersion:
        """Return a version with the ConfigMaps that it names; one that cannot be read stays."""
        known = {} if before is None else {each.name: each.text for each in before.python}

        @cache
        def data_of(name: str) -> Mapping[str, str] | ApiError | TimeoutError:
            try:
                return self._read_config_map(name) or {}
            except (ApiError, TimeoutError) as error:
                log.warning("ConfigMap cannot be read", config_map=name, error=str(error))
                return error

        def text_of(source: PythonSource) -> str | None:
            _, name, key = source.name.split("/", 2)
            data = data_of(name)
            if isinstance(data, Exception):
                return known.get(source.name)
            return data.get(key)

        return _with_texts(version, text_of)


def _with_texts(
    version: ProfileVersion, text_of: Callable[[PythonSource], str | None]
) -> ProfileVersion:
    python = (
        replace(each, text=text_of(each)) if each.kind == "config-map" else each
        for each in version.python
    )
    return replace(version, python=tuple(python))

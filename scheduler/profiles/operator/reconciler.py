"""Reconciles the SchedulingProfiles that kopf delivers, with the ConfigMaps that they name.

kopf delivers a list, object by object, and then events. The events of one object arrive in order;
the events of an object and of a later object with the same name may not. Only
:class:`~scheduler.profiles.known_profiles.KnownProfiles` stores the objects.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import structlog
from msgspec.structs import replace

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
    """Decodes each version of each SchedulingProfile and passes it to the known profiles.

    Parameters
    ----------
    known
        Receives each new version.
    read_config_map
        Returns ``data`` of a ConfigMap in Berth's namespace, None if there is none; raises
        ApiError or TimeoutError. May block.

    Notes
    -----
    *Concurrency*: confined to one thread, except for :attr:`names_config_maps`.
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
        """Whether any SchedulingProfile names a ConfigMap. May be read from any thread."""
        return any(
            source.kind == "config-map"
            for status in self._known.statuses().values()
            for source in status.version.python
        )

    def changed(self, raw: Mapping[str, Any], *, is_listed: bool = False) -> None:
        """Apply an object as the API server returns it.

        Parameters
        ----------
        is_listed
            Whether the object comes from a list: then it is the present state, however old its
            version is, as after a restore of etcd.
        """
        profile = ProfileObject.of(raw)
        status = self._known.status(profile.name)
        known = None if status is None else status.version
        if known is not None and known.uid != profile.uid:
            before = known.object
            if before is not None and profile.version < before.version and not is_listed:
                return  # a late event of an object that was deleted and created again
            self._remove(profile.name)
            known = None
        if any(profile.labels.get(key) != text for key, text in self._options.selector.items()):
            if known is not None:
                self._remove(profile.name)
            return
        version = read_version(profile, self._options)
        if known is not None and version.asks_for_the_same_as(_with_texts(known, lambda _: None)):
            self._known.put(replace(known, object=profile))
            return
        version = self._complete(version, known)
        if known is None:
            self._put_last_good(profile, version.mode)
        self._put(version)

    def deleted(self, raw: Mapping[str, Any]) -> None:
        """Remove an object, unless another object with its name has been created."""
        status = self._known.status(raw["metadata"]["name"])
        if status is not None and status.version.uid == raw["metadata"]["uid"]:
            self._remove(status.version.name)

    def listed(self, uids: Collection[str]) -> None:
        """Remove all objects except those with these UIDs, which are all existing ones."""
        for name, status in self._known.statuses().items():
            if status.version.uid not in uids:
                self._remove(name)

    def look_at_config_maps(self) -> None:
        """Read the named ConfigMaps again, and apply their changes."""
        for status in self._known.statuses().values():
            version = self._complete(status.version, status.version)
            if version != status.version:
                self._put(version)

    # --- one version --------------------------------------------------------------------------

    def _put(self, version: ProfileVersion) -> None:
        status = self._known.put(version)
        log.info(
            "scheduling profile adopted",
            profile=version.name,
            generation=version.generation,
            accepted=status.accepted.status,
            mistakes=[str(each) for each in status.mistakes],
        )

    def _put_last_good(self, profile: ProfileObject, mode: Mode) -> None:
        """Apply the last good generation in the status first, because the version may be bad.

        This process has not seen that generation: the process was started, or the kind was
        installed, after it.
        """
        good = last_good(profile) if mode is Mode.ACTIVE else None
        if good is None:
            return
        version = read_version(good, self._options)
        if not version.mistakes:
            # Without an object, so that no status reports this as the newest generation.
            self._known.put(replace(self._complete(version, None), object=None))

    def _remove(self, name: str) -> None:
        self._known.remove(name)
        log.info("scheduling profile deleted", profile=name)

    def _complete(self, version: ProfileVersion, before: ProfileVersion | None) -> ProfileVersion:
        """Return a version with the texts of its ConfigMaps; an unreadable one keeps its text."""
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

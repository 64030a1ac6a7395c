"""How much memory the trial of a plugin may have."""

from __future__ import annotations

import pytest

from scheduler.user_plugins.containment.trial_cache import cgroup_room_bytes


@pytest.mark.parametrize(
    ("files", "room"),
    [
        pytest.param({"memory.max": "1000\n", "memory.current": "300\n"}, 700, id="limited"),
        pytest.param({"memory.max": "1000\n", "memory.current": "1300\n"}, 0, id="over its limit"),
        pytest.param({"memory.max": "max\n", "memory.current": "300\n"}, None, id="unlimited"),
        pytest.param({}, None, id="no container"),
        pytest.param(
            {"memory/memory.limit_in_bytes": "1000", "memory/memory.usage_in_bytes": "1"},
            999,
            id="an older kernel",
        ),
    ],
)
def test_what_the_container_leaves(tmp_path, files, room):
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cgroup_room_bytes(tmp_path) == room

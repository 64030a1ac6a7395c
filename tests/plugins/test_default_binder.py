from __future__ import annotations

import asyncio

from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS
from tests.builders import pod
from tests.plugins.conformance import RecordingHandle


def test_the_scheduler_binds_the_pod_by_its_uid() -> None:
    handle = RecordingHandle()
    plugin = DefaultBinder(None, handle)
    status = asyncio.run(plugin.bind(CycleState(), pod("web").uid("u-1").info(), "n1"))
    assert status == SUCCESS
    assert handle.bound == [("u-1", "n1")]

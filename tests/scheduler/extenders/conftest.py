from __future__ import annotations

import pytest

from tests.scheduler.extenders.scripted_extender import Stage


@pytest.fixture
def stage():
    with Stage() as made:
        yield made

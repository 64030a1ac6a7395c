from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugins.dynamic_resources.device_world import the_loop

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def closed_loop() -> Iterator[None]:
    """Close the loop of the worlds."""
    yield
    if the_loop.cache_info().currsize:
        the_loop().close()
        the_loop.cache_clear()

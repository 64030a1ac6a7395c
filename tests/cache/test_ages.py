from __future__ import annotations

from cache.ages import Ages


def test_a_function_forgets_with_each_age():
    ages, calls = Ages(), []

    @ages.forgets(2)
    def doubled(number: int) -> int:
        calls.append(number)
        return 2 * number

    assert [doubled(3), doubled(3)] == [6, 6]
    ages.begin()
    assert doubled(3) == 6
    assert calls == [3, 3]
    assert ages.number == 1

"""counted: one thing, and any other number of them."""

import pytest

from cige.text.counted import counted


@pytest.mark.parametrize(
    ("n", "told"), [(0, "0 entities"), (1, "1 entity"), (2, "2 entities"), (1000, "1,000 entities")]
)
def test_a_number_of_things(n, told):
    assert counted(n, "entity", "entities") == told
    assert counted(n, "line") == told.replace("entity", "line").replace("entities", "lines")

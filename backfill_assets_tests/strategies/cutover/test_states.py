"""Which state of a migration may follow which: every pair of them."""

from __future__ import annotations

import pytest

from backfill_assets.errors import Refused
from backfill_assets.strategies.cutover.states import (
    ALLOWED,
    STATES,
    State,
    is_allowed,
    must_be_allowed,
    words,
)

# a second writing of the table, by hand, so that a change of either is seen
MAY_FOLLOW = {
    ("dual_writing", "cutting_over"),
    ("cutting_over", "cut_over"),
    ("cutting_over", "dual_writing"),
    ("cut_over", "rolling_back"),
    ("rolling_back", "dual_writing"),
    ("rolling_back", "cut_over"),
    ("cut_over", "retiring"),
    ("retiring", "retired"),
    ("retiring", "cut_over"),
    ("retired", "retiring"),
}


@pytest.mark.parametrize("after", STATES)
@pytest.mark.parametrize("before", STATES)
def test_a_state_follows_another_only_where_the_table_says_so(before: State, after: State) -> None:
    assert is_allowed(before, after) is ((before, after) in MAY_FOLLOW)
    if is_allowed(before, after):
        must_be_allowed("orders", before, after)
    else:
        with pytest.raises(Refused, match=f"does not go from {before} to {after}"):
            must_be_allowed("orders", before, after)


def test_every_state_has_its_words_and_its_successors() -> None:
    assert set(ALLOWED) == set(STATES)
    assert all(words(state) for state in STATES)

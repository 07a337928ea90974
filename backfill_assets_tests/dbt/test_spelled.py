"""What the macros are generated from has one spelling, and it is this program's."""

from __future__ import annotations

import pytest

from backfill_assets.dbt.spelled import FILE, file_text, spelled


def test_the_generated_macros_are_as_the_write_path_spells_them() -> None:
    assert FILE.read_text() == file_text(), "run `make dbt`"


@pytest.mark.parametrize("adapter", ["duckdb", "postgres", "snowflake"])
def test_nothing_made_up_is_left_in_the_generated_statements(adapter: str) -> None:
    """A value that stood in for a real one and was not found again would be compared with for ever."""
    text = str(spelled(adapter))
    for made_up in ("goes_here", "GOES_HERE", "1901", "1902", "1903", "1904", "1905"):
        assert made_up not in text, made_up

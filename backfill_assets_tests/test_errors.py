"""An error is a sentence with a next step, and holds no secret."""

from __future__ import annotations

import pytest

from backfill_assets.errors import BackfillError, SliceBusy, StaleSource, without_secrets


def test_an_error_says_what_why_and_what_to_do() -> None:
    error = BackfillError(
        "fct 2026-05-12 was left as it was", "no rows\n  came", "Load the source first"
    )
    assert str(error) == "fct 2026-05-12 was left as it was: no rows came. Load the source first."


def test_only_what_may_pass_later_is_tried_again() -> None:
    assert SliceBusy("a", "b", "c").retry
    assert not StaleSource("a", "b", "c").retry


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ana:s3cret@host/db",
        "postgresql://ana:s3cr@et/s3cret@host:5432/db?sslmode=require",
        "could not reach postgresql+psycopg2://ana:s3cret@host/db: refused",
        "host=h user=ana password=s3cret dbname=d",
        "host=h password='a s3cret' dbname=d",
        "snowflake://ana@account/db?token=s3cret&role=r",
        "snowflake://ana@account/db?private_key_passphrase=s3cret",
        "databricks://token:s3cret@host",
        "PASSWORD = s3cret",
        '{"password": "s3cret", "user": "ana"}',
        '{"password": "a\\"s3cret", "user": "ana"}',
        "{'api_key': 's3cret and more'}",
        'the body was "{\\"token\\": \\"s3cret\\"}"',
        "password: s3cret",
        "Authorization: Bearer s3cret",
        '{"Authorization": "Basic s3cret=="}',
        "sent Bearer s3cret.s3cret",
        "Server=h;Uid=ana;Pwd=s3cret;",
        "https://host/v1?apikey=s3cret&n=1",
        "AWS_SECRET_ACCESS_KEY=s3cret",
        "https://hooks.slack.com/services/T0/B0/s3cret",
        "https://discord.com/api/webhooks/1/s3cret",
        "slack://T0s3cret/B0/s3cret/#channel",
        "postgresql://ana: s3cret@host/db",
        "postgresql://ana:a s3cret@host/db",
        "postgresql://ana: @s3cret@host/db",
    ],
)
def test_a_password_is_never_shown(text: str) -> None:
    shown = without_secrets(text)
    assert "s3cret" not in shown
    assert "***" in shown
    assert str(BackfillError(text, text, text)).count("s3cret") == 0


@pytest.mark.parametrize(
    "text",
    [
        "duckdb:////data/warehouse.duckdb",
        "postgresql://ana@host/db",
        "write postgresql://user:password@host/db, as in the docs",
        "the key (id)=(7) is there twice",
        "at 10:30@noon",
        "password authentication failed for user ana",
        "the secret is out",
        "Bearer of news",
        "https://slack.com/help",
        "postgresql://host:5432/db is away, tell ana@example.org",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text
